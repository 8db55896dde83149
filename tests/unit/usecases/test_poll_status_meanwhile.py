"""What happens to a job's other machine while a poll repairs the first."""

from dataclasses import dataclass, field

from spotferry.domain import events as e
from spotferry.types import Attempt, CapacityError, TryNextZone
from tests.fake_cloud import FakeCloud, FakeClouds
from tests.unit.usecases.world import World


@dataclass(slots=True)
class SettlingCloud(FakeCloud):
    """A cloud that tells later how launches ended; while it tells of the first, somebody closes the second."""

    world: World | None = None
    second: str = ""
    told: list[str] = field(default_factory=list)

    def settle_launch(self, attempt: Attempt) -> CapacityError | None:
        """The first came to nothing; nothing is told of the second."""
        self.told.append(attempt.cedana_id)
        if attempt.cedana_id == self.second or self.world is None:
            return None
        self.world.change(attempt.job_id, e.MachineGone(self.second, "closed meanwhile"), self.second)
        return TryNextZone("ZONE_RESOURCE_POOL_EXHAUSTED", "the zone had none left", attempt.region)


def test_a_machine_that_was_closed_while_the_poll_looked_at_the_other_is_no_problem(world: World) -> None:
    """The poll goes by the job as it is by then."""
    job, owner, successor = world.interrupted()
    cloud = SettlingCloud(machines=dict(world.cloud.machines), world=world, second=successor.cedana_id)
    for instance_id in (owner.cedana_id, successor.cedana_id):
        ended = {"state": "terminated", "ended_by": "launch"}
        cloud.machines[instance_id] = cloud.machines[instance_id].model_copy(update=ended)
    world.clouds.by_name["aws"] = cloud
    assert isinstance(world.clouds, FakeClouds)
    assert world.poll().problems == []
    assert cloud.told == [owner.cedana_id, successor.cedana_id]
    assert world.attempt(job, 0).is_gone
    assert world.attempt(job, 1).is_gone
