"""`spotferry local`: the cloud on a laptop."""

import time
from collections.abc import Callable

import click
import httpx

from cli.api import broker
from cli.endpoint import local_stack
from cli.errors import Failed, UsageProblem
from cli.given import ID
from cli.job_paths import job_path
from cli.output import Json, place, print_json, say
from cli.settings import settings
from local.deploy import DeployError
from local.other_offers import CLOUDS
from local.services import StartError
from local.stack import DEFAULT_SPEED_UP, Options, read_stack
from local.stack import down as end_stack
from local.stack import up as start_stack
from spotferry.types.words import MOST_TOLD, cut


@click.group()
def local() -> None:
    """A cloud on this machine: the broker as it is deployed, and a market of machines that are processes here."""


@local.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Of the market's prices and capacity.")
@click.option(
    "--speed-up",
    type=click.FloatRange(1, 1000),
    default=DEFAULT_SPEED_UP,
    show_default=True,
    help="How many times faster than in the clouds notices pass.",
)
@click.option(
    "--clouds",
    default="aws",
    show_default=True,
    help=f"Whose regions are open, with commas between them: {', '.join(CLOUDS)}.",
)
@click.option("--enforce-iam", is_flag=True, help="Hold the functions to their policies.")
@click.option("--foreground", is_flag=True, help="Stay until Ctrl-C, then end it.")
@click.option("--json", "as_json", is_flag=True, help="Print its addresses as one JSON document.")
def up(seed: int, speed_up: float, clouds: str, *, enforce_iam: bool, foreground: bool, as_json: bool) -> None:
    """Start it, or say where it runs already."""
    opened = _clouds(clouds)
    folder = settings().state_dir()
    local_stack(folder)  # so that a damaged record is said, with what to do
    options = Options(seed=seed, speed_up=speed_up, auth=enforce_iam, tied=foreground, clouds=opened)
    try:
        stack = start_stack(folder, options)
    except (StartError, DeployError) as error:
        raise Failed(f"the local cloud did not start: {error}") from error
    if as_json:
        print_json({"api_url": stack.api_url, "cloud_url": stack.cloud_url, "state_dir": str(stack.state_dir)})
    else:
        click.echo(stack.api_url)
        say(f"The local cloud is up; its state is in {stack.state_dir}. `spotferry local down` ends it.")
    if foreground:
        _stay(lambda: end_stack(folder))


def _clouds(text: str) -> tuple[str, ...]:
    """The clouds that were named.

    Raises:
        UsageProblem: one of them is none that can be opened here.
    """
    named = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in named if name not in CLOUDS]
    if unknown or not named:
        raise UsageProblem(f"--clouds {text}: known are {', '.join(CLOUDS)}")
    return named


def _stay(end: Callable[[], None]) -> None:
    try:
        while True:
            time.sleep(3600)
    finally:
        end()


@local.command()
def down() -> None:
    """End it and every machine in it; jobs and outputs in it are gone."""
    folder = settings().state_dir()
    was_up = (folder / "stack.json").exists()
    end_stack(folder)
    say(f"The local cloud in {folder} is down." if was_up else "No local cloud was up here.")


@local.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def status(*, as_json: bool) -> None:
    """Say whether it runs, and where; exit status 1 when it does not."""
    folder = settings().state_dir()
    stack = read_stack(folder) if local_stack(folder) else None
    alive = stack is not None and stack.is_alive()
    if as_json:
        urls = {"api_url": stack.api_url, "cloud_url": stack.cloud_url} if stack is not None else {}
        print_json({"up": alive, "state_dir": str(folder), **urls})
    elif stack is None:
        click.echo("not up")
    else:
        click.echo(f"{'up' if alive else 'dead'}  {stack.api_url}")
        say(f"state in {folder}" + ("" if alive else "; `spotferry local up` starts it anew"))
    click.get_current_context().exit(0 if alive else 1)


@local.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option(
    "--notice",
    "notice_seconds",
    type=click.FloatRange(0, 86_400),
    metavar="SECONDS",
    help="Time between notice and end [default: the cloud's own, shortened by the speed-up].",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def interrupt(job_id: str, notice_seconds: float | None, *, as_json: bool) -> None:
    """Have the market take back the machine that a job runs on."""
    cloud_url = str(local_stack(settings().state_dir()).get("cloud_url") or "")
    if not cloud_url:
        raise UsageProblem("no local cloud is up here; start one by `spotferry local up`")
    job = broker().request("GET", job_path(job_id))
    machine = job.get("machine") or {}
    attempt: Json = next((i for i in job["instances"] if i["instance_id"] == machine.get("instance_id")), {})
    allocated_id = machine.get("allocated_id") or attempt.get("allocated_id")
    if not allocated_id:
        raise UsageProblem(f"JOB: {job_id} is {job['state']} and has no machine to take back")
    notice = {} if notice_seconds is None else {"notice_seconds": notice_seconds}
    answer = _tell_market(cloud_url, {"allocated_id": allocated_id, **notice})
    if as_json:
        print_json({"allocated_id": allocated_id, **notice, "market": answer})
    else:
        click.echo(f"{allocated_id} ({place(machine)}) gets its notice now")


def _tell_market(cloud_url: str, order: dict[str, object]) -> object:
    try:
        with httpx.Client(transport=settings().transport, timeout=10.0) as client:
            answer = client.post(f"{cloud_url}/_market/interrupt", json=order)
    except httpx.TransportError as error:
        raise Failed(f"the local market does not answer ({error}); see `spotferry local status`") from error
    if answer.is_success:
        return answer.json() if answer.content else {}
    error_class = UsageProblem if answer.is_client_error else Failed
    raise error_class(f"the local market refused ({answer.status_code}): {cut(answer.text, MOST_TOLD)}")
