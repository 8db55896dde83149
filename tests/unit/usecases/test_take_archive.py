"""Checkpoints and outputs come in: nothing counts before its manifest, and the pointer moves last."""

import re

import pytest
from pydantic import ValidationError

from spotferry.types import Conflict, IllegalTransition, InvalidInput, JobState, Manifest, SpotferryError, StaleAttempt
from spotferry.usecases.archive_calls import Addresses, MoreAddresses
from spotferry.usecases.hear_agent import LogChunk
from spotferry.usecases.keys import archive_prefix, begun_later, new_nonce, part_key
from tests.builders import NOW
from tests.unit.usecases.world import ARCHIVE, SHA, World, bearer, state_change

FILES = [{"path": "out/a.txt", "size_bytes": 3, "sha256": SHA}, {"path": "out/b.txt", "size_bytes": 4, "sha256": SHA}]


def test_a_checkpoint_counts_once_it_is_committed(world: World) -> None:
    """The bytes are at their key, the manifest names them, the pointer moves, the answer brings the number."""
    job, attempt = world.running()
    answer = world.checkpoint(attempt)
    assert answer["number"] == 1
    assert answer["directive"]["kind"] == "continue"
    assert world.job(job).checkpoint == 1
    assert world.job(job).checkpointed
    assert world.job(job).last_checkpointed_at == world.clock.now
    kept = world.store.get_checkpoint(job.job_id, 1)
    manifest = Manifest.model_validate_json(world.objects.get(kept.manifest_key))
    assert manifest == kept.manifest
    assert (manifest.kind, manifest.number, manifest.epoch, manifest.engine) == ("checkpoint", 1, 1, "workdir")
    assert world.objects.stored[manifest.parts[0].key] == ARCHIVE


def test_parts_go_under_checkpoint_epoch_and_nonce(world: World) -> None:
    """No two attempts, and no two tries, ever write to the same place."""
    job, attempt = world.running()
    first, second = world.send_bytes(attempt), world.send_bytes(attempt)
    assert first["nonce"] != second["nonce"]
    keys = {key for key, _ in world.objects.uploads.values()}
    assert len(keys) == 2
    for key in keys:
        assert re.fullmatch(rf"checkpoints/{job.job_id}/000001/[0-9a-f]{{32}}/workdir\.tar\.gz", key)


def test_nothing_counts_before_its_commit(world: World) -> None:
    """Bytes that were sent and never committed are no checkpoint, and no object."""
    job, attempt = world.running()
    world.send_bytes(attempt)
    assert world.job(job).checkpoint == 0
    assert world.store.checkpoints(job.job_id) == []
    assert not any(key.startswith("checkpoints/") for key in world.objects.stored)


def test_a_commit_that_is_repeated_answers_the_same(world: World) -> None:
    """The answer was lost: the repeat brings the same number and saves nothing."""
    job, attempt = world.running()
    commit = world.send_bytes(attempt)
    first = world.commit(attempt, commit)
    revision = world.job(job).revision
    assert world.commit(attempt, commit) == first
    assert world.job(job).revision == revision


def test_a_repeat_after_the_next_checkpoint_answers_its_own_number(world: World) -> None:
    """A late repeat does not become the newest checkpoint."""
    job, attempt = world.running()
    commit = world.send_bytes(attempt)
    world.commit(attempt, commit)
    world.checkpoint(attempt)
    assert world.commit(attempt, commit)["number"] == 1
    assert world.job(job).checkpoint == 2


def test_a_commit_that_was_saved_but_not_answered_is_found_by_its_repeat(world: World) -> None:
    """The save went through and its answer was lost: the checkpoint is there once."""
    job, attempt = world.running()
    commit = world.send_bytes(attempt)
    world.store.fail_saves(SpotferryError("no answer"), after_write=True)
    with pytest.raises(SpotferryError, match="no answer"):
        world.commit(attempt, commit)
    assert world.commit(attempt, commit)["number"] == 1
    assert len(world.store.checkpoints(job.job_id)) == 1


def test_the_same_commit_at_the_same_time_is_one_checkpoint(world: World) -> None:
    """Of two deliveries of one commit the slower finds that its archive counts already."""
    job, attempt = world.running()
    commit = world.send_bytes(attempt)
    world.store.fail_saves(Conflict("the other one was faster"), after_write=True)
    assert world.commit(attempt, commit)["number"] == 1
    assert [c.number for c in world.store.checkpoints(job.job_id)] == [1]


def test_outputs_committed_at_the_same_time_are_answered_alike(world: World) -> None:
    """The slower delivery of the last commit is not told that it lost the job."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    world.store.fail_saves(Conflict("the other one was faster"), after_write=True)
    assert world.outputs(attempt, FILES)["directive"]["kind"] == "shut_down"
    assert world.state(job) is JobState.DONE


def test_a_commit_that_meets_another_save_is_numbered_anew(world: World) -> None:
    """A conflict costs a second manifest, not the checkpoint."""
    job, attempt = world.running()
    world.store.conflict_saves(2)
    assert world.checkpoint(attempt)["number"] == 1
    assert world.job(job).checkpoint == 1


def test_a_commit_that_always_meets_others_gives_up(world: World) -> None:
    """The agent is told to repeat; nothing is recorded."""
    job, attempt = world.running()
    world.store.conflict_saves(100)
    with pytest.raises(Conflict, match="commit again"):
        world.checkpoint(attempt)
    assert world.job(job).checkpoint == 0


def test_sizes_that_differ_are_refused(world: World) -> None:
    """What arrived is not what was said: no manifest, no pointer, the one before stays in force."""
    job, attempt = world.running()
    world.checkpoint(attempt)
    commit = world.send_bytes(attempt)
    commit["parts"][0]["size_bytes"] += 1
    with pytest.raises(InvalidInput, match=r"parts\.size_bytes"):
        world.commit(attempt, commit)
    assert world.job(job).checkpoint == 1
    assert len([key for key in world.objects.stored if key.endswith("manifest.json")]) == 1


def test_a_chunk_that_is_missing_is_refused(world: World) -> None:
    """An archive that is not whole never counts."""
    job, attempt = world.running()
    commit = world.send_bytes(attempt)
    commit["parts"][0]["etags"] = []
    with pytest.raises(InvalidInput, match="parts"):
        world.commit(attempt, commit)
    assert world.job(job).checkpoint == 0


def test_an_upload_that_nobody_began_is_refused(world: World) -> None:
    """A made-up upload id makes nothing."""
    _, attempt = world.running()
    commit = world.send_bytes(attempt)
    commit["parts"][0]["upload_id"] = "made-up"
    with pytest.raises(InvalidInput, match="NoSuchUpload"):
        world.commit(attempt, commit)


@pytest.mark.parametrize("nonce", ["", "x" * 32, "../" * 10 + "ab", "AB" * 16])
def test_a_nonce_that_was_not_given_out_is_refused(world: World, nonce: str) -> None:
    """Nobody names places in the bucket but the broker."""
    _, attempt = world.running()
    with pytest.raises(InvalidInput, match="nonce"):
        world.commit(attempt, {**world.send_bytes(attempt), "nonce": nonce})


@pytest.mark.parametrize("name", ["", "../x", "a/b", "UPPER", ".hidden", "x" * 65, "a\n"])
def test_a_part_with_a_strange_name_is_refused(world: World, name: str) -> None:
    """A part is a plain file name below its own prefix."""
    _, attempt = world.running()
    wanted = Addresses.model_validate({"kind": "checkpoint", "parts": [{"name": name, "size_bytes": 1, "sha256": SHA}]})
    with pytest.raises(InvalidInput, match=r"parts\.name"):
        world.archive.addresses(attempt, wanted)


@pytest.mark.parametrize(
    "part",
    [
        {"name": "a", "size_bytes": 0, "sha256": SHA},
        {"name": "a", "size_bytes": 5 * 1024**4 + 1, "sha256": SHA},
        {"name": "a", "size_bytes": 1, "sha256": "no"},
        {"size_bytes": 1, "sha256": SHA},
    ],
)
def test_a_part_out_of_bounds_is_refused(part: dict[str, object]) -> None:
    """Sizes that no bucket takes and digests that are none are refused as they are read."""
    with pytest.raises(ValidationError):
        Addresses.model_validate({"kind": "checkpoint", "parts": [part]})


@pytest.mark.parametrize(
    ("size_bytes", "chunks"),
    [(1, 1), (64 * 1024**2, 1), (64 * 1024**2 + 1, 2), (5 * 1024**3, 80), (1024**4, 500), (2500 * 1024**3, 500)],
)
def test_a_part_is_cut_into_chunks_that_the_bucket_takes(world: World, size_bytes: int, chunks: int) -> None:
    """At most 500 addresses, whose chunks cover the part: none but the last is short."""
    _, attempt = world.running()
    part = {"name": "workdir.tar.gz", "size_bytes": size_bytes, "sha256": SHA}
    answer = world.archive.addresses(attempt, Addresses.model_validate({"kind": "checkpoint", "parts": [part]}))
    cut = answer["parts"][0]
    assert len(cut["urls"]) == chunks
    assert cut["chunk_bytes"] * (chunks - 1) < size_bytes <= cut["chunk_bytes"] * chunks
    assert cut["chunk_bytes"] <= 5 * 1024**3
    assert answer["expires_seconds"] == 3600


def test_who_does_not_own_the_job_gets_no_addresses(world: World) -> None:
    """A successor has nothing to send yet."""
    _, _, successor = world.interrupted()
    world.hello(successor)
    with pytest.raises(StaleAttempt):
        world.send_bytes(successor)


def test_the_next_addresses_are_the_owners_alone(world: World) -> None:
    """They are of its own epoch's place; who lost the job gets none, and a made-up nonce leads nowhere."""
    _, owner, successor = world.interrupted()
    commit = world.send_bytes(owner)
    more = {"kind": "checkpoint", "nonce": commit["nonce"], "name": "workdir.tar.gz", "upload_id": "u", "from_chunk": 9}
    answer = world.archive.more_addresses(world.authenticate(bearer(owner)), MoreAddresses.model_validate(more))
    assert (answer["first_chunk"], answer["expires_seconds"]) == (9, 3600)
    assert f"/000001/{commit['nonce']}/" in answer["urls"][0]
    assert answer["urls"][0].startswith("memory:chunk:u:10:")
    wrong = MoreAddresses.model_validate({**more, "nonce": "x"})
    with pytest.raises(InvalidInput, match="nonce"):
        world.archive.more_addresses(world.authenticate(bearer(owner)), wrong)
    stale = world.authenticate(bearer(owner))
    world.hello(successor)
    world.interruption(state_change(owner, "terminated"))
    with pytest.raises(StaleAttempt):
        world.archive.more_addresses(stale, MoreAddresses.model_validate(more))


def test_a_commit_after_losing_the_job_is_refused(world: World) -> None:
    """Bytes of an attempt that lost the job meanwhile never become its newest checkpoint."""
    job, owner, successor = world.interrupted()
    commit = world.send_bytes(owner)
    stale = world.authenticate(bearer(owner))
    world.hello(successor)
    world.interruption(state_change(owner, "terminated"))
    with pytest.raises(StaleAttempt):
        world.commit(owner, commit)
    assert world.job(job).checkpoint == 0
    assert world.job(job).owner_id == successor.cedana_id
    assert not stale.is_gone


def test_a_commit_by_the_owner_under_notice_is_taken(world: World) -> None:
    """The last checkpoint before the machine goes is the one that counts."""
    job, owner, _ = world.interrupted()
    assert world.checkpoint(owner, reason="instance_termination")["number"] == 1
    assert "before the machine goes" in world.messages(job)[-1]


def test_committed_outputs_end_the_job(world: World) -> None:
    """The job is DONE with its files, its machine is ended, and the agent hears shut_down."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    answer = world.outputs(attempt, FILES)
    assert answer["directive"]["kind"] == "shut_down"
    assert "number" not in answer
    assert world.state(job) is JobState.DONE
    assert "2 files, 7 bytes" in world.messages(job)[-1]
    world.perform()
    assert world.cloud.living() == []


def test_outputs_of_a_task_that_failed_are_kept(world: World) -> None:
    """A job that failed gives what it has."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=4, outputs=True)
    world.outputs(attempt, FILES)
    assert world.state(job) is JobState.FAILED
    assert world.job(job).reason == "the task ended with status 4"
    assert world.read_outputs(job.job_id)["files"] == FILES


def test_outputs_that_are_committed_twice_are_answered_alike(world: World) -> None:
    """The last answer was lost: the repeat is told to shut down, not that it is wrong."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    commit = {**world.send_bytes(attempt, "outputs"), "files": FILES}
    first = world.commit(attempt, commit)
    revision = world.job(job).revision
    assert world.commit(attempt, commit) == first
    assert world.job(job).revision == revision


def test_a_finished_work_directory_is_never_run_again(world: World) -> None:
    """After the commit of a finished task any machine finalizes, also when a later checkpoint does not say so."""
    job, attempt = world.running(outputs=["out"])
    world.checkpoint(attempt, task_over=True, exit_code=0)
    world.checkpoint(attempt)
    assert world.job(job).final_checkpoint
    assert world.job(job).exit_code == 0


def test_a_commit_brings_its_log(world: World) -> None:
    """Log text rides on commits too."""
    _, attempt = world.running()
    assert world.checkpoint(attempt, log=LogChunk(offset=0, text="abc").model_dump())["log_offset"] == 3


def test_a_finished_tasks_status_is_said(world: World) -> None:
    """Without it nobody would know that the task must not run again."""
    job, attempt = world.running(outputs=["out"])
    with pytest.raises(ValidationError, match="exit_code"):
        world.checkpoint(attempt, task_over=True)
    assert world.job(job).checkpoint == 0


def test_parts_have_names_of_their_own(world: World) -> None:
    """Two parts under one name would be one object."""
    _, attempt = world.running()
    commit = world.send_bytes(attempt)
    with pytest.raises(ValidationError, match="names of their own"):
        world.commit(attempt, {**commit, "parts": [*commit["parts"], *commit["parts"]]})


def test_outputs_of_a_task_that_still_runs_are_refused_before_they_are_there(world: World) -> None:
    """Nothing is completed and no manifest is written for what cannot count."""
    job, attempt = world.running(outputs=["out"])
    with pytest.raises(IllegalTransition):
        world.outputs(attempt)
    assert not any(key.startswith(f"outputs/{job.job_id}/") for key in world.objects.stored)


def test_a_commit_that_was_overtaken_is_refused(world: World) -> None:
    """A call that was late by minutes must not make older work the newest; its bytes go, the newer one stays."""
    job, attempt = world.running()
    late = world.send_bytes(attempt, body=b"early work")
    world.later(seconds=60)
    world.checkpoint(attempt, body=b"later work")
    late_key = part_key(archive_prefix("checkpoint", job.job_id, 1, late["nonce"]), late["parts"][0]["name"])
    upload_id = world.objects.begin_multipart(late_key)  # as if giving it up had failed
    etag = world.objects.put_chunk(f"memory:chunk:{upload_id}:1:", b"early work")
    late["parts"][0] |= {"upload_id": upload_id, "etags": [etag]}
    with pytest.raises(InvalidInput, match="checkpoint 1, which was begun later, counts already"):
        world.commit(attempt, late)
    assert [c.number for c in world.store.checkpoints(job.job_id)] == [1]
    assert late_key not in world.objects.stored


def test_names_of_an_older_broker_tell_no_time() -> None:
    """A machine that began under it goes on: its next checkpoint is not taken for an overtaken one."""
    random = f"checkpoints/j/000001/{'f' * 32}/manifest.json"
    timed = f"checkpoints/j/000001/{new_nonce(NOW)}/manifest.json"
    assert not begun_later(random, timed, NOW)
    assert not begun_later(timed.replace("/000001/", "/000002/"), timed, NOW)
    assert begun_later(timed, random.replace("f" * 32, "0" * 32), NOW)
