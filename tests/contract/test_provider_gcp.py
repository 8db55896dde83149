"""The contract for gcp: the adapter, through google-cloud-compute, against the local cloud's Compute Engine face."""

from collections.abc import Iterator

import pytest

from local.gcp_pricing import environment
from spotferry.ports.cloud import CloudProvider
from spotferry.providers.gcp import launch
from spotferry.providers.gcp.provider import GcpProvider
from spotferry.types.errors import TryNextRegion, TryNextType, TryNextZone
from spotferry.types.instance import Attempt
from tests.contract.face_cloud import market_process
from tests.contract.gcp_cloud import GceFace
from tests.contract.provider_contract import ProviderContract
from tests.contract.provider_contract_world import World, an_attempt, launched, made_now, states
from tests.contract.waiting import wait_until

AWS_KEY = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GceFace]:
    """One local cloud for all tests, reached by federation from AWS; each test cleans up after itself."""
    with market_process(tmp_path_factory.mktemp("gce")) as port, pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment(f"http://127.0.0.1:{port}"), **AWS_KEY}.items():
            patch.setenv(name, value)
        face = GceFace(port)
        face.calm()
        yield face


class TestGcp(ProviderContract):
    """gcp keeps the contract."""

    def test_a_launch_that_was_accepted_and_came_to_nothing(
        self, cloud: GceFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """It is told once its operation has ended, with the operation's code; the machine is gone without an order."""
        cloud.pull("fail_boots")
        made = made_now(provider, attempt)
        assert (made.allocated_id, made.state) == (attempt.cedana_id, "pending")
        with pytest.raises(TryNextZone) as caught:
            cloud.settle(provider, made)
        assert (caught.value.code, caught.value.scope) == ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "pool")
        wait_until(lambda: states(provider, made) == ["terminated"])
        [gone] = provider.describe_instance([made], "")
        assert isinstance(gone, Attempt)
        assert gone.ended_by == "launch"
        assert gone.cloud_reason.startswith("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: ")
        with pytest.raises(TryNextZone):
            provider.create_instance(attempt)

    def test_a_launch_that_nobody_knows_is_settled(self, provider: CloudProvider, attempt: Attempt) -> None:
        """There is nothing to tell of it."""
        assert isinstance(provider, GcpProvider)
        assert provider.settle_launch(attempt) is None

    def test_a_quota_of_all_regions_closes_the_type_everywhere(
        self, cloud: GceFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """An operation that fails for want of GPUs in all regions together."""
        words = "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."
        cloud.pull("fail", operation="gcp.instances.insert.operation", code="QUOTA_EXCEEDED", message=words)
        with pytest.raises(TryNextType, match="GPUS_ALL_REGIONS") as caught:
            provider.create_instance(attempt)
        assert caught.value.scope == "type"

    def test_a_policy_about_locations(self, cloud: GceFace, provider: CloudProvider, attempt: Attempt) -> None:
        """It closes the region to launches, and what runs there is still seen and ended."""
        made = made_now(provider, attempt)
        cloud.pull("regions/deny", region=attempt.region)
        with pytest.raises(TryNextRegion) as caught:
            provider.create_instance(an_attempt(cloud, provider))
        assert (caught.value.code, caught.value.scope) == ("conditionNotMet", "region")
        provider.destroy_instance(made)
        wait_until(lambda: states(provider, made) == ["terminated"])

    def test_a_machine_that_is_being_taken_back_is_told_while_it_stops(
        self, cloud: GceFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """By the preemption's operation."""
        made = launched(cloud, provider, attempt)
        cloud.end_without_notice(made)
        wait_until(lambda: states(provider, made) != ["running"])
        event = provider.get_instance_status(made)
        assert event is not None
        assert (event.fault_code, event.marked_for_termination) == ("compute.instances.preempted", True)

    def test_on_demand(self, cloud: GceFace, provider: CloudProvider, attempt: Attempt) -> None:
        """The same machine without the spot market."""
        made = launched(cloud, provider, attempt.model_copy(update={"market": "on_demand"}))
        assert states(provider, made) == ["running"]

    def test_a_name_that_another_machine_has(self, provider: CloudProvider, cloud: GceFace, attempt: Attempt) -> None:
        """A launch whose request Google has forgotten finds its machine by the name; another's it leaves alone."""
        made = made_now(provider, attempt)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(launch, "request_id", lambda _id: "5b1c9d0e-6f5b-4f0c-9d43-000000000001")
            assert provider.create_instance(attempt).allocated_id == made.allocated_id
            foreign = cloud.provider(World(deployment="another"))
            assert foreign.find_instance(attempt) is None
