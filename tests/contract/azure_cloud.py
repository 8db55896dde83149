"""azure for the contract: the adapter over the compute client, and the resource manager's face of the local market."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from urllib.request import Request, urlopen

import pytest
from azure.core.credentials import AccessToken

from local import azure_pricing
from local.arm import PAGE
from local.arm_model import SUBSCRIPTION
from spotferry.ports.cloud import CloudProvider, RegionSettings, SettlesLaunches
from spotferry.providers.azure import api as azure_api
from spotferry.providers.azure import launch, sweep
from spotferry.providers.azure.api import AzureApi, Connection
from spotferry.providers.azure.provider import AzureProvider
from spotferry.providers.context import ProviderContext
from spotferry.types.errors import CapacityError, NotYet
from spotferry.types.instance import Attempt, Candidate, Offer
from tests.contract.face_cloud import FaceCloud, SkippedTime
from tests.contract.provider_contract_world import World
from tests.contract.waiting import wait_until

GROUP = "spotferry-contract"
SUBNET = f"/subscriptions/s/resourceGroups/{GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/machines"
AT_ONCE, PATIENT = timedelta(seconds=0.2), sweep.VISIBLE_AFTER
_OTHER_TESTS = 150
"""Machines that the other tests of the module leave: a list of Azure has all of the subscription."""


class OwnTime(SkippedTime, threading.local):
    """Skipped time of each thread's own: the contract launches from several at once."""


class AzureFace(FaceCloud):
    """Azure as the local market sells it; the adapter's credentials are a workload's, handed out by the face."""

    name = "azure"
    sdks = frozenset({"azure"})
    user_data_limit_bytes = launch.USER_DATA_LIMIT_BYTES
    regions = ("eastus", "westeurope")
    longest_try_seconds = azure_api.CONNECT_SECONDS + azure_api.READ_SECONDS
    takes_price_cap = True
    sells_once = True
    tells_take_backs = True
    quota_family = "azure"
    launch_operation = "azure.vm.put"
    nonsense: Sequence[bytes] = (b"<html>Back soon</html", b'{"message": "not the API"}', b"", b"[]")
    throttled: Mapping[str, object] = MappingProxyType(
        {"code": "TooManyRequests", "message": "The request is being throttled.", "status": 429}
    )
    denied: Mapping[str, object] = MappingProxyType(
        {
            "code": "RequestDisallowedByPolicy",
            "message": "Resource was disallowed by policy. Policy: 'Allowed locations'.",
            "status": 403,
        }
    )

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._calls = 0
        self._lock = threading.Lock()
        self._connection = self._connect(self.url)

    def provider(self, world: World) -> CloudProvider:
        """The adapter, its pauses skipped, its calls counted, over a connection that all tests share."""
        return self._provider(world, lambda: self._connection)

    def provider_at(self, world: World, url: str) -> CloudProvider:
        """The adapter before another service."""
        return self._provider(world, lambda: self._connect(url))

    def _provider(self, world: World, connect: Callable[[], Connection]) -> CloudProvider:
        context = ProviderContext(world.deployment, lambda _attempt: world.user_data, world.clock)
        return AzureProvider(context, AzureApi(connect, self.timing(OwnTime())))

    def _connect(self, url: str) -> Connection:
        return azure_api.connection(self, SUBSCRIPTION, f"{url}/_azure/arm")

    def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        """A token of the face: this object is the credential, which each call asks once."""
        with self._lock:
            self._calls += 1
        self.take_time()
        return AccessToken(azure_pricing.TOKEN, int(time.time()) + 3600)

    @contextmanager
    def provider_without_credentials(self, world: World) -> Iterator[CloudProvider]:
        """The adapter as the environment says, which says nothing but the subscription."""
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith(("AZURE_", "IDENTITY_", "MSI_"))]:
                patch.delenv(name)
            patch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
            patch.setenv("AZURE_RESOURCE_MANAGER_URL", f"{self.url}/_azure/arm")
            # A workload's identity of which half is missing; else the library would look for a machine's, for seconds.
            patch.setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:1")
            yield self._provider(world, azure_api.connect)

    @contextmanager
    def provider_of_a_mute_service(self, world: World) -> Iterator[tuple[CloudProvider, timedelta]]:
        """The adapter before a socket that takes calls and says nothing, every limit a tenth."""
        with socket.create_server(("127.0.0.1", 0)) as mute, pytest.MonkeyPatch.context() as patch:
            for name in ("CONNECT_SECONDS", "READ_SECONDS", "TOTAL_SECONDS"):
                patch.setattr(azure_api, name, getattr(azure_api, name) / 10)
            # A second more: a busy machine takes its time.
            yield self.provider_at(world, f"http://127.0.0.1:{mute.getsockname()[1]}"), timedelta(seconds=2 + 1)

    def settle(self, provider: CloudProvider, made: Attempt) -> Attempt:
        """As CheckLaunch does, until Azure has decided."""
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

    def hide_new_machines(self) -> None:
        """For an hour; the adapter is as patient as it is with Azure."""
        super().hide_new_machines()
        sweep.VISIBLE_AFTER = PATIENT

    def calm(self) -> None:
        """What is not shown is missed at once, for here all is shown at once."""
        super().calm()
        sweep.VISIBLE_AFTER = AT_ONCE

    def candidate(self, region: int = 0) -> Candidate:
        """A small spot machine in a zone."""
        return a_d2s(self.regions[region], "1")

    def candidate_not_sold_there(self) -> Candidate:
        """A type that Azure has, and that this cloud's regions have not."""
        return a_d2s("eastus", "1", "Standard_HB120rs_v3")

    def unknown_id(self, number: int = 0) -> str:
        """In the form of a machine's name."""
        return f"i-{number:040x}"

    def settings(self, candidate: Candidate) -> RegionSettings:
        """What Azure cannot do without."""
        network = {"resource_group": GROUP, "subnet_id": SUBNET}
        return RegionSettings(provider="azure", region=candidate.offer.region, network=network)

    def calls(self) -> int:
        """Counted where a token is asked for."""
        return self._calls

    def calls_for(self, machines: int) -> int:
        """Pages of the subscription's list."""
        return -(-(machines + _OTHER_TESTS) // PAGE)

    def names_in_group(self, kind: str) -> Sequence[str]:
        """What there is of one kind beside machines."""
        provider = "Compute" if kind == "disks" else "Network"
        path = f"subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.{provider}/{kind}"
        headers = {"Authorization": f"Bearer {azure_pricing.TOKEN}"}
        with urlopen(Request(f"{self.url}/_azure/arm/{path}", headers=headers), timeout=10) as answer:
            return [row["name"] for row in json.load(answer)["value"]]

    def _of(self, attempt: Attempt) -> Sequence[Mapping[str, Any]]:  # Any: JSON of the levers
        """By the machine's name; of a name that was used twice both machines are on the list."""
        return [m for m in self.machines() if m["allocated_id"] == attempt.cedana_id]


def a_d2s(region: str, zone: str, instance_type: str = "Standard_D2s_v5") -> Candidate:
    """A spot machine in a zone of the region."""
    offer = Offer(
        provider="azure",
        region=region,
        zone=zone,
        instance_type=instance_type,
        vcpus=2,
        memory_gib=8,
        spot_usd_hour=Decimal("0.02"),
    )
    return Candidate(offer=offer, market="spot", price_usd_hour=Decimal("0.02"), disk_gb=32)
