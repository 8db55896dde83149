"""What every cloud's adapter promises: one suite, run through the official client against that cloud's wire face.

A cloud's own test file is a subclass of `ProviderContract` in which a fixture `cloud` is a `Cloud`, and little else.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.providers import registry
from spotferry.types.instance import Attempt
from tests.contract.provider_contract_buying import Buying
from tests.contract.provider_contract_ending import Ending
from tests.contract.provider_contract_refusals import Refusals
from tests.contract.provider_contract_time import InTime
from tests.contract.provider_contract_world import SDKS, Cloud, World, a_token, an_attempt, launched, made_now, states
from tests.contract.waiting import wait_until

MANY = 1200


class ProviderContract(Buying, Ending, Refusals, InTime):
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

    def test_its_name_is_its_folders(self, cloud: Cloud, provider: CloudProvider) -> None:
        """The registry, the adapter and its offers call the cloud by one name."""
        assert cloud.name in registry.names()
        assert provider.name() == cloud.name == cloud.candidate().offer.provider
        assert cloud.candidate().market == ("spot" if cloud.sells_spot else "on_demand")

    def test_loading_it_imports_no_other_sdk(self, cloud: Cloud) -> None:
        """A function that launches on this cloud pays for this cloud's libraries only."""
        code = (
            f"import json, sys; from spotferry.providers import registry; registry.load({cloud.name!r});"
            f"print(json.dumps([name for name in {SDKS!r} if name in sys.modules]))"
        )
        path = str(Path(registry.__file__).parents[2])
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, check=True, text=True, timeout=60)
        assert set(json.loads(done.stdout)) <= cloud.sdks

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

    def test_a_machine_comes_to_run_and_has_an_address(
        self, cloud: Cloud, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """What was bought is pending, then running, with an address."""
        made = launched(cloud, provider, attempt)
        wait_until(lambda: states(provider, made) == ["running"], cloud.patience_seconds)
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
        assert cloud.calls() - before <= cloud.calls_for(MANY)
        lost = {7, MANY - 1}
        asked = [
            a.model_copy(update={"allocated_id": cloud.unknown_id(n)}) if n in lost else a for n, a in enumerate(fleet)
        ]
        before = cloud.calls()
        gone = {n for n, s in enumerate(provider.describe_instance(asked, "")) if s.state == "terminated"}
        assert gone == lost
        assert cloud.calls() - before <= cloud.calls_for(MANY) + 2

    def test_what_is_announced_for_1200_machines(self, cloud: Cloud, fleet: Sequence[Attempt]) -> None:
        """Of machines that just run there is nothing to say, and to find that out takes no call for each."""
        provider = cloud.provider(World(deployment="fleet"))
        seen = provider.describe_instance(fleet, "")
        before = cloud.calls()
        assert provider.get_instance_statuses(seen) == {}
        assert cloud.calls() - before <= cloud.calls_for(MANY)

    def test_the_owned_list_is_ours_and_whole(self, cloud: Cloud, fleet: Sequence[Attempt]) -> None:
        """Pages are followed to the end; a machine of another deployment is not ours; the attempt is told by its id."""
        provider = cloud.provider(World(deployment="fleet"))
        neighbour = cloud.provider(World(deployment="fleet-2"))
        other = neighbour.create_instance(an_attempt(cloud, neighbour, deployment="fleet-2"))
        owned = {o.allocated_id: o.cedana_id for o in provider.owned_instances(fleet[0].region)}
        assert owned == {a.allocated_id: a.cedana_id for a in fleet}
        assert other.allocated_id not in owned

    def test_the_owned_list_is_of_one_region(self, cloud: Cloud) -> None:
        """A machine elsewhere belongs to another region's list."""
        provider = cloud.provider(World(deployment="two-regions"))
        here, there = [
            made_now(provider, an_attempt(cloud, provider, cloud.candidate(region), deployment="two-regions"))
            for region in (0, 1)
        ]
        for made in (here, there):
            [owned] = provider.owned_instances(made.region)
            assert (owned.allocated_id, owned.region) == (made.allocated_id, made.region)
            assert owned.created_at is not None
            provider.destroy_instance(made)

    @pytest.fixture(scope="class")
    @classmethod
    def fleet(cls, cloud: Cloud) -> Sequence[Attempt]:
        """As many machines as a poll must manage, in one region, of a deployment of their own."""
        cloud.stock_up(MANY)
        provider = cloud.provider(World(deployment="fleet"))
        first = an_attempt(cloud, provider, deployment="fleet")
        attempts = [first.model_copy(update={"cedana_id": a_token()}) for _ in range(MANY)]
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda attempt: made_now(provider, attempt), attempts))
