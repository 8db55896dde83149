"""What becomes of a placement that the clouds refuse: set aside, tried elsewhere, tried later, given up."""

import pytest

from spotferry.domain.events import NoticeReceived
from spotferry.domain.placement import OfferIndex
from spotferry.domain.view import PlaceJob
from spotferry.types import (
    JobState,
    LaunchRefused,
    ProviderError,
    ProviderUnavailable,
    SkipProvider,
    TryAgainLater,
    TryNextRegion,
    TryNextType,
    TryNextZone,
    UnknownLaunchError,
)
from tests.fakes import an_offer
from tests.unit.usecases.world import World


@pytest.mark.parametrize(
    ("refusal", "market", "pattern"),
    [
        (TryNextZone("InsufficientInstanceCapacity", "none left"), "spot", "us-east-1/us-east-1a/t3.small"),
        (TryNextZone("ZoneIsFull", "none left", scope="zone"), "spot", "us-east-1/us-east-1a/*"),
        (TryNextRegion("MaxSpotInstanceCountExceeded", "quota"), "spot", "us-east-1/*/*"),
        (TryNextType("VcpuLimitExceeded", "quota"), "spot", "us-east-1/*/t3.*"),
        (SkipProvider("AuthFailure", "who are you"), "on_demand", "*/*/*"),
        (LaunchRefused("InvalidSubnetID.NotFound", "no subnet"), "spot", "us-east-1/*/*"),
        (UnknownLaunchError("Odd", "what"), "spot", "us-east-1/us-east-1a/t3.small"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_refusal_sets_aside_what_it_reaches(world: World, refusal: ProviderError, market: str, pattern: str) -> None:
    """Each class of refusal closes the attempt and leaves its pattern alone, for all jobs."""
    world.cloud.refuse(refusal)
    job = world.submit()
    world.create_instance(job.job_id)
    assert pattern in world.store.bans(["aws"], world.clock())["aws", market]
    assert world.attempt(job).is_gone
    assert world.attempt(job).failure_code == refusal.code
    assert world.state(job) is JobState.PENDING
    assert refusal.code in world.messages(job)[-1]


def test_after_a_refusal_the_next_candidate_is_the_next_attempt(world: World) -> None:
    """A stockout moves on to the next cheapest at once, under the next epoch."""
    world.cloud.refuse(TryNextZone("InsufficientInstanceCapacity", "none left"), times=2)
    job = world.submit()
    world.perform()
    attempts = world.store.attempts_of(job.job_id)
    assert [(a.epoch, a.instance_type, a.availability_zone) for a in attempts] == [
        (1, "t3.small", "us-east-1a"),
        (2, "t3.small", "us-east-1b"),
        (3, "m5.large", "us-east-1a"),
    ]
    assert [a.is_gone for a in attempts] == [True, True, False]
    assert world.job(job).interruptions == 0


def test_a_ban_ends(world: World) -> None:
    """What was set aside is tried again when its time is over."""
    world.cloud.refuse(TryNextZone("InsufficientInstanceCapacity", "none left"))
    world.launched()
    world.clock.move(minutes=3, seconds=1)
    _, attempt = world.launched()
    assert attempt.availability_zone == "us-east-1a"


def test_nothing_free_is_deferred_with_growing_pauses(world: World) -> None:
    """While all is set aside the job stays PENDING with the reason on it, and is tried at 15, 30, 60 ... seconds."""
    far = world.clock.now.replace(year=2027)
    world.store.ban("aws", "spot", "*/*/*", far, "all is taken")
    job = world.submit()
    pauses = []
    for _ in range(8):
        world.perform()
        at = world.job(job).next_try_at
        assert at is not None
        pauses.append((at - world.clock.now).total_seconds())
        assert world.queue.waiting == [PlaceJob(job.job_id, at)]
        world.clock.now = at
    assert pauses == [15, 30, 60, 120, 300, 600, 600, 600]
    assert world.state(job) is JobState.PENDING
    assert "no machine now" in world.messages(job)[-1]


def test_a_candidate_that_cannot_be_prepared_is_passed_over(world: World) -> None:
    """An image that is missing in a region sets the region aside; no attempt is made of it."""
    world.cloud.refuse(LaunchRefused("InvalidAMIID.NotFound", "no image"), on="prepare")
    job, attempt = world.launched()
    assert attempt.region == "eu-west-1"
    assert job.epoch == 1


def test_a_region_that_does_not_answer_is_passed_over_for_a_minute(world: World) -> None:
    """No verdict on an image leaves the region alone for a minute, not the job."""
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"), on="prepare")
    _, attempt = world.launched()
    assert attempt.region == "eu-west-1"
    world.clock.move(seconds=61)
    assert world.store.bans(["aws"], world.clock()) == {}


def test_a_cloud_that_throttles_every_preparation_defers_the_job(world: World) -> None:
    """After so many fruitless candidates the job waits, and its reason does not claim that one was had."""
    world.cloud.refuse(TryAgainLater("RequestLimitExceeded", "slow down"), times=100, on="prepare")
    job = world.submit()
    plan = world.create_instance(job.job_id)
    assert plan is not None
    assert plan.chosen is None
    assert world.cloud.calls["prepare"] == 8
    assert world.state(job) is JobState.PENDING
    assert "could not be prepared" in world.job(job).reason


OWN_FAULT = LaunchRefused("InvalidAMIID.NotFound", "there is no image ami-gone", scope="none")


@pytest.mark.parametrize("where", ["prepare", "create"])
def test_what_the_job_itself_asks_for_is_at_fault(world: World, where: str) -> None:
    """An image of the job's own that does not exist is missing everywhere: the job fails with the cloud's words."""
    world.cloud.refuse(OWN_FAULT, times=2, on=where)
    job = world.submit(machine_image="ami-gone")
    world.perform()
    assert world.state(job) is JobState.FAILED
    assert "ami-gone" in world.job(job).reason
    assert world.job(job).is_settled
    assert world.store.bans(["aws"], world.clock()) == {}
    assert world.cloud.machines == {}


def test_a_running_job_is_not_failed_by_its_successors_refusal(world: World) -> None:
    """While the owner may still save its work, a successor that cannot be had is only tried again later."""
    job, owner = world.running()
    world.cloud.refuse(OWN_FAULT, on="prepare")
    world.change(job.job_id, NoticeReceived(owner.cedana_id, "terminate"), owner.cedana_id)
    world.perform()
    assert world.state(job) is JobState.INTERRUPTED
    assert world.messages(job)[-1].startswith("no machine now: there is no image ami-gone; next try at")
    world.clock.move(seconds=15)
    world.perform()
    assert world.job(job).successor_id


def test_of_a_job_that_is_cancelled_while_the_cloud_refuses_nothing_is_left(world: World) -> None:
    """A refusal that comes after the cancel ends the job as cancelled, not as failed."""
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"))
    job = world.submit()
    world.create_instance(job.job_id)
    attempt = world.attempt(job)
    world.steer("cancel", job.job_id, "ann")
    world.cloud.refuse(OWN_FAULT)
    world.ask(job.job_id, attempt)
    assert world.state(job) is JobState.CANCELLED
    assert world.job(job).is_settled


def test_a_wide_shortage_is_walked_through_and_not_round_and_round(world: World) -> None:
    """A pool that refused the job is not asked again while others are left, also when its own ban has run out."""
    offers = [an_offer(f"t3.{size}", f"us-east-1{zone}", f"0.0{n}{m}") for n, size in enumerate("pqrstu", 1)
              for m, zone in enumerate("abc", 1)]  # fmt: skip
    free = an_offer("m5.large", "us-east-1a", "0.900", 8)
    world.catalogue.index = OfferIndex([*offers, free])
    world.cloud.refuse(TryNextZone("InsufficientInstanceCapacity", "none left"), times=len(offers))
    job = world.submit()
    for _ in range(len(offers) + 1):
        world.create_instance(job.job_id)
        world.clock.move(seconds=40)
    asked = [(a.instance_type, a.availability_zone) for a in world.store.attempts_of(job.job_id)]
    assert len(asked) == len(set(asked)) == len(offers) + 1
    assert asked[-1] == ("m5.large", "us-east-1a")
    assert world.state(job) is JobState.PROVISIONING
