"""The demo's eyes and mouth: reads a job through the API and tells what is new."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import httpx

Json = dict[str, Any]  # Any: JSON of the API

_STEP = re.compile(
    r"^\W*(?:(?:step|epoch|iter|iteration|count|counted|round|tick|batch|i|n)\W+)?(\d+)(?!\S*\.\d)\b", re.IGNORECASE
)
"""A step is a line that begins with its whole number, or with a word for a step and its number: "7", "step 7 of 12"."""


def step_of(line: str) -> int | None:
    """The number of the step that a line reports; None when it reports none."""
    found = _STEP.match(line)
    return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Story:
    """All that the API said of a job when it was over.

    Attributes:
        job: the job with its machines.
        entries: its timeline.
        lines: what it printed, with the attempt that printed it.
        checkpoints: its checkpoints, newest first.
        interrupted: the market took a machine back in the middle.
    """

    job: Json
    entries: Sequence[Json]
    lines: Sequence[tuple[int, str]]
    checkpoints: Sequence[Json]
    interrupted: bool

    def steps(self) -> list[int]:
        """The steps that were printed, over the logs of all attempts, in order."""
        return [step for _, line in self.lines if (step := step_of(line)) is not None]

    def machines(self) -> list[Json]:
        """The machines that were made, in order; an attempt that was refused made none."""
        return [machine for machine in self.job["instances"] if machine["allocated_id"]]

    def summary(self) -> Json:
        """The story in figures, for programs."""
        fields = ("provider", "region", "zone", "instance_type", "price_usd_hour")
        names = ("provider", "region", "zone", "type", "price")
        return {
            "job_id": self.job["job_id"],
            "state": self.job["state"],
            "instances": [
                {name: machine[field] for name, field in zip(names, fields, strict=True)} for machine in self.machines()
            ],
            "providers": [machine["provider"] for machine in self.machines()],
            "interruptions": self.job["interruptions"],
            "checkpoints": len(self.checkpoints),
            "cost_usd": self.job["cost_usd"],
            "on_demand_cost_usd": self.job["on_demand_cost_usd"],
        }


class Teller:
    """Looks at one job again and again and prints what is new.

    Args:
        api_url: of the broker.
        job_id: the job.
    """

    def __init__(self, api_url: str, job_id: str) -> None:
        self._http = httpx.Client(base_url=api_url, timeout=30)
        self._job_id = job_id
        self._entries: list[Json] = []
        self._lines: list[tuple[int, str]] = []
        self._open_line: dict[int, str] = {}
        self._cursor = ""
        self._started = time.monotonic()
        self.log_is_whole = False

    def __enter__(self) -> Self:
        """Itself; its connection is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._http.close()

    @property
    def last_step(self) -> int:
        """The highest step that was printed so far; 0 before the first."""
        return max((step for _, line in self._lines if (step := step_of(line)) is not None), default=0)

    def steps_of(self, epoch: int) -> int:
        """How many steps one attempt has printed so far."""
        return sum(1 for printed_by, line in self._lines if printed_by == epoch and step_of(line) is not None)

    def say(self, text: str) -> None:
        """Print one line with the seconds since the submission."""
        print(f"{time.monotonic() - self._started:6.1f} s  {text}", flush=True)

    def tell_choice(self, plan: Json) -> None:
        """What was chosen, and why."""
        chosen = plan["chosen"]
        self.say(f"job {self._job_id} accepted")
        self.say(f"cheapest of {plan['considered']:,} candidates: {_offer(chosen)}")
        self.say(f"why: {plan['why']}")
        for other in plan["next"][:3]:
            self.say(f"  passed over: {_offer(other)}")

    def look(self) -> Json:
        """Read the job, tell what is new, and return it."""
        job = self._get("")
        for entry in self._get("/timeline")["entries"][len(self._entries) :]:
            self._entries.append(entry)
            moved = (
                f"{entry['from_state']} -> {entry['to_state']}: " if entry["from_state"] != entry["to_state"] else ""
            )
            self.say(f"{moved}{entry['message']}")
        self._read_log()
        return job

    def story(self, *, interrupted: bool) -> Story:
        """All there is to know now that it is over, and the bill."""
        job = self._get("")
        for machine in (machine for machine in job["instances"] if machine["allocated_id"]):
            self.say(
                f"attempt {machine['epoch']}: {_offer(machine)}, {machine['seconds']:.1f} s, ${machine['cost_usd']:.6f}"
            )
        self.say(f"total ${job['cost_usd']:.6f}; the same machines on demand ${job['on_demand_cost_usd']:.6f}")
        checkpoints = self._get("/checkpoints")["checkpoints"]
        return Story(job, self._entries, self._lines, checkpoints, interrupted)

    def _read_log(self) -> None:
        while True:
            answer = self._get("/logs", cursor=self._cursor, follow="true")
            self._cursor = answer["cursor"]
            for chunk in answer["chunks"]:
                self._print(chunk["epoch"], chunk["text"])
            if not answer["more"]:
                break
        self.log_is_whole = answer["finished"]

    def _print(self, epoch: int, text: str) -> None:
        *whole, rest = (self._open_line.pop(epoch, "") + text).split("\n")
        if rest:
            self._open_line[epoch] = rest
        for line in whole:
            self._lines.append((epoch, line))
            self.say(f"  [{epoch}] {line}")

    def _get(self, path: str, **query: str) -> Json:
        answer = self._http.get(f"/jobs/{self._job_id}{path}", params=query)
        answer.raise_for_status()
        document: Json = answer.json()
        return document


def _offer(offer: Json) -> str:
    where = offer["zone"] or offer["region"]
    price = f"${offer['price_usd_hour']:.4f}/h"
    return f"{offer['provider']} {offer['instance_type']} in {where} ({offer['market']}) at {price}"
