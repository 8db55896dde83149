"""What a job would get now, without making one."""

import pytest

from spotferry.domain.placement import OfferIndex
from spotferry.types import ImpossibleSpecs, InvalidInput, JobFile
from tests.fakes import OFFERS, FakeRegions, an_offer
from tests.unit.usecases.world import World


def spec(**specs: object) -> JobFile:
    """A job file that asks for this machine."""
    return JobFile.model_validate({"task": {"run": ["x"]}, "instance_specs": specs})


def test_a_plan_writes_nothing(world: World) -> None:
    """A plan makes no job and no ban."""
    plan = world.plan_job(spec(memory_gb=8))
    assert plan.chosen is not None
    assert plan.chosen.offer.instance_type == "m5.large"
    assert plan.fit + sum(plan.excluded.values()) == plan.considered
    assert list(world.store.unsettled_jobs()) == []


def test_only_regions_that_were_set_up_count(world: World) -> None:
    """Offers elsewhere are excluded, and counted."""
    world.regions = FakeRegions(("aws", "eu-west-1"))
    plan = world.plan_job(spec())
    assert plan.chosen is not None
    assert plan.chosen.offer.region == "eu-west-1"
    assert plan.excluded["region_not_set_up"] > 0


def test_a_cloud_that_nobody_can_launch_on_is_closed(world: World) -> None:
    """Its prices may be known and its region set up: a plan that chose it would promise what no launch can keep."""
    cheap = an_offer("n1-standard-1", "us-central1-a", "0.001").model_copy(update={"provider": "gcp"})
    world.catalogue.index = OfferIndex([*OFFERS, cheap])
    world.regions = FakeRegions(("aws", "us-east-1"), ("gcp", cheap.region))
    plan = world.plan_job(spec())
    assert plan.chosen is not None
    assert plan.chosen.offer.provider == "aws"


def test_bans_and_avoided_pools_count(world: World) -> None:
    """What is set aside for all, or for this job, is passed over."""
    world.store.ban("aws", "spot", "us-east-1/us-east-1a/t3.small", world.clock.now.replace(hour=13), "short")
    plan = world.plan_job.plan(spec(), ("us-east-1/us-east-1b/t3.small",))
    assert plan.chosen is not None
    assert plan.chosen.offer.instance_type == "m5.large"
    assert (plan.excluded["banned"], plan.excluded["avoided"]) == (1, 1)
    assert plan.words.endswith(" Left alone for now, 1 candidate: aws us-east-1a t3.small (spot) because short.")


def test_a_plan_says_why_others_were_passed_over(world: World) -> None:
    """The reason stands in its words, for the clouds that the job may use, and only where it changed anything."""
    until = world.clock.now.replace(hour=13)
    world.store.ban("aws", "spot", "us-west-2/*/*", until, "UnauthorizedOperation: a policy denies it")
    world.store.ban("aws", "spot", "us-east-1/*/*", until, "UnauthorizedOperation: a policy denies it")
    world.store.ban("aws", "on_demand", "us-east-1/*/*", until, "UnauthorizedOperation: a policy denies it")
    plan = world.plan_job.plan(spec())
    assert "3 candidates: aws us-east-1 (spot) because UnauthorizedOperation: a policy denies it." in plan.words
    elsewhere = world.plan_job.plan(spec(regions=["eu-west-1"]))
    assert "Left alone" not in elsewhere.words


def test_an_impossible_specification_is_refused(world: World) -> None:
    """The problem names the field that excludes the most."""
    with pytest.raises(ImpossibleSpecs) as refused:
        world.plan_job(spec(cpu_cores=64))
    assert refused.value.problems[0].field == "instance_specs.cpu_cores"


def test_an_image_of_the_jobs_own_may_need_any_disk(world: World) -> None:
    """Nobody knows the size of a job's own image here: the cloud checks it."""
    own = spec(disk_gb=1).model_copy(update={"machine_image": "ami-0123456789abcdef0"})
    assert world.plan_job(own).chosen is not None


def test_a_region_that_nobody_has_heard_of_is_refused(world: World) -> None:
    """By its place in the list and with the nearest known name, even beside one that would do."""
    with pytest.raises(InvalidInput) as refused:
        world.plan_job(spec(regions=("us-east-1", "us-eats-1", "nowhere")))
    problems = {problem.field: problem.message for problem in refused.value.problems}
    assert set(problems) == {"instance_specs.regions.1", "instance_specs.regions.2"}
    assert "did you mean us-east-1?" in problems["instance_specs.regions.1"]
    assert "there are: eu-west-1, us-east-1" in problems["instance_specs.regions.2"]
    with pytest.raises(InvalidInput, match=r"^instance_specs\.regions: 'us-eats-1'"):
        world.plan_job(spec(regions=("us-eats-1",)))


def test_a_region_of_another_cloud_is_not_one_of_this(world: World) -> None:
    """Where the job names its clouds, their regions are those that are known."""
    with pytest.raises(InvalidInput, match="did you mean us-east-1"):
        world.plan_job(spec(providers=("aws",), regions=("us-east1",)))


def test_a_region_that_was_just_opened_is_known(world: World) -> None:
    """Its prices may not have been read yet: the plan says what is missing, and no word is called wrong."""
    world.regions = FakeRegions(("aws", "us-east-1"), ("aws", "ap-south-1"))
    plan = world.plan_job(spec(regions=("us-east-1", "ap-south-1")))
    assert plan.chosen is not None
    with pytest.raises(ImpossibleSpecs):
        world.plan_job(spec(regions=("ap-south-1",)))


def test_without_any_prices_no_region_is_called_wrong(world: World) -> None:
    """The plan says that the catalogue is empty."""
    world.catalogue.index = OfferIndex(())
    assert "refresh" in world.plan_job(spec(regions=("us-eats-1",))).words
