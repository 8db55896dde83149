"""The contract for azure: the adapter, through the compute client, against the resource manager's face."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from spotferry.providers.azure import sweep
from tests.contract.azure_cloud import AzureFace
from tests.contract.face_cloud import market_process
from tests.contract.provider_contract import ProviderContract


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureFace]:
    """One local cloud for all tests; each cleans up after itself. What is not shown is missed sooner here."""
    with market_process(tmp_path_factory.mktemp("arm")) as port, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "VISIBLE_AFTER", timedelta(seconds=2))
        face = AzureFace(port)
        face.calm()
        yield face


class TestAzure(ProviderContract):
    """azure keeps the contract."""
