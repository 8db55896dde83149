"""What every cloud's adapter promises: one suite, run through the official client against that cloud's wire face.

A cloud's own test file is a subclass of `ProviderContract` in which a fixture `cloud` is a `Cloud`, and little else.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.types.instance import Attempt
from tests.contract.provider_contract_buying import Buying
from tests.contract.provider_contract_refusals import Refusals
from tests.contract.provider_contract_world import Cloud, World, a_token, an_attempt, made_now, states
from tests.contract.waiting import wait_until

MANY = 1200


class ProviderContract(Buying, Refusals):
    """The promises; `cloud` is the subclass's fixture."""

    @pytest.fixture(autouse=True)
    def _calm(self, cloud: Cloud) -> Iterator[None]:
        yield
        cloud.calm()

    @pytest.fixture
    def world(self) -> World:
        """A deployment of this test's own."""
        return World()

    @pytest.fixture
    def provider(self, cloud: Cloud, world: World) -> CloudProvider:
        """The adapter under test."""
        return cloud.provider(world)

    @pytest.fixture
    def attempt(self, cloud: Cloud, provider: CloudProvider) -> Attempt:
        """An attempt whose request is fixed."""
        return an_attempt(cloud, provider)

    def test_destroying_twice_succeeds(self, provider: CloudProvider, attempt: Attempt) -> None:
        """The second order is no error, nor is one for a machine that has ended; it ends, and stays ended."""
        made = provider.create_instance(attempt)
        provider.destroy_instance(made)
        provider.destroy_instance(made)
        wait_until(lambda: states(provider, made) == ["terminated"])
        provider.destroy_instance(made)
        assert states(provider, made) == ["terminated"]

    def test_destroying_what_never_was_succeeds(self, provider: CloudProvider, attempt: Attempt) -> None:
        """An order for an id that the cloud does not know, or for a launch that made nothing, is no error."""
        provider.destroy_instance(attempt)
        provider.destroy_instance(attempt.model_copy(update={"allocated_id": "i-0123456789abcdef0"}))

    def test_destroying_a_launch_whose_answer_was_lost(self, provider: CloudProvider, attempt: Attempt) -> None:
        """A machine that only its token names is ended all the same."""
        made = provider.create_instance(attempt)
        provider.destroy_instance(attempt)
        wait_until(lambda: states(provider, made) == ["terminated"])

    def test_a_machine_taken_back_is_told_from_one_that_we_ended(self, cloud: Cloud, provider: CloudProvider) -> None:
        """An end by the cloud is marked with the cloud's own code; an end by our order is not marked."""
        taken, ended = [made_now(provider, an_attempt(cloud, provider)) for _ in range(2)]
        assert provider.get_instance_status(taken) is None
        cloud.end_without_notice(taken)
        provider.destroy_instance(ended)
        wait_until(lambda: states(provider, taken, ended) == ["terminated", "terminated"])
        by_cloud, by_us = provider.get_instance_status(taken), provider.get_instance_status(ended)
        assert by_cloud is not None
        assert by_us is not None
        assert (by_cloud.instance_id, by_cloud.marked_for_termination) == (taken.allocated_id, True)
        assert by_cloud.fault_code
        assert not by_us.marked_for_termination
        [seen] = provider.describe_instance([taken], "")
        assert isinstance(seen, Attempt)
        assert seen.cloud_reason

    def test_a_machine_just_made_is_not_reported_gone(
        self, cloud: Cloud, provider: CloudProvider, world: World
    ) -> None:
        """One that the cloud does not show yet comes back as it was; past all patience it is gone."""
        cloud.hide_new_machines()
        made = made_now(provider, an_attempt(cloud, provider))
        before = made.state
        assert states(provider, made) == [before]
        world.late = timedelta(minutes=6)
        assert states(provider, made) == ["terminated"]

    def test_a_machine_comes_to_run_and_has_an_address(self, provider: CloudProvider, attempt: Attempt) -> None:
        """What was bought is pending, then running, with an address."""
        made = provider.create_instance(attempt)
        wait_until(lambda: states(provider, made) == ["running"])
        [seen] = provider.describe_instance([made], "running")
        assert seen.ip_address
        assert provider.describe_instance([made], "terminated") == []

    def test_a_poll_of_1200_machines(self, cloud: Cloud, fleet: Sequence[Attempt]) -> None:
        """All are seen in calls of the cloud's largest size, in order; two missing ones cost a few calls more."""
        world = World(deployment="fleet", late=timedelta(minutes=6))
        provider = cloud.provider(world)
        before = cloud.calls()
        seen = provider.describe_instance(fleet, "")
        assert [s.allocated_id for s in seen] == [a.allocated_id for a in fleet]
        assert "terminated" not in {s.state for s in seen}
        assert cloud.calls() - before <= -(-MANY // cloud.batch)
        lost = {7, MANY - 1}
        asked = [a.model_copy(update={"allocated_id": f"i-{n:017x}"}) if n in lost else a for n, a in enumerate(fleet)]
        before = cloud.calls()
        gone = {n for n, s in enumerate(provider.describe_instance(asked, "")) if s.state == "terminated"}
        assert gone == lost
        assert cloud.calls() - before <= -(-MANY // cloud.batch) + 2

    def test_the_owned_list_is_ours_and_whole(self, cloud: Cloud, fleet: Sequence[Attempt]) -> None:
        """Pages are followed to the end; a machine of another deployment is not ours; the attempt is told by its id."""
        provider = cloud.provider(World(deployment="fleet"))
        other = provider.create_instance(an_attempt(cloud, provider, deployment="fleet-2"))
        owned = {o.allocated_id: o.cedana_id for o in provider.owned_instances(fleet[0].region)}
        assert owned == {a.allocated_id: a.cedana_id for a in fleet}
        assert other.allocated_id not in owned

    @pytest.fixture(scope="class")
    @classmethod
    def fleet(cls, cloud: Cloud) -> Sequence[Attempt]:
        """As many machines as a poll must manage, in one region, of a deployment of their own."""
        provider = cloud.provider(World(deployment="fleet"))
        first = an_attempt(cloud, provider, deployment="fleet")
        attempts = [first.model_copy(update={"cedana_id": a_token()}) for _ in range(MANY)]
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda attempt: made_now(provider, attempt), attempts))
