"""`spotferry checkpoint`, `checkpoints` and `restore`."""

import json
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

Job = dict[str, object]
POINT = {
    "number": 3,
    "engine": "workdir",
    "why": "no paths are named",
    "reason": "heartbeat",
    "committed_at": "2026-01-02T03:04:05Z",
    "size_bytes": 3 * 1024**2,
    "epoch": 2,
    "seconds": 12.4,
    "paused_seconds": 2.1,
}
ASKED = "POST /jobs/j-1/checkpoint"


def with_checkpoint(job: Job, number: int, wanted: int | None, **changes: object) -> Job:
    """The job with so many checkpoints, and one that is asked for."""
    return {**job, "checkpoint": number, "checkpoint_wanted": wanted, **changes}


def test_a_checkpoint_is_asked_for(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """Its number is all of stdout, and an order whose answer was lost is repeated."""
    broker.on(ASKED, httpx.ReadTimeout("slow"), {"job": with_checkpoint(job, 1, 2)})
    result = run("checkpoint", "j-1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "2\n", "checkpoint 2 is on its way\n")
    assert json.loads(run("checkpoint", "j-1", "--json").stdout)["checkpoint"] == 2


def test_a_checkpoint_can_be_waited_for(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """--wait returns once it is committed."""
    broker.on(ASKED, {"job": with_checkpoint(job, 1, 2)})
    broker.on("GET /jobs/j-1", with_checkpoint(job, 1, 2), with_checkpoint(job, 2, None))
    result = run("checkpoint", "j-1", "--wait")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "2\n", "checkpoint 2 is there\n")
    assert len(broker.pauses) == 2


def test_a_checkpoint_that_failed_is_status_1(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """With the reason from the job's history."""
    broker.on(ASKED, {"job": with_checkpoint(job, 1, 2)})
    broker.on("GET /jobs/j-1", with_checkpoint(job, 1, None))
    entries = [{"event": "checkpoint_failed", "message": "a checkpoint failed: the disk is full"}, {"event": "x"}]
    broker.on("GET /jobs/j-1/timeline", {"entries": entries})
    result = run("checkpoint", "j-1", "--wait")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "checkpoint 2 was not made: a checkpoint failed: the disk is full" in result.stderr


def test_a_job_that_ends_first_is_status_1(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """The wait ends with the job."""
    broker.on(ASKED, {"job": with_checkpoint(job, 1, 2)})
    broker.on("GET /jobs/j-1", with_checkpoint(job, 1, None, state="DONE", reason="all done"))
    result = run("checkpoint", "j-1", "--wait")
    assert result.exit_code == 1
    assert "job j-1 is DONE: all done" in result.stderr


def test_checkpoints_are_listed(run: "Run", broker: "FakeBroker") -> None:
    """Number, engine and why, reason, size, times of each, and whether it is still kept."""
    wanted = {**POINT, "asked_for": True}
    pruned = {**POINT, "number": 2, "reason": "instance_termination", "pruned_at": "2026-01-02T04:04:05Z"}
    broker.on("GET /jobs/j-1/checkpoints", {"checkpoints": [wanted, pruned]})
    lines = [" ".join(line.split()) for line in run("checkpoints", "j-1").stdout.splitlines()]
    assert lines[1] == "3 workdir asked for 2 3.0 MiB 12s 2s 2026-01-02 03:04:05 yes no paths are named"
    assert lines[2] == "2 workdir before the machine goes 2 3.0 MiB 12s - 2026-01-02 03:04:05 no no paths are named"
    assert json.loads(run("checkpoints", "j-1", "--json").stdout) == {"checkpoints": [wanted, pruned]}
    broker.on("GET /jobs/j-1/checkpoints", {"checkpoints": []})
    assert run("checkpoints", "j-1").stdout == "no checkpoints\n"


@pytest.mark.parametrize(("words", "body"), [([], {}), (["--checkpoint", "3"], {"checkpoint": 3})])
def test_a_job_is_restored(run: "Run", broker: "FakeBroker", job: Job, words: list[str], body: dict[str, int]) -> None:
    """The new job's id is all of stdout; one that is asked for under the same key is made once."""
    answer = {"job": {**job, "job_id": "j-9", "state": "PENDING", "reason": "accepted"}}
    broker.on("POST /jobs/j-1/restore", httpx.ReadTimeout("slow"), answer)
    result = run("restore", "j-1", *words)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "j-9\n", "PENDING: accepted\n")
    assert [json.loads(sent) for sent in broker.bodies] == [body, body]
    assert len({request.headers["Idempotency-Key"] for request in broker.asked}) == 1


def test_a_number_that_is_none_is_not_asked_for(run: "Run", broker: "FakeBroker") -> None:
    """Checkpoints are numbered from 1."""
    result = run("restore", "j-1", "--checkpoint", "0")
    assert (result.exit_code, broker.asked) == (2, [])


def test_show_tells_where_a_restored_job_came_from(run: "Run", broker: "FakeBroker", job: Job) -> None:
    """Parent and checkpoint in one line, and how often the task was started again."""
    broker.on("GET /jobs/j-1", {**job, "parent_job_id": "j-0", "restored_from": 4, "restarts": 2})
    broker.on("GET /jobs/j-1/timeline", {"entries": []})
    text = run("show", "j-1").stdout
    assert "goes on from:  checkpoint 4 of j-0" in text
    assert "repeats" not in text
    assert "restarts:      2" in text
