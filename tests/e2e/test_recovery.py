"""What brings a job through: checkpoints that are asked for and that come by themselves, restores, restarts, moves."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.stack import Stack
from tests.e2e.broker import Broker, Json, eventually

pytestmark = pytest.mark.e2e

STEPS = 60
SPECS = "instance_specs: {cpu_cores: 1, memory_gb: 1}\n"
COUNT = f"""
import pathlib, time
at = pathlib.Path("at.txt")
step = int(at.read_text()) if at.exists() else 0
while step < {STEPS}:
    step += 1
    beside = pathlib.Path("at.new")
    beside.write_text(str(step))
    beside.rename(at)
    print(f"step {{step}}", flush=True)
    time.sleep(0.25)
"""
TASK = f"{SPECS}work_dir: work\ntask:\n  run: exec python3 count.py\n"


@pytest.fixture
def broker(local_cloud: Stack) -> Iterator[Broker]:
    """The session's local cloud."""
    with Broker(local_cloud) as broker:
        yield broker


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work directory with a task that counts, and goes on from what it finds."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "count.py").write_text(COUNT)
    return work


def steps(broker: Broker, job_id: str) -> list[int]:
    """The steps that a job has printed; who reads them follows the log, so the machine calls often."""
    return [int(number) for number in re.findall(r"^step (\d+)$", broker.log(job_id), re.MULTILINE)]


def counted_to(broker: Broker, job_id: str, step: int) -> None:
    """Wait until the task has come that far."""
    eventually(f"{job_id} is at step {step}", lambda: step in steps(broker, job_id))


def ordered(broker: Broker, job_id: str, order: str, **body: int) -> Json:
    """An order to a job; the job that the answer shows."""
    answer = broker.send("POST", f"/jobs/{job_id}/{order}", json=body)
    assert answer.is_success, answer.text
    job: Json = answer.json()["job"]
    return job


def checkpoints(broker: Broker, job_id: str) -> list[Json]:
    """What is listed, newest first."""
    found: list[Json] = broker.get(f"/jobs/{job_id}/checkpoints")["checkpoints"]
    return found


def messages(broker: Broker, job_id: str) -> list[str]:
    """What the timeline tells."""
    return [entry["message"] for entry in broker.get(f"/jobs/{job_id}/timeline")["entries"]]


def pull(broker: Broker, lever: str, allocated_id: str) -> None:
    """A lever of the market."""
    url = f"{broker.stack.cloud_url}/_market/{lever}"
    httpx.post(url, json={"allocated_id": allocated_id}, timeout=10).raise_for_status()


def test_a_checkpoint_on_request_a_cancel_and_a_restore(broker: Broker, work: Path) -> None:
    """The task goes on beside a checkpoint; a cancel keeps the work; a new job goes on from it and loses no step."""
    job_id = broker.submit(TASK, work)
    counted_to(broker, job_id, 3)
    assert ordered(broker, job_id, "checkpoint")["checkpoint_wanted"] == 1
    eventually("the checkpoint is there", lambda: broker.log(job_id) and broker.job(job_id)["checkpoint"] == 1)
    counted_to(broker, job_id, steps(broker, job_id)[-1] + 2)

    assert ordered(broker, job_id, "cancel")["state"] == "CANCELLING"
    cancelled = broker.wait(job_id, "CANCELLED")
    assert cancelled["reason"].endswith("checkpoint 2 can be restored")
    assert [(c["number"], c["reason"]) for c in checkpoints(broker, job_id)] == [
        (2, "job_termination"),
        (1, "heartbeat"),
    ]
    last = steps(broker, job_id)[-1]

    child = ordered(broker, job_id, "restore")
    assert (child["parent_job_id"], child["restored_from"]) == (job_id, 2)
    broker.wait(child["job_id"], "DONE")
    went_on = steps(broker, child["job_id"])
    assert went_on == list(range(went_on[0], STEPS + 1))
    assert went_on[0] in {last, last + 1}
    assert "the task goes on from checkpoint 2" in messages(broker, child["job_id"])

    earlier = ordered(broker, job_id, "restore", checkpoint=1)
    assert earlier["restored_from"] == 1
    eventually("it goes on from the earlier one", lambda: steps(broker, earlier["job_id"]))
    assert steps(broker, earlier["job_id"])[0] < went_on[0]
    ordered(broker, earlier["job_id"], "cancel")
    broker.wait(earlier["job_id"], "CANCELLED")
    for each in (job_id, child["job_id"], earlier["job_id"]):
        broker.assert_machines_gone(each)


def test_what_cannot_be_checkpointed_or_restored(broker: Broker) -> None:
    """Each refusal says why, and makes no job."""
    job_id = broker.submit(f"{SPECS}setup:\n  run: sleep 2\ntask:\n  run: exit 3\n")
    answer = broker.send("POST", f"/jobs/{job_id}/checkpoint")
    assert (answer.status_code, answer.json()["kind"]) == (409, "NotPossibleNow")
    assert broker.send("POST", f"/jobs/{job_id}/restore").status_code == 409
    broker.wait(job_id, "FAILED")
    before = broker.get("/jobs", limit="200")["jobs"]
    answer = broker.send("POST", f"/jobs/{job_id}/restore")
    assert (answer.status_code, "has no checkpoint" in answer.json()["detail"]) == (409, True)
    assert broker.send("POST", f"/jobs/{job_id}/checkpoint").status_code == 409
    assert [job["job_id"] for job in broker.get("/jobs", limit="200")["jobs"]] == [job["job_id"] for job in before]


def test_a_machine_that_is_gone_without_notice_costs_what_came_after_the_last_checkpoint(
    broker: Broker, work: Path
) -> None:
    """Periodic checkpoints come by themselves; the next machine goes on from the last one."""
    job_id = broker.submit(f"{TASK}checkpoint: {{interval_seconds: 10}}\n", work)
    counted_to(broker, job_id, 1)
    eventually("a checkpoint came by itself", lambda: broker.log(job_id) and broker.job(job_id)["checkpoint"] >= 1)
    saved = broker.job(job_id)["checkpoint"]
    last = steps(broker, job_id)[-1]
    counted_to(broker, job_id, last + 8)  # what was printed before the checkpoint, at latest with this
    pull(broker, "kill", broker.machine_of(job_id))
    job = broker.wait(job_id, "DONE")
    assert len(job["instances"]) == 2
    told = [m for m in messages(broker, job_id) if m.startswith("the task goes on from checkpoint ")]
    assert len(told) == 1
    assert int(told[0].rsplit(" ", 1)[1]) >= saved
    assert set(steps(broker, job_id)) == set(range(1, STEPS + 1))
    assert steps(broker, job_id).count(1) == 1
    broker.assert_machines_gone(job_id)


def test_a_task_that_fails_is_started_again_on_its_machine(broker: Broker) -> None:
    """As often as it takes, within what the job file allows, in the work directory as the failed run left it."""
    run = "    n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; echo run $n; [ $n = 3 ] || exit 4\n"
    retry = "outputs: [n]\nretry: {max_restarts: 2, on_exit_codes: [4]}\n"
    job_id = broker.submit(f"{SPECS}{retry}task:\n  run: |\n{run}")
    job = broker.wait(job_id, "DONE")
    assert (job["restarts"], len(job["instances"])) == (2, 1)
    assert broker.log(job_id) == "run 1\nrun 2\nrun 3\n"
    assert [file["path"] for file in broker.get(f"/jobs/{job_id}/outputs")["files"]] == ["n"]
    assert "restart 2 of 2 in 20 s: the task ended with status 4" in messages(broker, job_id)

    job_id = broker.submit(f"{SPECS}retry: {{max_restarts: 1}}\ntask:\n  run: [echo again, exit 5]\n")
    job = broker.wait(job_id, "FAILED")
    assert (job["restarts"], job["exit_code"], broker.log(job_id)) == (1, 5, "again\nagain\n")
    broker.assert_machines_gone(job_id)


def test_a_restart_undoes_nothing(broker: Broker) -> None:
    """Also on a machine that began with a restore the failed task goes on with what it left, not with the
    checkpoint.
    """
    count = "    n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n; echo run $n\n"
    ends = "    [ $n != 1 ] || sleep 600; [ $n = 3 ] || exit 4\n"
    job_id = broker.submit(f"{SPECS}retry: {{max_restarts: 1}}\ntask:\n  run: |\n{count}{ends}")
    eventually("the first run sleeps", lambda: broker.log(job_id) == "run 1\n")
    ordered(broker, job_id, "cancel")
    broker.wait(job_id, "CANCELLED")
    child = ordered(broker, job_id, "restore")["job_id"]
    broker.wait(child, "DONE")
    assert broker.log(child) == "run 2\nrun 3\n"
    for each in (job_id, child):
        broker.assert_machines_gone(each)


def test_a_job_that_has_used_up_its_time(broker: Broker, work: Path) -> None:
    """It is saved and stopped, FAILED by the limit, and a new job goes on from there."""
    job_id = broker.submit(f"{TASK}max_duration_hours: 0.0005\n", work)
    counted_to(broker, job_id, 8)

    def ended() -> bool:
        broker.poll()
        return bool(broker.log(job_id) and broker.job(job_id)["state"] == "FAILED")

    eventually("the limit ends it", ended)
    reason = broker.job(job_id)["reason"]
    assert reason.startswith("max_duration_hours 0.0005 is used up")
    assert reason.endswith("checkpoint 1 can be restored")
    broker.assert_machines_gone(job_id)


def test_a_job_moves_ahead_of_a_take_back_that_never_comes(broker: Broker, work: Path) -> None:
    """A recommendation places the successor beside the running task; no step is lost, and one machine is left."""
    job_id = broker.submit(f"{TASK}checkpoint: {{on_rebalance: true}}\n", work)
    counted_to(broker, job_id, 3)
    first = broker.machine_of(job_id)
    pull(broker, "rebalance", first)
    job = broker.wait(job_id, "DONE")
    machines: list[Any] = job["instances"]  # Any: JSON
    assert len(machines) == 2
    assert machines[0]["allocated_id"] == first
    assert machines[0]["ended_by"] in {"", "us"}
    assert job["interruptions"] == 0
    assert set(steps(broker, job_id)) == set(range(1, STEPS + 1))
    assert len(steps(broker, job_id)) <= STEPS + 1
    broker.assert_machines_gone(job_id)


def test_lines_around_a_jobs_life(broker: Broker, work: Path) -> None:
    """Each runs at its place, once, and is told; the restored job finds what they left."""
    points = "".join(
        f"{point}:\n  run: echo {point}\n"
        for point in ("post_setup", "pre_checkpoint", "post_checkpoint", "pre_restore", "post_restore")
    )
    job_id = broker.submit(TASK + points, work)
    counted_to(broker, job_id, 2)
    broker.interrupt(broker.machine_of(job_id))
    broker.wait(job_id, "DONE")
    told = [message.partition(" ran in ")[0] for message in messages(broker, job_id) if " ran in " in message]
    assert sorted(told) == sorted(
        ["post_setup", "post_setup", "pre_checkpoint", "post_checkpoint", "pre_restore", "post_restore"]
    )
    assert told.index("pre_checkpoint") < told.index("post_checkpoint") < told.index("pre_restore")
    broker.assert_machines_gone(job_id)
