"""A job file becomes a job, once."""

import pytest

from spotferry.domain.view import PlaceJob
from spotferry.types import IdempotencyConflict, ImpossibleSpecs, InvalidInput, Job, JobState, NotFound, Upload
from spotferry.usecases.keys import upload_key
from spotferry.usecases.submit_job import Submission
from tests.fakes import QueueAwayError
from tests.unit.usecases.world import ARCHIVE, SHA, World

UPLOAD = Upload(sha256=SHA, size_bytes=len(ARCHIVE))


def test_a_job_is_written_and_asks_for_a_machine(world: World) -> None:
    """The job is PENDING with its first timeline entry, and one placement is asked for."""
    job = world.submit(name="count")
    assert world.job(job).state is JobState.PENDING
    assert world.messages(job) == ["accepted"]
    assert world.queue.waiting == [PlaceJob(job.job_id)]
    assert job.owner == "ann"
    assert job.bucket == "bucket"


def test_the_answer_tells_what_the_job_would_get(world: World) -> None:
    """A submission is answered with the plan as things are now."""
    chosen = world.submitted().plan.chosen
    assert chosen is not None
    assert chosen.pool == "us-east-1/us-east-1a/t3.small"


def test_two_submissions_without_a_key_are_two_jobs(world: World) -> None:
    """The same body without an Idempotency-Key makes a job each time."""
    assert world.submit().job_id != world.submit().job_id


def test_the_same_key_and_body_is_the_same_job(world: World) -> None:
    """A repeat answers the job that there is and makes none."""
    first, second = world.submitted("k"), world.submitted("k")
    assert (first.is_new, second.is_new) == (True, False)
    assert first.job.job_id == second.job.job_id
    assert len(world.messages(first.job)) == 1


def test_the_same_key_with_another_body_is_refused(world: World) -> None:
    """The conflict names the job that has the key, and nothing is written or sent."""
    job = world.submit("k")
    world.queue.take()
    with pytest.raises(IdempotencyConflict, match=job.job_id):
        world.submitted("k", body="cd" * 32)
    assert world.queue.waiting == []
    assert list(world.store.unsettled_jobs()) == [job.job_id]


def test_keys_of_two_people_do_not_meet(world: World) -> None:
    """A key means something for its owner only."""
    mine = world.submitted("k").job
    theirs = world.submit_job(Submission("bob", mine.spec, "job.yml", None, "cd" * 32, "k"))
    assert theirs.is_new
    assert theirs.job.job_id != mine.job_id


def test_a_queue_that_was_away_is_healed_by_the_repeat(world: World) -> None:
    """Saved but not sent: the client's repeat with the same key asks for the machine."""
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.submit("k")
    repeated = world.submitted("k")
    assert not repeated.is_new
    assert world.queue.waiting == [PlaceJob(repeated.job.job_id)]


def test_a_queue_that_was_away_is_healed_by_the_poll(world: World) -> None:
    """Saved but not sent, and nobody repeats: the next poll asks for the machine."""
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.submit()
    world.poll()
    world.perform()
    assert [world.store.get_job(i).state for i in world.store.unsettled_jobs()] == [JobState.PROVISIONING]


def test_a_repeat_of_a_job_under_way_sends_nothing(world: World) -> None:
    """Once a machine was chosen a repeat owes nothing."""
    world.submit("k")
    world.perform()
    world.submit("k")
    assert world.queue.waiting == []


def test_two_submissions_at_once_make_one_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the other submission was written after this one had looked, its job is the answer."""
    first = world.submit("k")
    look = world.store.get_job

    def looked_too_early(job_id: str) -> Job:
        monkeypatch.setattr(world.store, "get_job", look)
        raise NotFound(job_id)

    monkeypatch.setattr(world.store, "get_job", looked_too_early)
    second = world.submitted("k")
    assert second.job.job_id == first.job_id
    assert not second.is_new


@pytest.mark.parametrize(
    ("specs", "field"),
    [
        ({"memory_gb": 1000}, "instance_specs.memory_gb"),
        ({"max_price_usd_hour": 0.001}, "instance_specs.max_price_usd_hour"),
        ({"disk_gb": 1}, "instance_specs.disk_gb"),
        ({"gpu": "H100"}, "instance_specs.gpu"),
    ],
)
def test_what_can_never_fit_is_refused(world: World, specs: dict[str, object], field: str) -> None:
    """An impossible specification names its field, and no job is written."""
    with pytest.raises(ImpossibleSpecs) as refused:
        world.submit(instance_specs=specs)
    assert refused.value.problems[0].field == field
    assert list(world.store.unsettled_jobs()) == []
    assert world.queue.sent == []


def test_what_is_only_set_aside_now_is_accepted(world: World) -> None:
    """Pools that are banned for a while make nobody's job impossible."""
    for market in ("spot", "on_demand"):
        world.store.ban("aws", market, "*/*/*", world.clock.now.replace(hour=13), "all is taken")
    assert world.submit().state is JobState.PENDING


def test_a_job_with_its_bytes_is_taken(world: World) -> None:
    """A work directory that is in the bucket, as large as said, is the job's."""
    world.objects.put(upload_key(SHA), ARCHIVE)
    assert world.submitted(upload=UPLOAD, work_dir="work").job.upload == UPLOAD


@pytest.mark.parametrize(
    ("stored", "upload", "field"),
    [
        (None, None, "upload"),
        (None, UPLOAD, "upload.sha256"),
        (b"short", UPLOAD, "upload.size_bytes"),
    ],
)
def test_a_job_without_its_bytes_is_refused(
    world: World, stored: bytes | None, upload: Upload | None, field: str
) -> None:
    """No job exists whose work directory is missing or of another size."""
    if stored is not None:
        world.objects.put(upload_key(SHA), stored)
    with pytest.raises(InvalidInput) as refused:
        world.submitted(upload=upload, work_dir="work")
    assert refused.value.problems[0].field == field
    assert list(world.store.unsettled_jobs()) == []
