"""One job over all clouds on this machine: taken back by each in turn, it goes on at the next and ends at the last.

`python -m local.demo_clouds` starts a local cloud of its own in which the clouds are open. Before it has a cloud take
the job's machine back it uses up that cloud's quota, so that nothing more is to be had there; where the job goes then
is the broker's own choice, by price. The verdict reads only the API, the bucket and the process table; the last line is
one JSON object.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from local.demo import LOOK_SECONDS, DemoError, Json, read_object, state_dir, submit
from local.demo_story import Story, Teller
from local.demo_verdict import clouds_verdict, verdict
from local.other_offers import CLOUDS
from local.services import StartError
from local.stack import Options, Stack, poll, running

PATIENCE_SECONDS = 300
SPEED_UP = 1.0
"""Notices as long as the clouds' own: half a minute is little enough on a busy laptop, and nobody waits for its end."""
QUOTA_FAMILIES: Mapping[str, str] = {"aws": "Standard", "gcp": "gcp", "azure": "azure"}
"""What each cloud's spot quota is counted in, in the market."""
_COUNT = Path(__file__).parent.parent / "examples" / "count" / "count.py"
# One region of each is enough for a story.
_REGIONS: Mapping[str, str] = {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus", "paperspace": "NY2"}
# What it asks for is cheapest on AWS, then on Google Cloud, Azure and Paperspace, as the market opens.
_JOB = """\
name: clouds
work_dir: "."
instance_specs:
  cpu_cores: 1
  memory_gb: 2
  disk_gb: 50
  regions: [{regions}]
env:
  COUNT_TO: "{steps}"
task:
  run: python3 count.py
"""


@dataclass(frozen=True, slots=True)
class Journey:
    """Where the job is to go.

    Attributes:
        clouds: in order; all but the last take the job's machine back.
        steps_each: how many steps it makes on a machine before that is taken back.
        seed: of the market.
    """

    clouds: Sequence[str] = CLOUDS
    steps_each: int = 3
    seed: int = 1

    @property
    def steps(self) -> int:
        """How far the job counts: on the last machine twice as far as on the others, which are late now and then."""
        return self.steps_each * (len(self.clouds) + 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 only if everything that the verdict asks for is true."""
    journey = _parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end is one like Ctrl-C: all is ended first
    started = time.monotonic()
    options = Options(seed=journey.seed, speed_up=SPEED_UP, tied=True, clouds=tuple(journey.clouds))
    try:
        with state_dir() as folder, running(folder, options) as stack:
            print(f"The local clouds are up after {time.monotonic() - started:.1f} s: {stack.api_url}", flush=True)
            story = travel(stack, journey)
            problems = judge(stack, story, journey)
    except KeyboardInterrupt:
        print("Interrupted; the local cloud and its machines are gone.", file=sys.stderr)
        return 130
    except (DemoError, StartError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    for found in problems:
        print(f"NOT TRUE: {found}", file=sys.stderr)
    print(json.dumps(story.summary() | {"seconds": round(time.monotonic() - started, 1)}), flush=True)
    return 1 if problems else 0


def travel(stack: Stack, journey: Journey) -> Story:
    """Submit, and have each cloud but the last take the job's machine back; until the job is over and all are gone.

    Raises:
        DemoError: it took too long, the job could not be submitted, or the broker went another way.
    """
    with _job_of(journey) as job:
        submitted = submit(stack, job)
    with Teller(stack.api_url, submitted["job"]["job_id"]) as teller:
        teller.tell_choice(submitted["plan"])
        return _watch(stack, journey, teller)


def judge(stack: Stack, story: Story, journey: Journey) -> list[str]:
    """What is not true of the story; empty when all is."""
    found = verdict(story, journey.steps_each, lambda key: read_object(stack, key))
    return [*found, *clouds_verdict(story, journey.clouds, journey.steps)]


def _watch(stack: Stack, journey: Journey, teller: Teller) -> Story:
    deadline = time.monotonic() + PATIENCE_SECONDS
    left: list[str] = []
    while True:
        job = teller.look()
        machine = job["machine"]
        if machine and machine["allocated_id"] and len(left) < len(journey.clouds) - 1:
            cloud = journey.clouds[len(left)]
            if teller.steps_of(machine["epoch"]) >= journey.steps_each and machine["allocated_id"] not in left:
                _leave(stack, machine, cloud, teller)
                left.append(machine["allocated_id"])
        if job["settled"] and teller.log_is_whole:
            return teller.story(interrupted=len(left) == len(journey.clouds) - 1)
        if job["state"] == "DONE":
            poll(stack)  # only EC2 says by itself that a machine is gone
        if time.monotonic() > deadline:
            raise DemoError(f"after {PATIENCE_SECONDS} s the job is still {job['state']}: {job['reason']}")
        time.sleep(LOOK_SECONDS)


def _leave(stack: Stack, machine: Json, cloud: str, teller: Teller) -> None:
    """Use up the cloud's quota, then have it take the machine back."""
    if machine["provider"] != cloud:
        raise DemoError(f"the job is on {machine['provider']}, where {cloud} was to be the cheapest")
    teller.say(
        f"--- {cloud} has no quota left, and takes {machine['allocated_id']} back, at step {teller.last_step} ---"
    )
    family, region = QUOTA_FAMILIES[cloud], _REGIONS[cloud]
    wish = {"provider": cloud, "region": region, "family": family, "purchase": "spot", "vcpus": 0}
    _pull(stack, "quota", wish)
    _pull(stack, "interrupt", {"allocated_id": machine["allocated_id"]})


def _pull(stack: Stack, lever: str, wish: Mapping[str, object]) -> None:
    httpx.post(f"{stack.cloud_url}/_market/{lever}", json=wish, timeout=10).raise_for_status()


@contextmanager
def _job_of(journey: Journey) -> Iterator[Path]:
    """A counting job that any machine can do, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="spotferry-clouds-") as folder:
        shutil.copy(_COUNT, folder)
        job = Path(folder) / "job.yml"
        regions = ", ".join(_REGIONS[cloud] for cloud in journey.clouds)
        job.write_text(_JOB.format(steps=journey.steps, regions=regions), encoding="utf-8")
        yield job


def _parse(arguments: Sequence[str] | None) -> Journey:
    parser = argparse.ArgumentParser(prog="make demo-clouds", description=__doc__)
    all_clouds = ",".join(CLOUDS)
    parser.add_argument("--clouds", default=all_clouds, help=f"in order; the job stays at the last ({all_clouds})")
    parser.add_argument("--steps-each", type=int, default=3, help="steps on a machine before it is taken back (3)")
    parser.add_argument("--seed", type=int, default=1, help="of the market's prices (1)")
    said = parser.parse_args(arguments)
    clouds = tuple(said.clouds.split(","))
    unknown = sorted(set(clouds) - set(CLOUDS))
    if unknown or len(set(clouds)) < len(clouds) or set(clouds[:-1]) - set(QUOTA_FAMILIES):
        parser.error(f"--clouds {said.clouds}: each of {', '.join(CLOUDS)} once at most; paperspace takes nothing back")
    return Journey(clouds, said.steps_each, said.seed)


if __name__ == "__main__":
    sys.exit(main())
