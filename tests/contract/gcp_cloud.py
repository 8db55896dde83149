"""gcp for the contract: the adapter over google-cloud-compute, and the Compute Engine face of the local market."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from google.oauth2.credentials import Credentials
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from local.gcp_pricing import TOKEN
from spotferry.ports.cloud import CloudProvider, RegionSettings, SettlesLaunches
from spotferry.providers.context import ProviderContext
from spotferry.providers.gcp import api as gcp_api
from spotferry.providers.gcp import launch
from spotferry.providers.gcp.api import Clients, GcpApi
from spotferry.providers.gcp.describe import PAGE
from spotferry.providers.gcp.provider import GcpProvider
from spotferry.types.errors import CapacityError, NotYet
from spotferry.types.instance import Attempt, Candidate, Offer
from tests.contract.face_cloud import FaceCloud
from tests.contract.provider_contract_world import World
from tests.contract.waiting import wait_until


class _Counter(HTTPAdapter):
    """Counts what the client sends, and says so."""

    def __init__(self, on_send: Callable[[], None]) -> None:
        super().__init__(pool_maxsize=8)
        self._on_send = on_send
        self.sent = 0
        self._lock = threading.Lock()

    # Any: requests passes its own settings through.
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Send it."""
        with self._lock:
            self.sent += 1
        self._on_send()
        return super().send(request, *args, **kwargs)


class GceFace(FaceCloud):
    """Compute Engine as the local market sells it; the environment has the federation that leads there."""

    name = "gcp"
    sdks = frozenset({"google.auth"})
    user_data_limit_bytes = launch.USER_DATA_LIMIT_BYTES
    regions = ("us-central1", "europe-west4")
    longest_try_seconds = gcp_api.ONE_TRY_SECONDS
    takes_price_cap = True
    sells_once = True
    tells_take_backs = True
    quota_family = "gcp"
    launch_operation = "gcp.instances.insert"
    nonsense: Sequence[bytes] = (b"<html>Back soon</html", b'{"message": "not the API"}', b"", b"[]")
    throttled: Mapping[str, object] = MappingProxyType(
        {"code": "rateLimitExceeded", "message": "Quota exceeded for 'Queries per minute'.", "status": 403}
    )
    denied: Mapping[str, object] = MappingProxyType(
        {
            "code": "conditionNotMet",
            "message": "Location violates constraint constraints/gcp.resourceLocations on the resource.",
            "status": 412,
        }
    )

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._counter = _Counter(self.take_time)
        self._clients = self._counted(gcp_api.connect())

    def provider(self, world: World) -> CloudProvider:
        """The adapter, its pauses skipped, its calls counted, over clients that all tests share."""
        return self._provider(world, self._clients)

    def provider_at(self, world: World, url: str) -> CloudProvider:
        """The adapter before another service."""
        # The library is typed only in part.
        return self._provider(world, gcp_api.clients(Credentials(token=TOKEN), "local", url))  # type: ignore[no-untyped-call]

    def _provider(self, world: World, clients: Clients | None) -> CloudProvider:
        context = ProviderContext(world.deployment, lambda _attempt: world.user_data, world.clock)
        timing = self.timing()
        return GcpProvider(context, GcpApi(lambda: clients, timing) if clients else GcpApi(timing=timing))

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
            yield self._provider(world, None)

    @contextmanager
    def provider_of_a_mute_service(self, world: World) -> Iterator[tuple[CloudProvider, timedelta]]:
        """The adapter before a socket that takes calls and says nothing, every limit a tenth."""
        with socket.create_server(("127.0.0.1", 0)) as mute, pytest.MonkeyPatch.context() as patch:
            for name in ("READ_SECONDS", "ONE_TRY_SECONDS", "TOTAL_SECONDS"):
                patch.setattr(gcp_api, name, getattr(gcp_api, name) / 10)
            # A second more: a busy machine takes its time.
            yield self.provider_at(world, f"http://127.0.0.1:{mute.getsockname()[1]}"), timedelta(seconds=2 + 1)

    def settle(self, provider: CloudProvider, made: Attempt) -> Attempt:
        """As CheckLaunch does, until Google has decided."""
        assert isinstance(provider, SettlesLaunches)
        refusal: list[CapacityError | None] = []

        def settled() -> bool:
            with suppress(NotYet):
                refusal.append(provider.settle_launch(made))
            return bool(refusal)

        wait_until(settled, self.patience_seconds)
        if refusal[0] is not None:
            raise refusal[0]
        return made

    def candidate(self, region: int = 0) -> Candidate:
        """A small spot machine."""
        return an_n2(self.regions[region])

    def candidate_not_sold_there(self) -> Candidate:
        """A type that Google has, and that this zone has not."""
        return an_n2(self.regions[0], "n2-standard-128")

    def unknown_id(self, number: int = 0) -> str:
        """In the form of a machine's name."""
        return f"i-{number:040x}"

    def settings(self, candidate: Candidate) -> RegionSettings:
        """The default network, and the vendor's newest image."""
        return RegionSettings(provider="gcp", region=candidate.offer.region)

    def calls(self) -> int:
        """Counted where the client sends."""
        return self._counter.sent

    def calls_for(self, machines: int) -> int:
        """Pages of the deployment's machines in the region."""
        return -(-machines // PAGE)

    def _of(self, attempt: Attempt) -> Sequence[Mapping[str, Any]]:  # Any: JSON of the levers
        """By the name, which no two machines of the face ever have."""
        name = launch.machine_name(attempt.cedana_id)
        return [m for m in self.machines() if m["allocated_id"] == name]


def an_n2(region: str, instance_type: str = "n2-standard-2") -> Candidate:
    """A spot machine in the region's first zone."""
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
