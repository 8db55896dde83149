"""What every cloud promises about a launch."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.types.errors import (
    LaunchRefused,
    ProviderUnavailable,
)
from spotferry.types.instance import Attempt
from tests.contract.provider_contract_world import Cloud, World, an_attempt, states, tags
from tests.contract.waiting import wait_until


class Buying:
    """One token buys one machine, whatever gets lost."""

    def test_one_token_buys_one_machine(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """Asking twice, also from another process, makes one machine and tells the same one."""
        first = provider.create_instance(attempt)
        assert first.allocated_id
        assert first.state in {"pending", "running"}
        assert provider.create_instance(attempt).allocated_id == first.allocated_id
        assert cloud.provider(World()).create_instance(attempt).allocated_id == first.allocated_id
        assert len(cloud.bought(attempt)) == 1

    def test_one_token_at_once_buys_one_machine(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """Deliveries of one message that run at the same time, in processes of their own, leave one machine."""
        others = [cloud.provider(World()) for _ in range(3)]
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda one: one.create_instance(attempt), [provider, *others]))
        if cloud.sells_once:
            assert len({m.allocated_id for m in made}) == 1
            assert len(cloud.bought(attempt)) == 1
        kept = provider.create_instance(attempt).allocated_id
        wait_until(lambda: list(cloud.billing(attempt)) == [kept], cloud.patience_seconds)

    def test_a_launch_whose_answer_was_lost_is_found_again(
        self, cloud: Cloud, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """No answer is no verdict; the machine is found by its tag, described, and never bought twice."""
        cloud.lose_answers(50)
        with pytest.raises(ProviderUnavailable):
            provider.create_instance(attempt)
        cloud.calm()
        found = provider.find_instance(attempt)
        assert found is not None
        assert [found.allocated_id] == list(cloud.bought(attempt))
        assert provider.describe_instance([attempt], "")[0].allocated_id == found.allocated_id
        assert provider.create_instance(attempt).allocated_id == found.allocated_id
        assert len(cloud.bought(attempt)) == 1

    def test_what_was_never_launched_is_not_found(self, provider: CloudProvider, attempt: Attempt) -> None:
        """A look-up before the launch finds nothing, and does not fail."""
        assert provider.find_instance(attempt) is None

    def test_an_ended_machine_is_not_found(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """A machine that has ended is no answer to the question whether the launch made one."""
        made = provider.create_instance(attempt)
        provider.destroy_instance(made)
        wait_until(lambda: states(provider, made) == ["terminated"], cloud.patience_seconds)
        assert provider.find_instance(attempt) is None

    def test_user_data_at_the_limit(self, cloud: Cloud, provider: CloudProvider, world: World) -> None:
        """User data as large as the cloud takes is accepted."""
        world.user_data = "#!" + "x" * (cloud.user_data_limit_bytes - 2)
        assert provider.create_instance(an_attempt(cloud, provider)).allocated_id

    def test_user_data_above_the_limit(
        self, cloud: Cloud, provider: CloudProvider, world: World, attempt: Attempt
    ) -> None:
        """One byte more is refused, and the cloud is not asked."""
        world.user_data = "#!" + "x" * (cloud.user_data_limit_bytes - 1)
        before = cloud.calls()
        with pytest.raises(LaunchRefused):
            provider.create_instance(attempt)
        assert cloud.calls() == before

    def test_a_disk_smaller_than_its_image(self, cloud: Cloud, provider: CloudProvider) -> None:
        """A disk that cannot hold the image is refused before anything is bought; one that is sold in steps grows."""
        candidate = cloud.candidate().model_copy(update={"disk_gb": 1})
        if cloud.disks_grow:
            assert provider.prepare(candidate, cloud.settings(candidate), "", tags()).disk_gb > 1
            return
        with pytest.raises(LaunchRefused, match="disk"):
            provider.prepare(candidate, cloud.settings(candidate), "", tags())

    def test_a_disk_that_no_job_named(self, cloud: Cloud, provider: CloudProvider) -> None:
        """A disk that was not asked for grows until it holds the image."""
        candidate = cloud.candidate().model_copy(update={"disk_gb": 1})
        request = provider.prepare(candidate, cloud.settings(candidate), "", tags(), disk_is_fixed=False)
        assert request.disk_gb > 1
        if cloud.disks_grow:
            return
        with pytest.raises(LaunchRefused, match=f"disk_gb: {request.disk_gb}"):
            provider.prepare(candidate, cloud.settings(candidate), "", tags())

    def test_an_image_that_does_not_exist(self, cloud: Cloud, provider: CloudProvider) -> None:
        """A job's own image that is not there is refused by name."""
        candidate = cloud.candidate()
        with pytest.raises(LaunchRefused, match="no-such-image"):
            provider.prepare(candidate, cloud.settings(candidate), "no-such-image", tags())
