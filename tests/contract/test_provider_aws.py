"""The contract for aws: the adapter, through boto3, against the EC2 face of the local cloud."""

import time
from collections.abc import Iterator
from decimal import Decimal

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.types.errors import TryNextZone
from spotferry.types.instance import Attempt
from tests.contract.aws_cloud import Ec2Face
from tests.contract.face_cloud import market_process
from tests.contract.provider_contract import ProviderContract
from tests.contract.provider_contract_world import an_attempt


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ec2Face]:
    """One local cloud for all tests; each cleans up after itself."""
    with market_process(tmp_path_factory.mktemp("ec2")) as port:
        face = Ec2Face(port)
        face.calm()
        yield face


class TestAws(ProviderContract):
    """aws keeps the contract."""

    def test_zone_ids_are_launched_by_name(self, cloud: Ec2Face, provider: CloudProvider) -> None:
        """A price list's zone id buys a machine in the zone that the account calls by another name."""
        candidate = cloud.candidate()
        offer = candidate.offer.model_copy(update={"zone": "use1-az2"})
        request = provider.prepare(candidate.model_copy(update={"offer": offer}), cloud.settings(candidate), "", {})
        assert request.network["zone"].startswith("us-east-1")

    def test_a_price_cap_reaches_ec2(self, cloud: Ec2Face, provider: CloudProvider, attempt: Attempt) -> None:
        """A spot machine above the cap is refused and not bought; one below it is, and on demand no cap is sent."""
        assert attempt.launch is not None
        capped = attempt.launch.model_copy(update={"max_price_usd_hour": Decimal("0.000001")})
        with pytest.raises(TryNextZone) as caught:
            provider.create_instance(attempt.model_copy(update={"launch": capped}))
        assert caught.value.code == "SpotMaxPriceTooLow"
        assert cloud.bought(attempt) == []
        on_demand = an_attempt(cloud, provider).model_copy(update={"launch": capped, "market": "on_demand"})
        assert provider.create_instance(on_demand).allocated_id
        roomy = attempt.launch.model_copy(update={"max_price_usd_hour": Decimal(5) / 3})
        made = an_attempt(cloud, provider).model_copy(update={"launch": roomy})
        assert provider.create_instance(made).allocated_id

    def test_an_announced_take_back_is_told_with_its_time(
        self, cloud: Ec2Face, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """A spot machine that is marked for termination is told while it runs, two minutes ahead."""
        made = provider.create_instance(attempt)
        cloud.pull("interrupt", allocated_id=made.allocated_id)
        event = provider.get_instance_status(made)
        assert event is not None
        assert (event.fault_code, event.marked_for_termination) == ("marked-for-termination", True)
        assert 90 < event.termination_time - time.time() < 130
