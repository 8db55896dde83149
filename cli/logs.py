"""`spotferry logs`: what setup and task print, over all attempts."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.api import Api, broker
from cli.errors import Unreachable, UsageProblem
from cli.given import ID
from cli.job_paths import job_path
from cli.output import Json, print_json, say
from cli.settings import settings
from spotferry.types import FINAL_STATES, HOLD_STATES, JobState

POLL_SECONDS = 1.0
FAILURES_BORNE = 10
_QUIET_STATES = frozenset({*HOLD_STATES, JobState.INTERRUPTED, JobState.CANCELLING})
"""States in which a task prints nothing, and a person wants to know why."""


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option("-f", "--follow", "following", is_flag=True, help="Go on until the job ends; the exit status tells how.")
@click.option("--attempt", type=click.IntRange(min=1), help="Only what this attempt printed.")
@click.option("--json", "as_json", is_flag=True, help="Print the log's pieces as one JSON document.")
def logs(job_id: str, attempt: int | None, *, following: bool, as_json: bool) -> None:
    """Print what a job prints; with -f as it comes, and end with 0 if the job is DONE, 1 otherwise."""
    if as_json and following:
        raise UsageProblem("--follow: does not go with --json, which prints one document")
    api = broker()
    if following:
        click.get_current_context().exit(follow(api, job_id, attempt))
    log = Log(api, job_id, attempt)
    chunks = list(log.so_far())
    if as_json:
        print_json({"chunks": chunks, "finished": log.finished})
        return
    printer = _Printer()
    for chunk in chunks:
        printer.print(chunk)


class Log:
    """Reads a job's log from where it last stopped.

    Attributes:
        finished: the job is over and all of its log was read.
        state, reason: where the job is and why, as far as the broker told.
    """

    def __init__(self, api: Api, job_id: str, attempt: int | None = None, *, following: bool = False) -> None:
        self._api = api
        self._path = job_path(job_id, "logs")
        self._attempt = attempt
        self._follow: Mapping[str, str] = {"follow": "true"} if following else {}
        self._cursor = ""
        self.finished = False
        self.state = self.reason = ""

    def so_far(self) -> Iterator[Json]:
        """The pieces that are there now and were not read before."""
        while True:
            params = {**self._follow, **({"cursor": self._cursor} if self._cursor else {})}
            answer: Mapping[str, Any] = self._api.request("GET", self._path, params=params)  # Any: JSON
            chunks = answer["chunks"]
            self.finished = bool(answer.get("finished"))
            self.state, self.reason = str(answer.get("state") or ""), str(answer.get("reason") or "")
            for chunk in chunks:
                if self._attempt in {None, chunk["epoch"]}:
                    yield chunk
            cursor = str(answer.get("cursor") or self._cursor)
            moved, self._cursor = cursor != self._cursor, cursor
            if not chunks or not moved or self.finished:
                return


class _Printer:
    """Prints pieces on stdout, and on stderr a line where another attempt begins or the job is held up."""

    def __init__(self) -> None:
        self._epoch = 0
        self._state = ""

    def tell(self, state: str, reason: str) -> None:
        """Say once why nothing is printed for a while."""
        if state != self._state and state in _QUIET_STATES:
            retry = "; `spotferry retry` tries again while the machine waits" if state in HOLD_STATES else ""
            say(f"--- {state}: {reason}{retry} ---")
        self._state = state

    def print(self, chunk: Json) -> None:
        """One piece, byte for byte."""
        if chunk["epoch"] != self._epoch:
            if self._epoch:
                say(f"--- attempt {chunk['epoch']} ---")
            self._epoch = chunk["epoch"]
        click.echo(str(chunk["text"]).encode("utf-8", "replace"), nl=False)


def follow(api: Api, job_id: str, attempt: int | None = None) -> int:
    """Print the log as it comes until the job is over, and say how it ended.

    Returns:
        The exit status: 0 when the job is DONE, 1 otherwise.
    """
    log, printer, failures = Log(api, job_id, attempt, following=True), _Printer(), 0
    pause = settings().sleep
    try:
        while True:
            try:
                for chunk in log.so_far():
                    printer.print(chunk)
                printer.tell(log.state, log.reason)
                job = api.request("GET", job_path(job_id)) if log.finished else {}
                failures = 0
            except Unreachable:
                job, failures = {}, failures + 1
                if failures > FAILURES_BORNE:
                    raise
            if job.get("state") in FINAL_STATES:
                return _say_end(job)
            pause(POLL_SECONDS)
    except KeyboardInterrupt:
        say(f"\nThe job goes on; `spotferry logs -f {job_id}` follows it again, `spotferry cancel {job_id}` stops it.")
        raise


def _say_end(job: Json) -> int:
    reason = f": {job['reason']}" if job.get("reason") else ""
    say(f"job {job['job_id']} is {job['state']}{reason}")
    return 0 if job["state"] == "DONE" else 1
