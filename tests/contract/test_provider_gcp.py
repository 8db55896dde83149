"""The contract for gcp: the adapter, through google-cloud-compute, against the local cloud's Compute Engine face."""

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("google.cloud.compute_v1", reason="google-cloud-compute is not installed")
from google.oauth2.credentials import Credentials
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from local.gcp_pricing import TOKEN, environment
from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.context import ProviderContext
from spotferry.providers.gcp import api as gcp_api
from spotferry.providers.gcp import launch
from spotferry.providers.gcp.api import Clients, GcpApi, Pace
from spotferry.providers.gcp.describe import PAGE
from spotferry.providers.gcp.provider import GcpProvider
from spotferry.types.errors import NotYet, TryNextType, TryNextZone
from spotferry.types.instance import Attempt, Candidate, Offer
from tests.contract.local_cloud import LocalCloud, local_cloud
from tests.contract.provider_contract import MANY, ProviderContract
from tests.contract.provider_contract_world import World, an_attempt, made_now, states
from tests.contract.waiting import wait_until

REGIONS = ("us-central1", "europe-west4")
CONSTANTS = ("READ_SECONDS", "ONE_TRY_SECONDS", "TOTAL_SECONDS")


class FastPace:
    """Pauses that pass at once, and still count against the deadline."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def pace(self) -> Pace:
        """What the adapter is given."""
        return Pace(monotonic=lambda: time.monotonic() + self._skipped, sleep=self._skip)

    def _skip(self, seconds: float) -> None:
        self._skipped += seconds


class Counter(HTTPAdapter):
    """Counts what the client sends."""

    def __init__(self) -> None:
        super().__init__(pool_maxsize=8)
        self.sent = 0
        self._lock = threading.Lock()

    # Any: requests passes its own settings through.
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Send it."""
        with self._lock:
            self.sent += 1
        return super().send(request, *args, **kwargs)


class GceFace:
    """The local cloud in a process of its own, without machines behind it."""

    user_data_limit_bytes = launch.USER_DATA_LIMIT_BYTES
    batch = PAGE

    def __init__(self, cloud: LocalCloud) -> None:
        self._cloud = cloud
        self._counter = Counter()
        self._clients = self._counted(gcp_api.connect())

    def provider(self, world: World) -> CloudProvider:
        """The adapter, its pauses skipped, its calls counted, over clients that all tests share."""
        return self._provider(world, GcpApi(lambda: self._clients, FastPace().pace()))

    def _provider(self, world: World, api: GcpApi) -> CloudProvider:
        return GcpProvider(ProviderContext(world.deployment, lambda _attempt: world.user_data, world.clock), api)

    def _counted(self, clients: Clients) -> Clients:
        for client in (clients.instances, clients.operations, clients.images):
            transport: Any = client.transport  # Any: the SDK's type of it does not know its own session
            transport._session.mount("http://", self._counter)
        return clients

    @contextmanager
    def provider_without_credentials(self, world: World) -> Iterator[CloudProvider]:
        """The adapter where no source of credentials has any."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("GCP_FEDERATION", "GOOGLE_APPLICATION_CREDENTIALS"):
                patch.delenv(name, raising=False)
            patch.setenv("CLOUDSDK_CONFIG", os.devnull)
            patch.setenv("NO_GCE_CHECK", "true")
            yield self._provider(world, GcpApi(pace=FastPace().pace()))

    @contextmanager
    def provider_of_a_mute_service(self, world: World) -> Iterator[tuple[CloudProvider, timedelta]]:
        """The adapter before a socket that takes calls and says nothing, every limit a tenth."""
        with socket.create_server(("127.0.0.1", 0)) as mute, pytest.MonkeyPatch.context() as patch:
            for name in CONSTANTS:
                patch.setattr(gcp_api, name, getattr(gcp_api, name) / 10)
            # The library is typed only in part.
            credentials = Credentials(token=TOKEN)  # type: ignore[no-untyped-call]
            endpoint = f"http://127.0.0.1:{mute.getsockname()[1]}"
            made = gcp_api.clients(credentials, "local", endpoint)
            yield self._provider(world, GcpApi(lambda: made, FastPace().pace())), timedelta(seconds=2 + 1)

    def candidate(self, region: int = 0) -> Candidate:
        """A small spot machine."""
        return _candidate(REGIONS[region], "n2-standard-2")

    def candidate_not_sold_there(self) -> Candidate:
        """A type that Google has, and that this zone has not."""
        return _candidate(REGIONS[0], "n2-standard-128")

    def settings(self, candidate: Candidate) -> RegionSettings:
        """The default network, and the vendor's newest image."""
        return RegionSettings(provider="gcp", region=candidate.offer.region)

    def bought(self, attempt: Attempt) -> Sequence[str]:
        """By the name, which no two machines of the face ever have."""
        name = launch.machine_name(attempt.cedana_id)
        return [m["allocated_id"] for m in self._cloud.machines() if m["allocated_id"] == name]

    def calls(self) -> int:
        """Counted where the client sends."""
        return self._counter.sent

    def calm(self) -> None:
        """No faults, plenty of everything, machines shown at once."""
        self.pull("clear_faults")
        self.pull("visibility", seconds=0)
        self.pull("capacity", machines=5 * MANY)
        for region in REGIONS:
            self.pull("quota", provider="gcp", family="gcp", region=region, vcpus=100 * MANY)

    def exhaust(self, candidate: Candidate) -> None:
        """Nothing of the type in the zone."""
        self.pull("exhaust", zone=candidate.offer.zone, instance_type=candidate.offer.instance_type)

    def use_up_quota(self, candidate: Candidate) -> None:
        """No vCPU of the region's quota."""
        self.pull("quota", provider="gcp", family="gcp", region=candidate.offer.region, vcpus=0)

    def throttle(self, times: int) -> None:
        """Every operation."""
        self.pull("throttle", times=times)

    def fail_next(self, code: str) -> None:
        """One launch."""
        self.pull("fail", operation="gcp.instances.insert", code=code)

    def lose_answers(self, times: int) -> None:
        """Launches, after they were accepted."""
        self.pull("lose_answers", operation="gcp.instances.insert", times=times)

    def hide_new_machines(self) -> None:
        """For an hour."""
        self.pull("visibility", seconds=3600)

    def revoke_credentials(self) -> None:
        """Every account."""
        self.pull("credentials/revoke")

    def deny_region(self, candidate: Candidate) -> None:
        """By the organisation's policy about locations."""
        self.pull("regions/deny", region=candidate.offer.region)

    def end_without_notice(self, attempt: Attempt) -> None:
        """As a preemption whose notice nobody saw."""
        self.pull("interrupt", allocated_id=attempt.allocated_id, notice_seconds=0)

    def pull(self, lever: str, **body: object) -> None:
        """A lever."""
        self._cloud.lever(lever, body)


def _candidate(region: str, instance_type: str) -> Candidate:
    offer = Offer(
        provider="gcp",
        region=region,
        zone=f"{region}-a",
        instance_type=instance_type,
        vcpus=2,
        memory_gib=8,
        spot_usd_hour=Decimal("0.03"),
    )
    return Candidate(offer=offer, market="spot", price_usd_hour=Decimal("0.03"), disk_gb=20)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GceFace]:
    """One local cloud for all tests, reached by federation from AWS; each test cleans up after itself."""
    options = ("--no-metal", "--speed-up", "1", "--boot-seconds", "0.1")
    with local_cloud(tmp_path_factory.mktemp("gce"), *options) as running, pytest.MonkeyPatch.context() as patch:
        aws = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
        for name, value in {**environment(f"http://127.0.0.1:{running.port}"), **aws}.items():
            patch.setenv(name, value)
        face = GceFace(running)
        face.calm()
        yield face


class TestGcp(ProviderContract):
    """gcp keeps the contract."""

    def test_a_launch_that_was_accepted_and_came_to_nothing(
        self, cloud: GceFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """It is told once its operation has ended, with the operation's code; the machine is gone without an order."""
        assert isinstance(provider, GcpProvider)
        cloud.pull("fail_boots")
        made = provider.create_instance(attempt)
        assert (made.allocated_id, made.state) == (attempt.cedana_id, "pending")
        assert isinstance(made, Attempt)
        wait_until(lambda: _is_settled(provider, made))
        refusal = provider.settle_launch(made)
        assert isinstance(refusal, TryNextZone)
        assert (refusal.code, refusal.scope) == ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "pool")
        wait_until(lambda: states(provider, made) == ["terminated"])
        [gone] = provider.describe_instance([made], "")
        assert isinstance(gone, Attempt)
        assert (gone.state, gone.ended_by) == ("terminated", "launch")
        assert gone.cloud_reason.startswith("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: ")
        with pytest.raises(TryNextZone):
            provider.create_instance(attempt)

    def test_a_launch_that_made_its_machine_is_settled(self, provider: CloudProvider, attempt: Attempt) -> None:
        """There is nothing to tell of it, nor of a launch that nobody knows."""
        assert isinstance(provider, GcpProvider)
        assert provider.settle_launch(attempt) is None
        made = made_now(provider, attempt)
        wait_until(lambda: _is_settled(provider, made))
        assert provider.settle_launch(made) is None
        assert states(provider, made) == ["running"]

    def test_a_quota_of_all_regions_closes_the_type_everywhere(
        self, cloud: GceFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """An operation that fails for want of GPUs in all regions together."""
        words = "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."
        cloud.pull("fail", operation="gcp.instances.insert.operation", code="QUOTA_EXCEEDED", message=words)
        with pytest.raises(TryNextType, match="GPUS_ALL_REGIONS") as caught:
            provider.create_instance(attempt)
        assert caught.value.scope == "type"

    def test_a_machine_that_is_being_taken_back_is_told_while_it_stops(
        self, cloud: GceFace, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """By the preemption's operation, with its time; one of another's order is not marked."""
        made = made_now(provider, attempt)
        wait_until(lambda: states(provider, made) == ["running"])
        cloud.end_without_notice(made)
        wait_until(lambda: states(provider, made) != ["running"])
        event = provider.get_instance_status(made)
        assert event is not None
        assert (event.fault_code, event.marked_for_termination) == ("compute.instances.preempted", True)

    def test_on_demand(self, provider: CloudProvider, attempt: Attempt) -> None:
        """The same machine without the spot market."""
        made = made_now(provider, attempt.model_copy(update={"market": "on_demand"}))
        wait_until(lambda: states(provider, made) == ["running"])

    def test_a_name_that_another_machine_has(self, provider: CloudProvider, cloud: GceFace, attempt: Attempt) -> None:
        """A launch whose request Google has forgotten finds its machine by the name; another's it leaves alone."""
        made = made_now(provider, attempt)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(launch, "request_id", lambda _id: "5b1c9d0e-6f5b-4f0c-9d43-000000000001")
            assert provider.create_instance(attempt).allocated_id == made.allocated_id
            foreign = cloud.provider(World(deployment="another"))
            assert foreign.find_instance(attempt) is None


def _is_settled(provider: GcpProvider, attempt: Attempt) -> bool:
    try:
        provider.settle_launch(attempt)
    except NotYet:
        return False
    return True


def test_an_attempt_is_launched_under_its_own_name(cloud: GceFace) -> None:
    """The machine's name is the attempt's id, which is what notices will say."""
    provider = cloud.provider(World())
    attempt = an_attempt(cloud, provider)
    assert provider.create_instance(attempt).allocated_id == attempt.cedana_id
