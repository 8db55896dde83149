"""What a job left behind, for download."""

import hashlib
import json

import pytest

from spotferry.types import NotFound
from tests.unit.usecases.world import ARCHIVE, SHA, World

FILES = [{"path": "out/a.txt", "size_bytes": 3, "sha256": SHA}]


def test_outputs_have_an_address_and_digests(world: World) -> None:
    """The archive's address, size and digest, and those of its files."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    world.outputs(attempt, FILES)
    found = world.read_outputs(job.job_id)
    assert found["url"].startswith(f"memory:get:outputs/{job.job_id}/000001/")
    assert found["sha256"] == hashlib.sha256(ARCHIVE).hexdigest()
    assert found["size_bytes"] == len(ARCHIVE)
    assert found["files"] == FILES


@pytest.mark.parametrize(
    ("said", "complete"), [({}, True), ({"files_complete": True}, True), ({"files_complete": False}, False)]
)
def test_whether_the_list_is_complete_is_passed_on(world: World, said: dict[str, bool], complete: bool) -> None:  # noqa: FBT001 (a case)
    """As the agent said it; an agent that says nothing lists all of its files."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    world.commit(attempt, {**world.send_bytes(attempt, "outputs"), "files": FILES, **said})
    assert world.read_outputs(job.job_id)["files_complete"] is complete


def test_a_manifest_from_before_the_word_was_there_is_complete(world: World) -> None:
    """Outputs that were stored by an earlier broker are read as they were meant."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    world.outputs(attempt, FILES)
    key = world.job(job).outputs_key
    old = json.loads(world.objects.get(key))
    del old["files_complete"]
    world.objects.put(key, json.dumps(old).encode())
    assert world.read_outputs(job.job_id)["files_complete"] is True


def test_patterns_that_named_nothing_are_passed_on(world: World) -> None:
    """As the agent said them, to whoever asks and into the timeline; an agent that says nothing missed none."""
    job, attempt = world.running(outputs=["out", "nope"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    world.commit(attempt, {**world.send_bytes(attempt, "outputs"), "files": FILES, "missed": ["nope"]})
    assert world.read_outputs(job.job_id)["missed"] == ["nope"]
    assert world.store.timeline(job.job_id)[-1].message.endswith("; nothing matched: nope")
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    world.outputs(attempt, FILES)
    assert world.read_outputs(job.job_id)["missed"] == []


@pytest.mark.parametrize(("outputs", "why"), [(["out"], "has sent none yet"), ([], "names no outputs in its job file")])
def test_why_there_are_none_is_said(world: World, outputs: list[str], why: str) -> None:
    """Not yet, or never: the person is told which, and where the job is."""
    job, _ = world.running(outputs=outputs)
    with pytest.raises(NotFound, match=rf"{job.job_id} \(RUNNING\) {why}"):
        world.read_outputs(job.job_id)


def test_outputs_that_never_came_are_not_promised(world: World) -> None:
    """A job that is over without its outputs does not say "yet"."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0)
    with pytest.raises(NotFound, match="sent none") as missing:
        world.read_outputs(job.job_id)
    assert "yet" not in str(missing.value)


def test_a_job_that_does_not_exist_has_no_outputs(world: World) -> None:
    """An unknown id is said to be unknown."""
    with pytest.raises(NotFound, match="there is no job j-none"):
        world.read_outputs("j-none")
