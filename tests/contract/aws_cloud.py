"""aws for the contract: the adapter over boto3, and the EC2 face of the local market."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType

import boto3
import pytest
from botocore.config import Config

from local.ec2 import public_image_id
from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.aws import api as aws_api
from spotferry.providers.aws import launch
from spotferry.providers.aws.api import AwsApi
from spotferry.providers.aws.describe import IDS_A_CALL
from spotferry.providers.aws.images import PUBLIC_PARAMETERS
from spotferry.providers.aws.provider import AwsProvider
from spotferry.providers.context import ProviderContext
from spotferry.providers.retries import Timing
from spotferry.types.instance import Candidate, Offer
from tests.contract.face_cloud import FaceCloud, SkippedTime
from tests.contract.provider_contract_world import World

Connect = Callable[[aws_api.Service, str], aws_api.Client]


class AwsCloud:
    """What holds for EC2 wherever it is: the adapter, its calls counted, its bounds, a small machine."""

    name = "aws"
    sdks = frozenset({"boto3", "botocore"})
    user_data_limit_bytes = launch.USER_DATA_LIMIT_BYTES
    sells_spot = True
    takes_price_cap = True
    sells_once = True
    tells_take_backs = True
    disks_grow = False
    nonsense: Sequence[bytes] = (b"<html>Back soon</html", b'{"message": "not the API"}', b"")

    def __init__(self, session: boto3.session.Session, url: str | None) -> None:
        self._session = session
        self._endpoint = url
        self._clients: dict[tuple[aws_api.Service, str], aws_api.Client] = {}
        self._calls = 0
        self._lock = threading.RLock()

    def provider(self, world: World) -> CloudProvider:
        """The adapter, its pauses skipped, its calls counted, over clients that all tests share."""
        return self._provider(world, self._shared)

    def provider_at(self, world: World, url: str) -> CloudProvider:
        """The adapter before another service."""
        return self._provider(world, partial(self._connect, self._session, url))

    def _provider(self, world: World, connect: Connect) -> CloudProvider:
        context = ProviderContext(world.deployment, lambda _attempt: world.user_data, world.clock)
        return AwsProvider(context, AwsApi(connect, self._timing()))

    def _timing(self) -> Timing:
        time = SkippedTime()
        return Timing(monotonic=time.monotonic, sleep=time.sleep)

    def _shared(self, service: aws_api.Service, region: str) -> aws_api.Client:
        with self._lock:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._connect(self._session, self._endpoint, service, region)
            return self._clients[service, region]

    def _connect(
        self, session: boto3.session.Session, url: str | None, service: aws_api.Service, region: str
    ) -> aws_api.Client:
        config = Config(
            connect_timeout=aws_api.CONNECT_SECONDS,
            read_timeout=aws_api.READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 1},
        )
        client = session.client(service, region_name=region, endpoint_url=url, config=config)
        client.meta.events.register("before-send.ec2", self._count)
        if url == self._endpoint:
            client.meta.events.register("before-call.ec2.RunInstances", self._on_launch)
        return client

    def _on_launch(self, **_sent: object) -> None:
        """A launch is about to be ordered."""

    def _count(self, **_sent: object) -> None:
        with self._lock:
            self._calls += 1

    @contextmanager
    def provider_without_credentials(self, world: World) -> Iterator[CloudProvider]:
        """The adapter where no source of credentials has any."""
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                patch.delenv(name)
            for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
                patch.setenv(name, os.devnull)
            patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
            session = boto3.session.Session()
            yield self._provider(world, partial(self._connect, session, self._endpoint))

    @contextmanager
    def provider_of_a_mute_service(self, world: World) -> Iterator[tuple[CloudProvider, timedelta]]:
        """The adapter before a socket that takes calls and says nothing, every limit a tenth."""
        with socket.create_server(("127.0.0.1", 0)) as mute, pytest.MonkeyPatch.context() as patch:
            for name in ("CONNECT_SECONDS", "READ_SECONDS", "TOTAL_SECONDS"):
                patch.setattr(aws_api, name, getattr(aws_api, name) / 10)
            # A second more: making the first client takes its time on a busy machine.
            yield (
                self.provider_at(world, f"http://127.0.0.1:{mute.getsockname()[1]}"),
                timedelta(seconds=2 + 1),
            )

    def candidate_not_sold_there(self) -> Candidate:
        """A type that EC2 has, and that this zone has not."""
        return an_m5("us-east-1", "e")

    def unknown_id(self, number: int = 0) -> str:
        """Of the length that ids have."""
        return f"i-{number:017x}"

    def calls_for(self, machines: int) -> int:
        """Ids are looked up in batches."""
        return -(-machines // IDS_A_CALL)

    def calls(self) -> int:
        """Counted where the client sends."""
        return self._calls


class Ec2Face(AwsCloud, FaceCloud):
    """EC2 as the local market sells it."""

    regions = ("us-east-1", "eu-west-1")
    sells_spot = True
    quota_family = "Standard"
    launch_operation = "RunInstances"
    throttled: Mapping[str, object] = MappingProxyType(
        {"code": "RequestLimitExceeded", "message": "Request limit exceeded.", "status": 503}
    )
    denied: Mapping[str, object] = MappingProxyType(
        {
            "code": "UnauthorizedOperation",
            "message": "You are not authorized to perform this with an explicit deny in a service control policy",
            "status": 403,
        }
    )

    longest_try_seconds = aws_api.CONNECT_SECONDS + aws_api.READ_SECONDS

    def __init__(self, port: int) -> None:
        FaceCloud.__init__(self, port)
        AwsCloud.__init__(self, boto3.session.Session("AKIACONTRACT", "not-a-secret"), self.url)

    def _timing(self) -> Timing:
        return self.timing()

    def _count(self, **sent: object) -> None:
        super()._count(**sent)
        self.take_time()

    def candidate(self, region: int = 0) -> Candidate:
        """A small spot machine."""
        return an_m5(self.regions[region], "a")

    def settings(self, candidate: Candidate) -> RegionSettings:
        """The default network, and the image that the vendor's public parameter would name."""
        image = public_image_id(candidate.offer.region, PUBLIC_PARAMETERS["x86_64", False])
        return RegionSettings(provider="aws", region=candidate.offer.region, image_ids={"x86_64": image})


def an_m5(region: str, zone: str, instance_type: str = "m5.large") -> Candidate:
    """A spot machine in a zone of the region."""
    offer = Offer(
        provider="aws",
        region=region,
        zone=f"{region}{zone}",
        instance_type=instance_type,
        vcpus=2,
        memory_gib=8,
        spot_usd_hour=Decimal("0.04"),
    )
    return Candidate(offer=offer, market="spot", price_usd_hour=Decimal("0.04"), disk_gb=20)
