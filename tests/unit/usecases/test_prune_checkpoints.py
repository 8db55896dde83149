"""What a job no longer keeps leaves the bucket; what it keeps stays whole."""

import hashlib

import pytest

from spotferry.types import Attempt, InvalidInput, NotFound, SpotferryError
from spotferry.types.job_file_recovery import DEFAULT_KEEP as KEEP
from tests.unit.usecases.world import Json, World, bearer, state_change


def parts_of(world: World, attempt: Attempt, number: int) -> list[str]:
    """The keys of a checkpoint's parts."""
    return [part.key for part in world.store.get_checkpoint(attempt.job_id, number).manifest.parts]


def kept_part(world: World, attempt: Attempt, number: int) -> Json:
    """The first part of a checkpoint, as a later commit names it."""
    part = world.store.get_checkpoint(attempt.job_id, number).manifest.parts[0]
    return {"name": part.name, "same_as": number, "size_bytes": part.size_bytes, "sha256": part.sha256}


def building_on(world: World, attempt: Attempt, number: int, body: bytes) -> Json:
    """The commit of a new part beside one of an earlier checkpoint."""
    commit = world.send_bytes(attempt, body=body)
    renamed = f"pack-{hashlib.sha256(body).hexdigest()[:8]}"
    upload_id = world.objects.begin_multipart(f"{world_prefix(attempt, commit)}{renamed}")
    etag = world.objects.put_chunk(f"memory:chunk:{upload_id}:1:", body)
    sent = {**commit["parts"][0], "name": renamed, "upload_id": upload_id, "etags": [etag]}
    return {**commit, "engine": "paths", "parts": [kept_part(world, attempt, number), sent]}


def world_prefix(attempt: Attempt, commit: Json) -> str:
    """Where a commit's parts are."""
    return f"checkpoints/{attempt.job_id}/{attempt.epoch:06}/{commit['nonce']}/"


def test_the_newest_are_kept_and_the_rest_goes(world: World) -> None:
    """Parts are deleted, records say when, manifests stay as history does; a machine is offered what is left."""
    job, attempt = world.running()
    for number in range(4):
        world.checkpoint(attempt, body=b"state %d" % number)
    known = world.store.checkpoints(job.job_id)
    assert [c.number for c in known if c.pruned_at is None] == [4, 3][:KEEP]
    assert {c.pruned_at for c in known[KEEP:]} == {world.clock.now}
    for checkpoint in known:
        there = [part.key in world.objects.stored for part in checkpoint.manifest.parts]
        assert there == [checkpoint.pruned_at is None]
        assert checkpoint.manifest_key in world.objects.stored


def test_the_job_file_says_how_many_are_kept(world: World) -> None:
    """One is enough for who says so, and more are kept for who wants to go back further."""
    for keep in (1, 3):
        job, attempt = world.running(checkpoint={"keep": keep})
        for number in range(4):
            world.checkpoint(attempt, body=b"state %d" % number)
        left = [c.number for c in world.store.checkpoints(job.job_id) if c.pruned_at is None]
        assert left == [4, 3, 2, 1][:keep]


def test_a_part_that_a_kept_checkpoint_uses_stays(world: World) -> None:
    """Its own checkpoint is pruned, the part goes with the last that uses it."""
    job, attempt = world.running()
    world.checkpoint(attempt, body=b"base")
    (base,) = parts_of(world, attempt, 1)
    for number in range(1, 5):
        answer = world.commit(attempt, building_on(world, attempt, number, b"delta %d" % number))
        assert answer["number"] == number + 1
        manifest = world.store.get_checkpoint(job.job_id, number + 1).manifest
        assert (manifest.parts[0].key, manifest.parts[0].same_as) == (base, number)
    assert world.objects.stored[base] == b"base"
    for number in range(2):
        world.checkpoint(attempt, body=b"whole %d" % number)
    assert base not in world.objects.stored


def test_uploads_that_nobody_will_finish_are_given_up(world: World) -> None:
    """A try that failed, and what an attempt had begun that lost the job, cost nothing any more."""
    _, owner, successor = world.interrupted()
    world.send_bytes(owner)
    world.hello(successor)
    world.interruption(state_change(owner, "terminated"))
    world.report(successor, "setup_finished", seconds=1)
    world.report(successor, "task_started", restored_from=None)
    world.send_bytes(successor)
    other, stranger = world.running()
    unrelated = world.send_bytes(stranger)
    world.checkpoint(successor)
    assert [key.split("/")[1] for key, _ in world.objects.uploads.values()] == [other.job_id]
    assert world.commit(stranger, unrelated)["number"] == 1


def test_pruning_that_was_cut_short_is_mended_by_the_next_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint counts all the same, and the repeat of its commit is answered."""
    job, attempt = world.running()
    for number in range(KEEP):
        world.checkpoint(attempt, body=b"state %d" % number)
    commit = world.send_bytes(attempt, body=b"new")
    with monkeypatch.context() as patch:
        patch.setattr(world.objects, "delete", _away)
        with pytest.raises(SpotferryError, match="away"):
            world.commit(attempt, commit)
    assert world.commit(attempt, commit)["number"] == KEEP + 1
    world.checkpoint(attempt, body=b"newer")
    assert [c.number for c in world.store.checkpoints(job.job_id) if c.pruned_at is None] == [KEEP + 2, KEEP + 1]
    for number in range(1, KEEP + 1):
        assert parts_of(world, attempt, number)[0] not in world.objects.stored


def _away(_keys: object) -> None:
    raise SpotferryError("the bucket is away")


def refused(world: World, attempt: Attempt, **changes: object) -> str:
    """What is said of a commit whose kept part is changed so; nothing is recorded and nothing is left of it."""
    before = world.store.checkpoints(attempt.job_id)
    commit = building_on(world, attempt, 1, b"delta")
    commit["parts"][0] |= changes
    with pytest.raises(InvalidInput) as said:
        world.commit(attempt, commit)
    assert world.store.checkpoints(attempt.job_id) == before
    assert [key for key in world.objects.stored if key.startswith(world_prefix(attempt, commit))] == []
    return str(said.value)


@pytest.mark.parametrize("changes", [{"same_as": 7}, {"sha256": "0" * 64}, {"size_bytes": 1}, {"name": "other"}])
def test_a_part_that_no_checkpoint_of_the_job_has_is_refused(world: World, changes: Json) -> None:
    """A number that does not exist, another digest, size or name."""
    _, attempt = world.running()
    world.checkpoint(attempt)
    assert "of this job has no such part" in refused(world, attempt, **changes)


def test_a_part_of_another_job_is_refused(world: World) -> None:
    """Whatever its number and digest: a job builds on its own checkpoints only."""
    _, stranger = world.running()
    for number in range(2):
        world.checkpoint(stranger, body=b"secret %d" % number)
    _, attempt = world.running()
    world.checkpoint(attempt)
    theirs = kept_part(world, stranger, 2)
    assert "has no such part" in refused(world, attempt, **theirs)
    assert "has no such part" in refused(world, attempt, **{**theirs, "same_as": 1})


def test_a_part_of_a_pruned_checkpoint_or_one_that_left_the_bucket_is_refused(world: World) -> None:
    """The agent sends it again then."""
    _, attempt = world.running()
    world.checkpoint(attempt)
    commit = building_on(world, attempt, 1, b"delta")
    for number in range(KEEP):
        world.checkpoint(attempt, body=b"state %d" % number)
    with pytest.raises(InvalidInput, match="no such part"):
        world.commit(attempt, commit)
    late = building_on(world, attempt, KEEP + 1, b"delta")
    del world.objects.stored[parts_of(world, attempt, KEEP + 1)[0]]
    with pytest.raises(InvalidInput, match="left the bucket"):
        world.commit(attempt, late)


def test_a_short_part_with_another_digest_is_refused(world: World) -> None:
    """What came is read and compared; nothing counts, and nothing of it stays."""
    job, attempt = world.running()
    world.checkpoint(attempt)
    commit = world.send_bytes(attempt, body=b"these bytes")
    commit["parts"][0]["sha256"] = hashlib.sha256(b"those bytes").hexdigest()
    with pytest.raises(InvalidInput, match=r"parts\.sha256"):
        world.commit(attempt, commit)
    assert world.job(job).checkpoint == 1
    with pytest.raises(NotFound):
        world.objects.get(f"{world_prefix(attempt, commit)}workdir.tar.gz")
    assert world.authenticate(bearer(attempt)).cedana_id == attempt.cedana_id
