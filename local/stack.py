"""A cloud on a laptop: the emulator with template.yaml deployed into it, and the local spot market beside it.

`up` starts it and leaves it running, `down` ends it, `running` does both around a block of code. All of it lives in one
state folder; stack.json there says where everything is.
"""

import contextlib
import fcntl
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local import azure_pricing, gcp_pricing, paperspace
from local.deploy import REGION, client, deploy, set_up_keys, set_up_regions
from local.machine_image import MachineImage
from local.offers import load_catalogue, load_market
from local.other_offers import network_of, regions_of
from local.services import Service, StartError, answers, clean_environment, free_port
from local.template import Template
from spotferry.agent.removal import remove

DEFAULT_STATE_DIR = Path(".spotferry")
LAUNCH_REGIONS = ("us-east-1", "us-west-2", "eu-west-1")
FUNCTION_CONCURRENCY = 12  # a laptop has no thousand workers to give
START_TRIES = 3
DEFAULT_SPEED_UP = 10.0
SCHEDULED_EVENT = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}


@dataclass(frozen=True, slots=True)
class Options:
    """How a local cloud is to be.

    Attributes:
        seed: of the market's prices and capacity.
        speed_up: how many times faster than in the clouds the market's notices pass.
        auth: have the emulator enforce the functions' policies.
        tied: end everything when this process ends, however it ends.
        parameters: template parameters that differ from the local ones.
        template: instead of the tree's template.yaml.
        image: what machines have in common.
        clouds: whose regions are open and whose offers are in the catalogue, of `other_offers.CLOUDS`.
    """

    seed: int = 1
    speed_up: float = DEFAULT_SPEED_UP
    auth: bool = False
    tied: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    template: Template | None = None
    image: MachineImage = field(default_factory=MachineImage)
    clouds: tuple[str, ...] = ("aws",)


@dataclass(frozen=True, slots=True)
class Stack:
    """A running local cloud: its addresses, and the names of what was deployed (the template's outputs)."""

    state_dir: Path
    api_url: str
    emulator_url: str
    cloud_url: str
    region: str
    bucket: str
    outputs: Mapping[str, str]
    auth: bool = False

    @property
    def functions_environment(self) -> Mapping[str, str]:
        """What points an AWS SDK at this cloud."""
        return {
            "AWS_ENDPOINT_URL": self.emulator_url,
            "AWS_ENDPOINT_URL_EC2": self.cloud_url,
            "AWS_ENDPOINT_URL_PRICING": self.cloud_url,
            **price_sources(self.cloud_url),
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }

    def is_alive(self) -> bool:
        """Whether both of its processes run and answer."""
        return all(service.is_alive() for service in services(self.state_dir)) and answers(_health(self.emulator_url))


def price_sources(cloud_url: str) -> Mapping[str, str]:
    """What points the other clouds' libraries at this cloud."""
    return {
        **gcp_pricing.environment(cloud_url),
        **azure_pricing.environment(cloud_url),
        **paperspace.environment(cloud_url),
    }


def services(state_dir: Path) -> tuple[Service, Service]:
    """The two processes of a local cloud: the emulator and the cloud that sells machines."""
    folder = state_dir.absolute()
    return Service("emulator", folder), Service("cloud", folder)


def read_stack(state_dir: Path) -> Stack | None:
    """The local cloud that was left running in this folder, or None; it may have died since.

    A record that cannot be read counts as none: what runs is ended by the services' own records.
    """
    try:
        record = json.loads((state_dir / "stack.json").read_text(encoding="utf-8"))
        return Stack(**{**record, "state_dir": Path(record["state_dir"])})
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def up(state_dir: Path = DEFAULT_STATE_DIR, options: Options | None = None) -> Stack:
    """Start a local cloud, or return the one that runs in this folder already (its options stay what they were).

    Raises:
        StartError: a process did not start.
        DeployError: the template could not be deployed.
    """
    folder = state_dir.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        running_already = read_stack(folder)
        if running_already is not None and running_already.is_alive():
            sys.stderr.write(f"The local cloud in {folder} is up already.\n")
            return running_already
        _end(folder)
        try:
            return _start(folder, options or Options())
        except BaseException:
            _end(folder)
            raise


def down(state_dir: Path = DEFAULT_STATE_DIR) -> None:
    """End the local cloud in this folder and everything that it started; succeeds when there is none."""
    folder = state_dir.absolute()
    if folder.is_dir():
        with _locked(folder):
            _end(folder)


@contextlib.contextmanager
def running(state_dir: Path, options: Options | None = None) -> Iterator[Stack]:
    """A local cloud for the time of a block; nothing of it is left behind, whatever ends the block."""
    try:
        yield up(state_dir, options)
    finally:
        down(state_dir)


def poll(stack: Stack) -> None:
    """Have poll_status look now instead of within the minute.

    Raises:
        RuntimeError: the function failed; the text is its error.
    """
    answer = client("lambda", stack.emulator_url).invoke(
        FunctionName=stack.outputs["PollStatusFunctionName"],
        Qualifier="live",
        Payload=json.dumps(SCHEDULED_EVENT).encode(),
    )
    body = answer["Payload"].read().decode()
    if "FunctionError" in answer:
        raise RuntimeError(f"poll_status failed: {body}")


def _health(emulator_url: str) -> str:
    return f"{emulator_url}/_ministack/health"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _end(folder: Path) -> None:
    for service in services(folder):
        service.end()
    (folder / "stack.json").unlink(missing_ok=True)
    for leftover in ("emulator", "tmp", "cloud"):
        with contextlib.suppress(OSError):  # what will not go is in nobody's way
            remove(folder / leftover)


def _start(folder: Path, options: Options) -> Stack:
    emulator_url, cloud_url = _start_services(folder, options)
    outputs = deploy(emulator_url, options.parameters, options.template)
    _open_clouds(emulator_url, options.clouds)
    offers = load_catalogue(emulator_url, outputs["BucketName"], LAUNCH_REGIONS, options.clouds)
    load_market(cloud_url, offers)
    stack = Stack(
        state_dir=folder,
        api_url=outputs["ApiUrl"],
        emulator_url=emulator_url,
        cloud_url=cloud_url,
        region=REGION,
        bucket=outputs["BucketName"],
        outputs=outputs,
        auth=options.auth,
    )
    partial = folder / "stack.json.partial"
    partial.write_text(json.dumps({**asdict(stack), "state_dir": str(folder)}, indent=2), encoding="utf-8")
    partial.replace(folder / "stack.json")
    return stack


def _open_clouds(emulator_url: str, clouds: Sequence[str]) -> None:
    """Let jobs be placed in the clouds' regions; AWS's home region is opened by the template."""
    set_up_keys(emulator_url, {paperspace.KEY_NAME: paperspace.API_KEY})
    for cloud in clouds:
        regions = LAUNCH_REGIONS if cloud == "aws" else regions_of(cloud)
        set_up_regions(emulator_url, [region for region in regions if region != REGION], cloud, network_of(cloud))


def _start_services(folder: Path, options: Options) -> tuple[str, str]:
    """Start both processes on ports that were free a moment ago; again when somebody else took one."""
    for tries_left in reversed(range(START_TRIES)):
        try:
            return _start_on(folder, options, free_port(), free_port())
        except StartError:
            for service in services(folder):
                service.end()
            if tries_left == 0:
                raise
    raise AssertionError("START_TRIES is positive")


def _start_on(folder: Path, options: Options, emulator_port: int, cloud_port: int) -> tuple[str, str]:
    emulator, cloud = services(folder)
    emulator_url, cloud_url = f"http://127.0.0.1:{emulator_port}", f"http://127.0.0.1:{cloud_port}"
    env = {
        **clean_environment(folder),
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": emulator_url,
        "AWS_ENDPOINT_URL_EC2": cloud_url,
        "AWS_ENDPOINT_URL_PRICING": cloud_url,
        **price_sources(cloud_url),
        "LAMBDA_ACCOUNT_CONCURRENCY": str(FUNCTION_CONCURRENCY),
    }
    cloud.start(_cloud_command(folder, options, cloud_port, emulator_url), env, tied=options.tied)
    emulator.start(_emulator_command(folder, options, emulator_port), env, tied=options.tied)
    emulator.wait_until_it_answers(_health(emulator_url))
    cloud.wait_until_it_answers(f"{cloud_url}/_market/machines")
    return emulator_url, cloud_url


def _emulator_command(folder: Path, options: Options, port: int) -> Sequence[str]:
    command = [sys.executable, "-m", "local.emulator", "--port", str(port), "--state-dir", str(folder)]
    return [*command, "--auth"] if options.auth else command


def _cloud_command(folder: Path, options: Options, port: int, bus_url: str) -> Sequence[str]:
    command = [sys.executable, "-m", "local.cloud", "--port", str(port), "--state-dir", str(folder / "cloud")]
    command += ["--seed", str(options.seed), "--speed-up", str(options.speed_up), "--bus-endpoint", bus_url]
    programs = [word for program in options.image.programs for word in ("--program", str(program))]
    return [*command, *(["--alike"] if options.image.alike else []), *programs]
