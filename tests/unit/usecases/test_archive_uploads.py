"""Uploads in chunks: what is too large is not begun, and what is refused is given up."""

import pytest

from spotferry.types import Conflict, InvalidInput, StaleAttempt
from spotferry.usecases.archive_calls import Addresses, Commit
from tests.unit.usecases.world import SHA, World, bearer, state_change


@pytest.mark.parametrize("size_bytes", [2500 * 1024**3 + 1, 5 * 1024**4])
def test_a_part_larger_than_its_chunks_may_be_is_refused_before_anything_is_begun(
    world: World, size_bytes: int
) -> None:
    """The refusal names the part and the most that can be stored, and no upload of another part is left behind."""
    _, attempt = world.running()
    parts = [{"name": name, "size_bytes": n, "sha256": SHA} for name, n in (("small", 1), ("large", size_bytes))]
    wanted = Addresses.model_validate({"kind": "checkpoint", "parts": parts})
    with pytest.raises(InvalidInput, match=r"large has \d+ bytes, and at most 2684354560000"):
        world.archive.addresses(attempt, wanted)
    assert world.objects.uploads == {}


def test_a_commit_that_is_refused_gives_its_uploads_up(world: World) -> None:
    """Chunks that never become an archive are not paid for; other uploads go on."""
    _, attempt = world.running()
    other = world.send_bytes(attempt)
    commit = world.send_bytes(attempt)
    commit["parts"][0]["etags"] = []
    with pytest.raises(InvalidInput):
        world.commit(attempt, commit)
    assert list(world.objects.uploads) == [other["parts"][0]["upload_id"]]
    assert world.commit(attempt, other)["number"] == 1


def test_a_commit_after_losing_the_job_gives_its_uploads_up(world: World) -> None:
    """The loser's chunks go with it."""
    _, owner, successor = world.interrupted()
    commit = Commit.model_validate(world.send_bytes(owner))
    stale = world.authenticate(bearer(owner))
    world.hello(successor)
    world.interruption(state_change(owner, "terminated"))
    with pytest.raises(StaleAttempt):
        world.archive.commit(stale, commit)
    assert world.objects.uploads == {}


def test_a_commit_that_meets_others_keeps_its_uploads_for_the_repeat(world: World) -> None:
    """Being slower is no refusal: the same commit goes through later."""
    _, attempt = world.running()
    commit = world.send_bytes(attempt)
    world.store.conflict_saves(6)
    with pytest.raises(Conflict):
        world.commit(attempt, commit)
    assert world.commit(attempt, commit)["number"] == 1
