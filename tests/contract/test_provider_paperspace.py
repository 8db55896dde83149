"""The contract for paperspace: the adapter, through httpx, against the Paperspace face of the local cloud."""

from collections.abc import Iterator

import pytest

from local import paperspace
from spotferry.ports.cloud import CloudProvider
from spotferry.providers.paperspace import launch
from spotferry.providers.paperspace.credentials import VARIABLE
from spotferry.providers.paperspace.provider import PaperspaceProvider
from spotferry.types.errors import NotYet, TryNextRegion
from spotferry.types.instance import Attempt
from tests.contract.face_cloud import market_process
from tests.contract.paperspace_cloud import CountedApi, PaperspaceCloud, a_machine
from tests.contract.provider_contract import ProviderContract
from tests.contract.provider_contract_time import SHARES, launch_in_time
from tests.contract.provider_contract_world import a_token, an_attempt, made_now, states, tags
from tests.contract.waiting import wait_until


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaperspaceCloud]:
    """One local cloud for all tests; each cleans up after itself."""
    with pytest.MonkeyPatch.context() as patch, market_process(tmp_path_factory.mktemp("paperspace")) as port:
        patch.delenv(VARIABLE, raising=False)
        face = PaperspaceCloud(port)
        face.calm()
        yield face


@pytest.fixture
def direct(cloud: PaperspaceCloud) -> CountedApi:
    """The API itself, to look behind the adapter."""
    return CountedApi(cloud, f"{cloud.url}{paperspace.PREFIX}")


def scripts(api: CountedApi, attempt: Attempt) -> list[str]:
    """Ids of the attempt's startup scripts."""
    items = api.begin().get("/startup-scripts", {"name": attempt.cedana_id, "limit": "120"})["items"]
    return [script["id"] for script in items]


class TestPaperspace(ProviderContract):
    """paperspace keeps the contract."""

    def test_a_script_lives_as_long_as_its_machine(
        self, provider: CloudProvider, attempt: Attempt, direct: CountedApi
    ) -> None:
        """A launch makes one script, which goes when the machine is ended."""
        made = provider.create_instance(attempt)
        assert len(scripts(direct, attempt)) == 1
        provider.destroy_instance(made)
        assert scripts(direct, attempt) == []

    def test_a_refused_launch_leaves_no_script(
        self, cloud: PaperspaceCloud, provider: CloudProvider, attempt: Attempt, direct: CountedApi
    ) -> None:
        """What the refused machine would have run is not left in the account."""
        cloud.exhaust(cloud.candidate())
        with pytest.raises(TryNextRegion):
            provider.create_instance(attempt)
        assert scripts(direct, attempt) == []

    @pytest.mark.parametrize("share", SHARES)
    def test_a_slow_refusal_with_many_scripts_is_over_in_time(
        self, cloud: PaperspaceCloud, provider: CloudProvider, attempt: Attempt, direct: CountedApi, share: float
    ) -> None:
        """Scripts that earlier calls left are deleted within the launch's time, the rest by whoever asks next."""
        name = launch.name_of("contract", attempt.cedana_id)
        for _ in range(8):
            direct.begin().post("/startup-scripts", launch.script(name, "true"))
        cloud.exhaust(cloud.candidate())
        launch_in_time(cloud, attempt, share)
        with pytest.raises(TryNextRegion):
            provider.create_instance(attempt)
        assert scripts(direct, attempt) == []

    def test_a_machine_with_a_gpu_boots_with_its_drivers(self, cloud: PaperspaceCloud, provider: CloudProvider) -> None:
        """A GPU gets the template that has drivers, everything else plain Ubuntu of the newest release."""
        gpu, plain = a_machine("NY2", "P4000"), cloud.candidate()
        assert provider.prepare(gpu, cloud.settings(gpu), "", tags()).image_id == "tilqt47t"
        assert provider.prepare(plain, cloud.settings(plain), "", tags()).image_id == "t0nspur5"

    def test_a_launch_that_comes_to_nothing_is_settled(self, cloud: PaperspaceCloud, provider: CloudProvider) -> None:
        """A machine that was accepted and never made is told by its create event, in Paperspace's words."""
        assert isinstance(provider, PaperspaceProvider)
        cloud.pull("fail_boots")
        failed = made_now(provider, an_attempt(cloud, provider))
        wait_until(lambda: states(provider, failed) != ["pending"])
        refusal = provider.settle_launch(failed)
        assert isinstance(refusal, TryNextRegion)
        assert "out of capacity" in refusal.message
        wait_until(lambda: not cloud.billing(failed))

    def test_a_launch_that_comes_to_something_is_settled(self, provider: CloudProvider, attempt: Attempt) -> None:
        """A machine that runs is no failed launch; one that nobody knows yet is not settled."""
        assert isinstance(provider, PaperspaceProvider)
        made = made_now(provider, attempt)
        wait_until(lambda: states(provider, made) == ["running"])
        assert provider.settle_launch(made) is None
        with pytest.raises(NotYet):
            provider.settle_launch(made.model_copy(update={"allocated_id": "psz000000", "cedana_id": a_token()}))
