"""paperspace for the contract: the adapter over httpx, and the Paperspace face of the local market."""

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import httpx
import pytest

from local import paperspace, paperspace_facts
from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.context import ProviderContext, no_secret
from spotferry.providers.paperspace import api as paperspace_api
from spotferry.providers.paperspace.api import PAGE, Method, PaperspaceApi
from spotferry.providers.paperspace.credentials import ApiKey
from spotferry.providers.paperspace.provider import USER_DATA_LIMIT_BYTES, PaperspaceProvider
from spotferry.types.instance import Attempt, Candidate, Offer
from tests.contract.face_cloud import FaceCloud
from tests.contract.provider_contract_world import World


class CountedApi(PaperspaceApi):
    """The API, with every try counted."""

    def __init__(self, face: "PaperspaceCloud", url: str, *, has_key: bool = True) -> None:
        key = ApiKey((lambda _name: paperspace.API_KEY) if has_key else no_secret)
        super().__init__(key, url, face.timing())
        self._face = face

    def send(
        self, method: Method, path: str, parameters: Mapping[str, str], body: paperspace_api.Json | None
    ) -> httpx.Response:
        """One try."""
        self._face.count()
        return super().send(method, path, parameters, body)


class PaperspaceCloud(FaceCloud):
    """Paperspace as the local market sells it."""

    name = "paperspace"
    sdks = frozenset({"httpx"})
    user_data_limit_bytes = USER_DATA_LIMIT_BYTES
    regions = ("CA1", "NY2")
    longest_try_seconds = paperspace_api.CONNECT_SECONDS + paperspace_api.READ_SECONDS
    sells_spot = False
    takes_price_cap = False
    sells_once = False
    tells_take_backs = False
    disks_grow = True
    nonsense: Sequence[bytes] = (b"<html>Back soon</html>", b"{}", b"[1]", b'{"items": [{"state": "ready"}]}', b"")
    quota_family = paperspace_facts.QUOTA_FAMILY
    launch_operation = "paperspace.machines.create"
    throttled: Mapping[str, object] = MappingProxyType(
        {"code": "TOO_MANY_REQUESTS", "message": "Too many requests", "status": 429}
    )
    denied: Mapping[str, object] = MappingProxyType(
        {"code": "FORBIDDEN", "message": "Your team is not allowed to use this region.", "status": 403}
    )

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._calls = 0
        self._lock = threading.Lock()

    def provider(self, world: World) -> CloudProvider:
        """The adapter, its pauses skipped, its calls counted."""
        return self.provider_at(world, f"{self.url}{paperspace.PREFIX}")

    def provider_at(self, world: World, url: str) -> CloudProvider:
        """The adapter before another service."""
        return self._provider(world, CountedApi(self, url))

    def _provider(self, world: World, api: PaperspaceApi) -> CloudProvider:
        context = ProviderContext(world.deployment, lambda _attempt: world.user_data, world.clock)
        return PaperspaceProvider(context, api)

    @contextmanager
    def provider_without_credentials(self, world: World) -> Iterator[CloudProvider]:
        """The adapter of a deployment that has no key."""
        yield self._provider(world, CountedApi(self, f"{self.url}{paperspace.PREFIX}", has_key=False))

    @contextmanager
    def provider_of_a_mute_service(self, world: World) -> Iterator[tuple[CloudProvider, timedelta]]:
        """The adapter before a socket that takes calls and says nothing, every limit a tenth."""
        with socket.create_server(("127.0.0.1", 0)) as mute, pytest.MonkeyPatch.context() as patch:
            for name in ("CONNECT_SECONDS", "READ_SECONDS", "TOTAL_SECONDS"):
                patch.setattr(paperspace_api, name, getattr(paperspace_api, name) / 10)
            yield self.provider_at(world, f"http://127.0.0.1:{mute.getsockname()[1]}"), timedelta(seconds=2 + 1)

    def count(self) -> None:
        """One call more."""
        with self._lock:
            self._calls += 1
        self.take_time()

    def calls(self) -> int:
        """Counted where the adapter sends."""
        return self._calls

    def calls_for(self, machines: int) -> int:
        """Pages of all that the account has in the region, for there is no look-up by many ids."""
        sold = [m for m in self.machines() if (m["provider"], m["region"]) == (self.name, self.regions[0])]
        return -(-max(machines, len(sold)) // PAGE)

    def candidate(self, region: int = 0) -> Candidate:
        """A small machine on demand."""
        return a_machine(self.regions[region], "C4")

    def candidate_not_sold_there(self) -> Candidate:
        """A type that Paperspace has, and that this region has not."""
        return a_machine("AMS1", "A5000")

    def settings(self, candidate: Candidate) -> RegionSettings:
        """Nothing is set: the newest template, no private network."""
        return RegionSettings(provider=self.name, region=candidate.offer.region)

    def unknown_id(self, number: int = 0) -> str:
        """Of the form that ids have."""
        return f"psz{number:06d}"

    def _of(self, attempt: Attempt) -> Sequence[Mapping[str, Any]]:  # Any: JSON of the levers
        """By the machine's name, for there is no token."""
        return [m for m in self.machines() if str(m["tags"].get("name", "")).endswith(f".{attempt.cedana_id}")]


def a_machine(region: str, instance_type: str) -> Candidate:
    """A machine on demand in a region."""
    kind = paperspace_facts.KINDS[instance_type]
    offer = Offer(
        provider="paperspace",
        region=region,
        zone="",
        instance_type=instance_type,
        vcpus=kind.vcpus,
        memory_gib=float(kind.memory_gib),
        gpu_name=kind.gpu,
        gpu_count=1 if kind.gpu else 0,
        on_demand_usd_hour=kind.usd,
    )
    return Candidate(offer=offer, market="on_demand", price_usd_hour=kind.usd, disk_gb=50)
