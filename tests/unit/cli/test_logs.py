"""`spotferry logs`: every byte once, and with -f until the job is over."""

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from cli.logs import FAILURES_BORNE

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

LOGS = "GET /jobs/j-1/logs"
Piece = tuple[int, str]


def page(cursor: str, *pieces: Piece, finished: bool = False) -> dict[str, object]:
    """A page of the log."""
    chunks = [{"epoch": epoch, "offset": 0, "text": text} for epoch, text in pieces]
    return {"chunks": chunks, "cursor": cursor, "finished": finished}


def test_the_log_so_far_is_printed_once(run: "Run", broker: "FakeBroker") -> None:
    """Pages are read until nothing more is there; each is asked for by the cursor before it."""
    broker.on(LOGS, page("a", (1, "one\n")), page("b", (1, "tw"), (2, "o ü\n")), page("b"))
    result = run("logs", "j-1")
    assert (result.exit_code, result.stdout) == (0, "one\ntwo ü\n")
    assert "--- attempt 2 ---" in result.stderr
    assert [dict(request.url.params) for request in broker.asked] == [{}, {"cursor": "a"}, {"cursor": "b"}]


def test_a_cursor_that_does_not_move_ends_the_reading(run: "Run", broker: "FakeBroker") -> None:
    """A page that comes again is no reason to print it for ever."""
    broker.on(LOGS, page("a", (1, "x")))
    assert run("logs", "j-1").stdout in {"x", "xx"}
    assert len(broker.asked) == 2


def test_one_attempt_alone(run: "Run", broker: "FakeBroker") -> None:
    """`--attempt` leaves out what the others printed."""
    broker.on(LOGS, page("a", (1, "one"), (2, "two")), page("a"))
    assert run("logs", "j-1", "--attempt", "2").stdout == "two"


def test_json_is_all_pieces(run: "Run", broker: "FakeBroker") -> None:
    """`--json` prints one document over all pages."""
    broker.on(LOGS, page("a", (1, "one")), page("a", finished=True))
    document = json.loads(run("logs", "j-1", "--json").stdout)
    assert document == {"chunks": [{"epoch": 1, "offset": 0, "text": "one"}], "finished": True}


@pytest.mark.parametrize(("state", "status"), [("DONE", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_following_ends_with_the_job(
    run: "Run", broker: "FakeBroker", job: dict[str, object], state: str, status: int
) -> None:
    """-f polls without a rush until the log is finished, says how the job ended, and its status tells."""
    broker.on(
        LOGS, page("a", (1, "one\n")), page("a"), page("b", (1, "two\n"), finished=True), page("b", finished=True)
    )
    broker.on("GET /jobs/j-1", {**job, "state": state})
    result = run("logs", "j-1", "-f")
    assert (result.exit_code, result.stdout) == (status, "one\ntwo\n")
    assert f"job j-1 is {state}" in result.stderr
    assert broker.pauses == [1.0]
    assert broker.asked[0].url.params["follow"] == "true"


def test_following_waits_for_the_state(run: "Run", broker: "FakeBroker", job: dict[str, object]) -> None:
    """A finished log of a job that is not final yet is asked again."""
    broker.on(LOGS, page("a", finished=True))
    broker.on("GET /jobs/j-1", {**job, "state": "FINALIZING"}, {**job, "state": "DONE"})
    assert run("logs", "j-1", "-f").exit_code == 0


def test_following_bears_a_broker_that_is_away(run: "Run", broker: "FakeBroker", job: dict[str, object]) -> None:
    """A broker that stumbles does not end the following; one that stays away does."""
    broker.on(LOGS, *[httpx.ConnectError("away")] * 8, page("a", (1, "on"), finished=True), page("a", finished=True))
    broker.on("GET /jobs/j-1", {**job, "state": "DONE"})
    assert (run("logs", "j-1", "-f").stdout) == "on"
    broker.on(LOGS, httpx.ConnectError("away"))
    broker.asked.clear()
    assert run("logs", "j-1", "-f").exit_code == 1
    assert len(broker.asked) == 4 * (FAILURES_BORNE + 1)


def test_ctrl_c_leaves_the_job_alone(run: "Run", broker: "FakeBroker") -> None:
    """Who stops following hears that the job goes on; the status is 130."""

    def interrupt(_: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    broker.on(LOGS, interrupt)
    result = run("logs", "j-1", "-f")
    assert result.exit_code == 130
    assert "The job goes on" in result.stderr
    assert broker.calls() == ["GET /jobs/j-1/logs"]


@pytest.mark.parametrize("args", [["no-such"], ["j-1", "-f", "--json"], ["j-1", "--attempt", "0"], [""], [".."]])
def test_bad_input_is_status_2(run: "Run", args: list[str]) -> None:
    """An unknown job, an empty id and options that clash are bad input."""
    result = run("logs", *args)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_job_on_hold_is_told_while_it_is_followed(run: "Run", broker: "FakeBroker") -> None:
    """Nothing is printed during a hold, so a person is told at once why, and what they can do."""
    quiet = {"chunks": [], "cursor": "1.0.0", "more": False}
    held = {**quiet, "finished": False, "state": "SETUP_FAILED", "reason": "setup failed with status 7 at `make`"}
    over = {**quiet, "finished": True, "state": "FAILED", "reason": "nobody asked for a retry in time"}
    broker.on(LOGS, held, held, over)
    broker.on("GET /jobs/j-1", {"job_id": "j-1", "state": "FAILED", "reason": "nobody asked for a retry in time"})
    result = run("logs", "-f", "j-1")
    assert result.exit_code == 1
    assert result.stderr.count("--- SETUP_FAILED: setup failed with status 7 at `make`; `spotferry retry`") == 1
