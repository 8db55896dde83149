"""The contract for azure: the adapter, through the compute client, against the resource manager's face."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from local import azure_pricing
from spotferry.ports.cloud import CloudProvider
from spotferry.providers.azure import sweep
from spotferry.providers.azure.provider import build
from spotferry.providers.context import ProviderContext
from spotferry.types.errors import ProviderError, TryNextRegion, TryNextType, TryNextZone
from spotferry.types.instance import Attempt
from tests.contract.azure_cloud import AT_ONCE, AzureFace, a_d2s
from tests.contract.face_cloud import market_process
from tests.contract.provider_contract import ProviderContract
from tests.contract.provider_contract_time import SHARES, launch_in_time
from tests.contract.provider_contract_world import World, an_attempt, made_now, states
from tests.contract.waiting import wait_until


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureFace]:
    """One local cloud for all tests; each cleans up after itself."""
    with market_process(tmp_path_factory.mktemp("arm")) as port, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "VISIBLE_AFTER", AT_ONCE)
        face = AzureFace(port)
        face.calm()
        yield face


class TestAzure(ProviderContract):
    """azure keeps the contract."""

    def test_a_launch_that_fails_after_a_while_is_settled(self, cloud: AzureFace, provider: CloudProvider) -> None:
        """The error that Azure ends the launch with is told by CheckLaunch's way, and nothing is left of it."""
        cloud.pull("fail_boots", code="OSProvisioningTimedOut", message="It never reported.")
        attempt = made_now(provider, an_attempt(cloud, provider))
        assert attempt.state == "pending"
        with pytest.raises(TryNextZone) as caught:
            cloud.settle(provider, attempt)
        assert (caught.value.code, caught.value.message) == ("OSProvisioningTimedOut", "It never reported.")
        assert attempt.allocated_id not in cloud.names_in_group("networkInterfaces")
        wait_until(lambda: states(provider, attempt) == ["terminated"])
        assert provider.find_instance(attempt) is None

    def test_a_launch_that_fails_in_its_first_seconds_leaves_nothing(
        self, cloud: AzureFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """Interface, address and disk go with the machine that came to nothing."""
        cloud.pull("fail", operation="azure.operation", code="AllocationFailed", message="No room.")
        with pytest.raises(TryNextRegion):
            provider.create_instance(attempt)
        for kind in ("networkInterfaces", "publicIPAddresses", "disks"):
            assert not [name for name in cloud.names_in_group(kind) if name.startswith(attempt.cedana_id)]

    @pytest.mark.parametrize("share", SHARES)
    def test_a_slow_launch_that_fails_is_over_in_time_and_leaves_nothing(
        self, cloud: AzureFace, provider: CloudProvider, attempt: Attempt, share: float
    ) -> None:
        """The failed machine is deleted within the launch's time, or found and deleted by whoever asks next."""
        cloud.pull("fail", operation="azure.operation", code="AllocationFailed", message="No room.")
        launch_in_time(cloud, attempt, share)
        launch_in_time(cloud, attempt, share)
        cloud.calm()
        with suppress(ProviderError):
            cloud.settle(provider, made_now(provider, attempt))
        provider.destroy_instance(attempt)
        wait_until(lambda: not cloud.billing(attempt), cloud.patience_seconds)

    def test_what_a_machine_leaves_behind_is_deleted_by_the_next_order(
        self, cloud: AzureFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """Where Azure did not delete it together with the machine."""
        made = made_now(provider, attempt)
        cloud.pull("fail", operation="azure.parts", code="Stays")
        provider.destroy_instance(made)
        wait_until(lambda: states(provider, made) == ["terminated"])
        assert f"{made.allocated_id}-ip" in cloud.names_in_group("publicIPAddresses")
        provider.destroy_instance(made)
        for kind in ("networkInterfaces", "publicIPAddresses", "disks"):
            assert not [name for name in cloud.names_in_group(kind) if name.startswith(made.allocated_id)]

    def test_a_type_that_no_zone_has_sends_on_to_the_next_region(
        self, cloud: AzureFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """Azure says so at once, and of the whole region: the type is left alone there."""
        cloud.pull("exhaust", provider="azure", region="eastus", instance_type=attempt.instance_type)
        with pytest.raises(TryNextRegion) as caught:
            provider.create_instance(attempt)
        assert (caught.value.code, caught.value.scope) == ("SkuNotAvailable", "size")

    @pytest.mark.parametrize("market", ["spot", "on_demand"])
    def test_a_region_without_zones_and_both_markets(
        self, cloud: AzureFace, provider: CloudProvider, market: str
    ) -> None:
        """A machine is had without a zone, on demand as well; quotas of the markets are apart."""
        candidate = a_d2s("northcentralus", "").model_copy(update={"market": market})
        attempt = an_attempt(cloud, provider, candidate)
        cloud.pull("quota", provider="azure", region="northcentralus", family="azure", purchase="spot", vcpus=0)
        if market == "spot":
            with pytest.raises(TryNextRegion, match="LowPriorityCores"):
                provider.create_instance(attempt)
            cloud.pull("quota", provider="azure", region="northcentralus", family="azure", purchase="spot", vcpus=100)
        made = provider.create_instance(attempt)
        assert made.availability_zone == ""
        wait_until(lambda: states(provider, made) == ["running"])
        provider.destroy_instance(made)

    def test_the_familys_quota_closes_the_family(self, cloud: AzureFace, provider: CloudProvider) -> None:
        """On demand Azure counts by family: another one may still be had."""
        attempt = an_attempt(cloud, provider, cloud.candidate().model_copy(update={"market": "on_demand"}))
        cloud.pull("quota", provider="azure", region="eastus", family="azure", purchase="on_demand", vcpus=0)
        with pytest.raises(TryNextType, match="standardDsv5Family") as caught:
            provider.create_instance(attempt)
        assert caught.value.scope == "family"
        cloud.pull("quota", provider="azure", region="eastus", family="azure", purchase="on_demand", vcpus=1000)

    def test_the_environment_of_the_local_cloud_is_enough(self, cloud: AzureFace, world: World) -> None:
        """Endpoint, subscription and identity come from the variables that functions get there."""
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("AZURE_FEDERATION", raising=False)
            for name, value in azure_pricing.environment(cloud.url).items():
                patch.setenv(name, value)
            provider = build(ProviderContext("contract", lambda _attempt: world.user_data, world.clock))
            made = provider.create_instance(an_attempt(cloud, provider))
        assert made.allocated_id
        provider.destroy_instance(made)
