"""What every cloud promises about the end of a machine."""

from spotferry.ports.cloud import CloudProvider
from spotferry.types.instance import Attempt
from tests.contract.provider_contract_world import Cloud, an_attempt, launched, made_now, states
from tests.contract.waiting import wait_until


class Ending:
    """A machine ends when it is told to, bills nothing afterwards, and the cloud's doing is told from ours."""

    def test_destroying_twice_succeeds(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """The second order is no error, nor is one for a machine that has ended; it ends, and stays ended."""
        made = provider.create_instance(attempt)
        provider.destroy_instance(made)
        provider.destroy_instance(made)
        wait_until(lambda: states(provider, made) == ["terminated"], cloud.patience_seconds)
        provider.destroy_instance(made)
        assert states(provider, made) == ["terminated"]
        assert not cloud.billing(attempt)

    def test_destroying_what_never_was_succeeds(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """An order for an id that the cloud does not know, or for a launch that made nothing, is no error."""
        provider.destroy_instance(attempt)
        provider.destroy_instance(attempt.model_copy(update={"allocated_id": cloud.unknown_id()}))

    def test_destroying_a_launch_whose_answer_was_lost(
        self, cloud: Cloud, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """A machine that only its token names is ended all the same."""
        made = provider.create_instance(attempt)
        provider.destroy_instance(attempt)
        wait_until(lambda: states(provider, made) == ["terminated"], cloud.patience_seconds)

    def test_a_machine_taken_back_is_told_from_one_that_we_ended(self, cloud: Cloud, provider: CloudProvider) -> None:
        """An end by the cloud is marked with its own code where it tells at all; an end by our order never is."""
        taken, ended = [launched(cloud, provider, an_attempt(cloud, provider)) for _ in range(2)]
        assert provider.get_instance_status(taken) is None
        cloud.end_without_notice(taken)
        provider.destroy_instance(ended)
        both = ["terminated", "terminated"]
        wait_until(lambda: states(provider, taken, ended) == both, cloud.patience_seconds)
        by_us = provider.get_instance_status(ended)
        assert by_us is None or not by_us.marked_for_termination
        if cloud.tells_take_backs:
            by_cloud = provider.get_instance_status(taken)
            assert by_cloud is not None
            assert (by_cloud.instance_id, by_cloud.marked_for_termination) == (taken.allocated_id, True)
            assert by_cloud.fault_code
            [seen] = provider.describe_instance([taken], "")
            assert isinstance(seen, Attempt)
            assert provider.get_instance_statuses([seen])[seen.cedana_id].marked_for_termination

    def test_a_machine_that_shut_itself_down_is_lost_and_leaves_no_bill(
        self, cloud: Cloud, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """One that was switched off from inside is told as ending or gone, as nobody's take-back; destroyed, it bills
        nothing.
        """
        made = launched(cloud, provider, attempt)
        wait_until(lambda: states(provider, made) == ["running"], cloud.patience_seconds)
        cloud.switch_off(made)
        lost = (["stopping"], ["shutting-down"], ["terminated"])
        wait_until(lambda: states(provider, made) in lost, cloud.patience_seconds)
        event = provider.get_instance_status(made)
        assert event is None or not event.marked_for_termination
        provider.destroy_instance(made)
        wait_until(lambda: states(provider, made) == ["terminated"], cloud.patience_seconds)
        wait_until(lambda: not cloud.billing(attempt), cloud.patience_seconds)

    def test_a_machine_that_shut_itself_down_is_still_ours(
        self, cloud: Cloud, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """Until nothing of it bills any more, the owned list shows it to the reaper."""
        made = made_now(provider, attempt)
        cloud.settle(provider, made)
        wait_until(lambda: states(provider, made) == ["running"], cloud.patience_seconds)
        cloud.switch_off(made)
        wait_until(lambda: states(provider, made) != ["running"], cloud.patience_seconds)

        def shown() -> bool:
            return made.allocated_id in {owned.allocated_id for owned in provider.owned_instances(made.region)}

        wait_until(lambda: shown() == bool(cloud.billing(attempt)), cloud.patience_seconds)
