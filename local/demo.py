"""The main job on this machine: submitted, interrupted in the middle, restored elsewhere, done, and proven to be so.

`python -m local.demo` starts a local cloud of its own, runs one job through it, tells the story as it happens and ends
everything. The verdict reads only the API, the bucket and the process table; the last line is one JSON object.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from local.demo_story import Story, Teller
from local.demo_verdict import verdict
from local.deploy import client
from local.services import StartError
from local.stack import Options, Stack, running

Json = dict[str, Any]  # Any: JSON of the API

PATIENCE_SECONDS = 240
LOOK_SECONDS = 0.25
_EXAMPLE = Path(__file__).parent.parent / "examples" / "count" / "job.yml"


class DemoError(Exception):
    """The story did not come to its end; the text says where it stopped."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What to run and when to interrupt it.

    Attributes:
        job: path of the job file.
        interrupt_at: the step at whose print the machine is taken back.
        seed: of the market.
    """

    job: Path
    interrupt_at: int
    seed: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 only if everything that the verdict asks for is true."""
    wish = _parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end is one like Ctrl-C: all is ended first
    started = time.monotonic()
    try:
        with state_dir() as folder, running(folder, Options(seed=wish.seed, tied=True)) as stack:
            print(f"The local cloud is up after {time.monotonic() - started:.1f} s: {stack.api_url}", flush=True)
            story = play(stack, wish)
            problems = verdict(story, wish.interrupt_at, lambda key: read_object(stack, key))
    except KeyboardInterrupt:
        print("Interrupted; the local cloud and its machines are gone.", file=sys.stderr)
        return 130
    except (DemoError, StartError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    for found in problems:
        print(f"NOT TRUE: {found}", file=sys.stderr)
    summary = story.summary() | {"seconds": round(time.monotonic() - started, 1)}
    print(json.dumps(summary), flush=True)
    return 1 if problems else 0


def play(stack: Stack, wish: Wish) -> Story:
    """Submit, watch, interrupt at the step, watch on until the job is over and its machines are gone.

    Raises:
        DemoError: it took too long, or the job could not be submitted.
    """
    submitted = submit(stack, wish.job)
    with Teller(stack.api_url, submitted["job"]["job_id"]) as teller:
        teller.tell_choice(submitted["plan"])
        return _watch(stack, wish, teller)


def _watch(stack: Stack, wish: Wish, teller: Teller) -> Story:
    deadline = time.monotonic() + PATIENCE_SECONDS
    interrupted = False
    while True:
        job = teller.look()
        machine = job["machine"]
        if not interrupted and machine and machine["allocated_id"] and teller.last_step >= wish.interrupt_at:
            teller.say(f"--- the market takes {machine['allocated_id']} back, at step {teller.last_step} ---")
            order = {"allocated_id": machine["allocated_id"]}
            httpx.post(f"{stack.cloud_url}/_market/interrupt", json=order, timeout=10).raise_for_status()
            interrupted = True
        if job["settled"] and teller.log_is_whole:
            return teller.story(interrupted=interrupted)
        if time.monotonic() > deadline:
            raise DemoError(f"after {PATIENCE_SECONDS} s the job is still {job['state']}: {job['reason']}")
        time.sleep(LOOK_SECONDS)


def submit(stack: Stack, job: Path) -> Json:
    """Through the command, as a person does."""
    environment = {**os.environ, "SPOTFERRY_URL": stack.api_url}
    command = [sys.executable, "-m", "cli.main", "submit", str(job), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 (our own command)
    if done.returncode:
        raise DemoError(f"the job was not taken: {done.stderr.strip()}")
    answer: Json = json.loads(done.stdout)
    return answer


def read_object(stack: Stack, key: str) -> bytes | None:
    """An object of the bucket; None when there is none."""
    store = client("s3", stack.emulator_url)
    try:
        return bytes(store.get_object(Bucket=stack.bucket, Key=key)["Body"].read())
    except store.exceptions.NoSuchKey:
        return None


@contextmanager
def state_dir() -> Iterator[Path]:
    """A folder for a local cloud, gone at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="spotferry-demo-") as folder:
        Path(folder).chmod(0o755)  # machines run as users of their own, and live below it
        yield Path(folder)


def _parse(arguments: Sequence[str] | None) -> Wish:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--job", type=Path, default=_EXAMPLE, help="job file to run (examples/count/job.yml)")
    parser.add_argument("--interrupt-at", type=int, default=7, help="step at which the machine is taken back (7)")
    parser.add_argument("--seed", type=int, default=1, help="of the market's prices (1)")
    said = parser.parse_args(arguments)
    if not said.job.is_file():
        parser.error(f"{said.job}: there is no such job file")
    return Wish(said.job, said.interrupt_at, said.seed)


if __name__ == "__main__":
    sys.exit(main())
