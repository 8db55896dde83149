"""The contract for aws: the adapter, through boto3, against the EC2 face of the local cloud."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import boto3
import pytest
from botocore.config import Config

from local.ec2 import public_image_id
from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.aws import api as aws_api
from spotferry.providers.aws import launch
from spotferry.providers.aws.api import AwsApi, Pace
from spotferry.providers.aws.describe import IDS_A_CALL
from spotferry.providers.aws.images import PUBLIC_PARAMETERS
from spotferry.providers.aws.provider import AwsProvider
from spotferry.providers.context import ProviderContext
from spotferry.types.errors import TryNextZone
from spotferry.types.instance import Attempt, Candidate, Offer
from tests.contract.provider_contract import MANY, ProviderContract
from tests.contract.provider_contract_world import World, an_attempt

REGIONS = ("us-east-1", "eu-west-1")
Connect = Callable[[aws_api.Service, str], aws_api.Client]


class FastPace:
    """Pauses that pass at once, and still count against the deadline."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def pace(self) -> Pace:
        """What the adapter is given."""
        return Pace(monotonic=lambda: time.monotonic() + self._skipped, sleep=self._skip)

    def _skip(self, seconds: float) -> None:
        self._skipped += seconds


class Ec2Face:
    """The local cloud in a process of its own, without machines behind it."""

    user_data_limit_bytes = launch.USER_DATA_LIMIT_BYTES
    batch = IDS_A_CALL

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._session = boto3.session.Session("AKIACONTRACT", "not-a-secret")
        self._clients: dict[tuple[aws_api.Service, str], aws_api.Client] = {}
        self._calls = 0
        self._lock = threading.RLock()

    def provider(self, world: World) -> CloudProvider:
        """The adapter, its pauses skipped, its calls counted, over clients that all tests share."""
        return self._provider(world, self._shared)

    def _provider(self, world: World, connect: Connect) -> CloudProvider:
        context = ProviderContext(world.deployment, lambda _attempt: world.user_data, world.clock)
        return AwsProvider(context, AwsApi(connect, FastPace().pace()))

    def _shared(self, service: aws_api.Service, region: str) -> aws_api.Client:
        with self._lock:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._connect(self._session, self._url, service, region)
            return self._clients[service, region]

    def _connect(
        self, session: boto3.session.Session, url: str, service: aws_api.Service, region: str
    ) -> aws_api.Client:
        config = Config(
            connect_timeout=aws_api.CONNECT_SECONDS,
            read_timeout=aws_api.READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 1},
        )
        client = session.client(service, region_name=region, endpoint_url=url, config=config)
        client.meta.events.register("before-send.ec2", self._count)
        return client

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
            yield self._provider(world, partial(self._connect, session, self._url))

    @contextmanager
    def provider_of_a_mute_service(self, world: World) -> Iterator[tuple[CloudProvider, timedelta]]:
        """The adapter before a socket that takes calls and says nothing, every limit a tenth."""
        with socket.create_server(("127.0.0.1", 0)) as mute, pytest.MonkeyPatch.context() as patch:
            for name in ("CONNECT_SECONDS", "READ_SECONDS", "TOTAL_SECONDS", "_ONE_TRY_SECONDS"):
                patch.setattr(aws_api, name, getattr(aws_api, name) / 10)
            connect = partial(self._connect, self._session, f"http://127.0.0.1:{mute.getsockname()[1]}")
            # A second more: making the first client takes its time on a busy machine.
            yield self._provider(world, connect), timedelta(seconds=2 + 1)

    def candidate(self, region: int = 0) -> Candidate:
        """A small spot machine."""
        return _candidate(REGIONS[region], "a")

    def candidate_not_sold_there(self) -> Candidate:
        """A type that EC2 has, and that this zone has not."""
        candidate = self.candidate()
        offer = candidate.offer.model_copy(update={"zone": "us-east-1e"})
        return candidate.model_copy(update={"offer": offer})

    def settings(self, candidate: Candidate) -> RegionSettings:
        """The default network, and the image that the vendor's public parameter would name."""
        image = public_image_id(candidate.offer.region, PUBLIC_PARAMETERS["x86_64", False])
        return RegionSettings(provider="aws", region=candidate.offer.region, image_ids={"x86_64": image})

    def bought(self, attempt: Attempt) -> Sequence[str]:
        """By the client token, whatever became of it."""
        return [m["allocated_id"] for m in self._machines() if m["client_token"] == attempt.cedana_id]

    def calls(self) -> int:
        """Counted where the client sends."""
        return self._calls

    def calm(self) -> None:
        """No faults, plenty of everything, machines shown at once."""
        self._pull("clear_faults")
        self._pull("visibility", seconds=0)
        self._pull("capacity", machines=5 * MANY)
        for region in REGIONS:
            self._pull("quota", region=region, vcpus=100 * MANY)

    def exhaust(self, candidate: Candidate) -> None:
        """Nothing of the type in the zone."""
        self._pull("exhaust", zone=candidate.offer.zone, instance_type=candidate.offer.instance_type)

    def use_up_quota(self, candidate: Candidate) -> None:
        """No vCPU of the region's spot quota."""
        self._pull("quota", region=candidate.offer.region, vcpus=0)

    def throttle(self, times: int) -> None:
        """Every operation."""
        self._pull("throttle", times=times)

    def fail_next(self, code: str) -> None:
        """One launch."""
        self._pull("fail", operation="RunInstances", code=code)

    def lose_answers(self, times: int) -> None:
        """Launches, after they were carried out."""
        self._pull("lose_answers", operation="RunInstances", times=times)

    def hide_new_machines(self) -> None:
        """For an hour."""
        self._pull("visibility", seconds=3600)

    def revoke_credentials(self) -> None:
        """Every key."""
        self._pull("credentials/revoke")

    def deny_region(self, candidate: Candidate) -> None:
        """With the words of a service control policy."""
        words = "You are not authorized to perform this operation with an explicit deny in a service control policy"
        region = candidate.offer.region
        self._pull(
            "fail", operation="*", region=region, times=1000, code="UnauthorizedOperation", message=words, status=403
        )

    def end_without_notice(self, attempt: Attempt) -> None:
        """As a spot interruption whose notice nobody saw."""
        self._pull("interrupt", allocated_id=attempt.allocated_id, notice_seconds=0)

    def pull(self, lever: str, **body: object) -> None:
        """A lever of this cloud's own tests."""
        self._pull(lever, **body)

    def _pull(self, lever: str, **body: object) -> None:
        request = Request(f"{self._url}/_market/{lever}", json.dumps(body).encode(), method="POST")
        with urlopen(request, timeout=10) as answer:
            assert answer.status == 200

    def _machines(self) -> list[dict[str, str]]:
        with urlopen(f"{self._url}/_market/machines", timeout=10) as answer:
            machines: list[dict[str, str]] = json.load(answer)
        return machines


def _candidate(region: str, zone: str) -> Candidate:
    offer = Offer(
        provider="aws",
        region=region,
        zone=f"{region}{zone}",
        instance_type="m5.large",
        vcpus=2,
        memory_gib=8,
        spot_usd_hour=Decimal("0.04"),
    )
    return Candidate(offer=offer, market="spot", price_usd_hour=Decimal("0.04"), disk_gb=20)


@contextmanager
def local_cloud(state_dir: Path) -> Iterator[int]:
    """The local cloud's port; the process ends with the block."""
    command = [sys.executable, "-m", "local.cloud", "--no-metal", "--state-dir", str(state_dir)]
    command += ["--speed-up", "1", "--boot-seconds", "0.1"]
    with (state_dir / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=Path(__file__).parents[2])
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (state_dir / "log").read_text()
            yield int(json.loads(line)["port"])
        finally:
            process.terminate()
            process.communicate(timeout=20)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ec2Face]:
    """One local cloud for all tests; each cleans up after itself."""
    with local_cloud(tmp_path_factory.mktemp("ec2")) as port:
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
