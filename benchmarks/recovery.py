"""How fast a job gets from a notice to its next machine: interruptions of one running job in the local cloud.

All figures are taken from outside: from the market's own time of the notice, the broker's timeline, and what the task
prints, which is the time, twenty times a second. So reading the notice, the bus and the log are part of them.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.report import Measurement
from local.stack import Options, Stack, running

Json = dict[str, Any]  # Any: JSON of the API

ROUNDS = 5
"""The first one finds the functions cold and is left out."""

PATIENCE_SECONDS = 90.0
LOOK_SECONDS = 0.1
LINES_BEFORE_NOTICE = 20
STOPPED_AT_MOST_SECONDS = 6.0
REQUESTED_AT_MOST_SECONDS = 1.0

JOB = """
name: clock
instance_specs: {cpu_cores: 2}
task:
  run: |
    exec python3 -u -c 'import time
    while True: print(time.time()); time.sleep(0.05)'
"""


@dataclass(frozen=True, slots=True)
class Interruption:
    """Seconds of one interruption, by what they lie between."""

    notice_to_stopped: float
    notice_to_requested: float
    stopped_to_running: float


class Watched:
    """A job that prints the time, and the cloud that it runs in."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._http = httpx.Client(base_url=stack.api_url, timeout=30)
        answer = self._http.post("/jobs", json={"job_file": JOB, "upload": None}).raise_for_status().json()
        self._path = f"/jobs/{answer['job']['job_id']}"

    def interrupt(self) -> int:
        """Have the market take the machine back once the task prints; the attempt's epoch."""
        machine = self._until_it_prints()
        order = {"allocated_id": machine["allocated_id"]}
        httpx.post(f"{self._stack.cloud_url}/_market/interrupt", json=order, timeout=10).raise_for_status()
        return int(machine["epoch"])

    def measure(self, epoch: int) -> Interruption:
        """What the interruption of an attempt came to, once the next one prints."""
        self._until_it_prints(epoch + 1)
        printed = self._printed()
        entries = self._get("/timeline")["entries"]
        noticed = self._noticed_at(epoch)
        requested = next(e for e in entries if e["event"] == "launch_chosen" and _seconds(e["at"]) > noticed)
        stopped, resumed = printed[epoch][-1], printed[epoch + 1][0]
        return Interruption(stopped - noticed, _seconds(requested["at"]) - noticed, resumed - stopped)

    def close(self) -> None:
        """End the job."""
        self._http.post(f"{self._path}/cancel")
        self._http.close()

    def _until_it_prints(self, epoch: int = 0) -> Json:
        """The machine that owns the job, of this attempt or a later one, once its task has printed for a while."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            machine: Json = self._get("")["machine"] or {}
            if machine.get("epoch", -1) >= epoch:
                lines = self._printed().get(machine["epoch"], ())
                if len(lines) >= LINES_BEFORE_NOTICE:
                    return machine
            time.sleep(LOOK_SECONDS)
        raise TimeoutError(f"the task did not print within {PATIENCE_SECONDS:.0f} s: {self._get('')['reason']}")

    def _printed(self) -> dict[int, Sequence[float]]:
        """The times that each attempt printed."""
        text: dict[int, str] = {}
        cursor, more = "", True
        while more:
            answer = self._get("/logs", cursor=cursor, follow="true")
            for chunk in answer["chunks"]:
                text[chunk["epoch"]] = text.get(chunk["epoch"], "") + chunk["text"]
            cursor, more = answer["cursor"], answer["more"]
        return {epoch: [float(line) for line in whole.split("\n")[:-1]] for epoch, whole in text.items()}

    def _noticed_at(self, epoch: int) -> float:
        allocated_id = next(i["allocated_id"] for i in self._get("")["instances"] if i["epoch"] == epoch)
        machines = httpx.get(f"{self._stack.cloud_url}/_market/machines", timeout=10).json()
        return _seconds(next(m["interrupted_at"] for m in machines if m["allocated_id"] == allocated_id))

    def _get(self, path: str, **query: str) -> Json:
        answer: Json = self._http.get(f"{self._path}{path}", params=query).raise_for_status().json()
        return answer


def measure() -> Iterable[Measurement]:
    """Interruptions of one job, one after the other."""
    with tempfile.TemporaryDirectory(prefix="spotferry-bench-") as folder:
        Path(folder).chmod(0o755)  # machines run as users of their own, and live below it
        with running(Path(folder), Options(tied=True)) as stack:
            yield from _figures(list(_interruptions(stack))[1:])


def _interruptions(stack: Stack) -> Iterator[Interruption]:
    job = Watched(stack)
    try:
        for _ in range(ROUNDS):
            yield job.measure(job.interrupt())
    finally:
        job.close()


def _figures(found: Sequence[Interruption]) -> Iterator[Measurement]:
    rows: tuple[tuple[str, list[float], float | None], ...] = (
        ("notice to task stopped", [i.notice_to_stopped for i in found], STOPPED_AT_MOST_SECONDS),
        ("notice to successor requested", [i.notice_to_requested for i in found], REQUESTED_AT_MOST_SECONDS),
        ("old machine stopped to task running again", [i.stopped_to_running for i in found], None),
    )
    for measure, seconds, at_most in rows:
        yield Measurement("interruption", f"{measure}, median", median(seconds), "s", at_most)
        yield Measurement("interruption", f"{measure}, worst", max(seconds), "s", at_most)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
