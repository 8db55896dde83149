"""`spotferry list`, `show`, `cancel` and `retry`."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import httpx
import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

Job = dict[str, object]
ORDERS = ("cancel", "retry", "checkpoint", "restore")
PARTS = ("checkpoints", "logs", "outputs")
COMMANDS = ("show", *ORDERS, "checkpoints", "logs", "download")
ENTRIES = {
    "entries": [
        {
            "revision": 1,
            "at": "2026-01-02T03:04:05Z",
            "event": "accepted",
            "from_state": "",
            "to_state": "PENDING",
            "message": "",
        },
        {
            "revision": 2,
            "at": "2026-01-02T03:04:07Z",
            "event": "interrupted",
            "from_state": "RUNNING",
            "to_state": "INTERRUPTED",
            "message": "aws takes i-0a back in 120 seconds",
        },
    ]
}


def jobs(count: int, job: Job) -> list[Job]:
    """Several jobs."""
    return [{**job, "job_id": f"j-{number}"} for number in range(count)]


def test_a_list_is_a_line_a_job(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """State, machines, interruptions and why are seen at a glance."""
    brief = {**job, "attempts": 2, "reason": "on its way"}
    del brief["instances"]
    broker.on("GET /jobs", {"jobs": [brief, {**brief, "job_id": "j-2", "name": "", "reason": ""}], "cursor": None})
    head, first, second = run("list").stdout.splitlines()
    assert head.split()[:3] == ["JOB", "NAME", "STATE"]
    assert " ".join(first.split()) == "j-1 nightly RUNNING 2026-01-02 03:04:05 2 1 on its way"
    assert " ".join(second.split()) == "j-2 - RUNNING 2026-01-02 03:04:05 2 1 -"
    assert dict(broker.asked[0].url.params) == {"limit": "20"}


def test_no_jobs_is_said(run: "Run", broker: "FakeBroker") -> None:
    """An empty list is no empty screen."""
    broker.on("GET /jobs", {"jobs": [], "cursor": None})
    assert run("list").stdout == "no jobs\n"


def test_all_pages_are_read(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """`--all` follows the cursor to the end."""
    broker.on("GET /jobs", {"jobs": jobs(100, job), "cursor": "next"}, {"jobs": jobs(1, job), "cursor": None})
    assert len(json.loads(run("list", "--all", "--json").stdout)["jobs"]) == 101
    assert dict(broker.asked[1].url.params) == {"limit": "100", "cursor": "next"}


def test_a_state_is_looked_for_beyond_the_first_page(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """`--state` lists only jobs in that state, however many others are newer."""
    done = {**job, "job_id": "j-done", "state": "DONE"}
    broker.on("GET /jobs", {"jobs": jobs(100, job), "cursor": "next"}, {"jobs": [done], "cursor": None})
    document = json.loads(run("list", "--state", "done", "--json").stdout)
    assert document == {"jobs": [done]}


@pytest.mark.parametrize(("limit", "pages"), [("20", 1), ("100", 1), ("120", 2)])
def test_no_page_is_read_beyond_the_limit(run: "Run", broker: "FakeBroker", job: Job, limit: str, pages: int) -> None:
    """As many jobs as were asked for, with no more requests than they take."""
    broker.on("GET /jobs", {"jobs": jobs(100, job), "cursor": "more"})
    assert len(json.loads(run("list", "--limit", limit, "--json").stdout)["jobs"]) == int(limit)
    assert len(broker.asked) == pages


def test_show_tells_the_whole_story(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """State, attempts with their costs, and the history in words."""
    broker.on("GET /jobs/j-1", {**job, "reason": "on its second machine", "exit_code": 0})
    broker.on("GET /jobs/j-1/timeline", ENTRIES)
    text = run("show", "j-1").stdout
    assert "why:           on its second machine" in text
    assert "exit status:   0" in text
    assert "machines cost: $0.0018 (on demand $0.0060: 70% saved)" in text
    attempts = [line.split() for line in text.splitlines() if line.startswith(("1 ", "2 "))]
    assert " ".join(attempts[0]) == "1 i-1 aws us-east-1a m5.large spot terminated $0.0350 1m30s $0.0009 taken back"
    assert attempts[1][:2] == ["2", "i-2"]
    assert "RUNNING -> INTERRUPTED      aws takes i-0a back in 120 seconds" in text
    assert "2026-01-02 03:04:05  PENDING" in text


def test_show_of_a_held_job_names_the_way_out(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """The command that tries again, and when the hold is over; no other state has a way out to name."""
    held = {**job, "state": "SETUP_FAILED", "deadline": "2026-01-02T03:14:05Z"}
    broker.on("GET /jobs/j-1", held)
    broker.on("GET /jobs/j-1/timeline", {"entries": []})
    until = "until:         2026-01-02 03:14:05"
    words = f"{until}, or up to a minute later; until then `spotferry retry j-1` tries again"
    assert words in run("show", "j-1").stdout.splitlines()
    broker.on("GET /jobs/j-1", {**held, "state": "CANCELLING"})
    assert until in run("show", "j-1").stdout.splitlines()


def test_show_tells_price_and_end_of_a_machine_in_words(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """The price is that of machine and disk, as in a plan; why it gave the job back is no code."""
    first, second = cast("list[Job]", job["instances"])
    first, second = (
        {**first, "disk_usd_hour": 0.0033, "end_reason": "instance_termination"},
        {**second, "end_reason": ""},
    )
    broker.on("GET /jobs/j-1", {**job, "instances": [first, second, {**second, "price_usd_hour": None}]})
    broker.on("GET /jobs/j-1/timeline", {"entries": []})
    text = run("show", "j-1").stdout
    assert "TOTAL/H" in text
    assert "$0.0383  1m30s  $0.0009  gave the job back, since it goes" in text
    assert text.splitlines()[-1].split()[-4] == "-"


def test_show_bears_a_job_that_has_nothing_yet(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """A job that waits for its first machine is shown without one."""
    broker.on("GET /jobs/j-1", {**job, "machine": None, "instances": [], "cost_usd": None, "state": "PENDING"})
    broker.on("GET /jobs/j-1/timeline", {"entries": []})
    result = run("show", "j-1")
    assert result.exit_code == 0
    assert "attempts" not in result.stdout


def test_show_as_json_is_job_and_timeline(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """One document holds both answers."""
    broker.on("GET /jobs/j-1", job)
    broker.on("GET /jobs/j-1/timeline", ENTRIES)
    assert json.loads(run("show", "j-1", "--json").stdout) == {**job, "timeline": ENTRIES["entries"]}


def test_cancel_returns_at_once(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """Without --wait the order is enough."""
    broker.on("POST /jobs/j-1/cancel", {"job": {**job, "state": "CANCELLING", "reason": "asked to"}})
    result = run("cancel", "j-1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "j-1\n", "CANCELLING: asked to\n")


def test_cancel_can_wait(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """--wait returns when the job is final, and an order that got lost is repeated."""
    broker.on("POST /jobs/j-1/cancel", httpx.ReadTimeout("slow"), {"job": {**job, "state": "CANCELLING"}})
    broker.on("GET /jobs/j-1", {**job, "state": "CANCELLING"}, {**job, "state": "CANCELLED"})
    result = run("cancel", "j-1", "--wait", "--json")
    assert json.loads(result.stdout)["job"]["state"] == "CANCELLED"
    assert broker.calls() == ["POST /jobs/j-1/cancel"] * 2 + ["GET /jobs/j-1"] * 2


def test_retry_names_the_job_that_runs(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """A retry of a final job is a new job, whose id is all of stdout; a lost answer is asked for under the same key."""
    broker.on("POST /jobs/j-1/retry", httpx.ReadTimeout("slow"), {"job": {**job, "job_id": "j-9", "state": "PENDING"}})
    assert run("retry", "j-1").stdout == "j-9\n"
    first, second = (request.headers["Idempotency-Key"] for request in broker.asked)
    assert first == second
    run("retry", "j-1")
    assert broker.asked[2].headers["Idempotency-Key"] != first


@pytest.mark.parametrize("command", [[name] for name in COMMANDS])
def test_an_unknown_job_is_status_2(
    run: "Run", broker: "FakeBroker", make_problem: Callable[..., httpx.Response], command: list[str]
) -> None:
    """Every command that names a job refuses one that is not there, in the broker's words."""
    answer = make_problem(404, "there is no job j-0")
    for call in ("GET {}", *(f"POST {{}}/{order}" for order in ORDERS), *(f"GET {{}}/{part}" for part in PARTS)):
        broker.on(call.format("/jobs/j-0"), answer)
    result = run(*command, "j-0")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", "Error: there is no job j-0\n")


@pytest.mark.parametrize("job_id", ["a/../b", "..", "", "j-1?x", "é", "j" * 65])
def test_what_cannot_be_an_id_is_not_asked_for(run: "Run", broker: "FakeBroker", job_id: str) -> None:
    """It is wrong input, whatever address it would make."""
    result = run("show", job_id)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is not an id" in result.stderr
    assert broker.asked == []


def test_a_job_that_cannot_be_retried_is_status_2(
    run: "Run", broker: "FakeBroker", make_problem: Callable[..., httpx.Response]
) -> None:
    """A conflict with the job's state is told, not repeated."""
    broker.on("POST /jobs/j-1/retry", make_problem(409, "a job that is RUNNING cannot take retry"))
    result = run("retry", "j-1")
    assert result.exit_code == 2
    assert len(broker.asked) == 1
