"""Records for tests: a job in any state, with the attempts that such a job has."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

from spotferry.domain import events as e
from spotferry.domain.view import Policy, View
from spotferry.types import ArchivePart, Attempt, AttemptPhase, CheckpointReason, Job, JobFile, JobState, Manifest

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
JOB_ID = "j-test"
OWNER = "i-1"
OTHER = "i-0"
SHA = "ab" * 32


def an_attempt(epoch: int, **changes: object) -> Attempt:
    """An attempt whose machine runs and whose agent has arrived."""
    fields: dict[str, object] = {
        "cedana_id": f"i-{epoch}",
        "job_id": JOB_ID,
        "epoch": epoch,
        "provider": "aws",
        "instance_type": "m5.large",
        "region": "us-east-1",
        "availability_zone": "us-east-1a",
        "price": Decimal("0.035"),
        "on_demand_usd_hour": Decimal("0.096"),
        "state": "running",
        "phase": AttemptPhase.ARRIVED,
        "allocated_id": f"i-cloud{epoch}",
        "requested_at": NOW - timedelta(minutes=10),
        "launched_at": NOW - timedelta(minutes=9),
        "arrived_at": NOW - timedelta(minutes=8),
        "last_seen": NOW - timedelta(seconds=30),
    }
    return Attempt.model_validate(fields | changes)


def a_job(state: JobState = JobState.PENDING, **changes: object) -> Job:
    """A job record."""
    fields: dict[str, object] = {
        "job_id": JOB_ID,
        "state": state,
        "revision": 7,
        "owner": "ann",
        "created_at": NOW - timedelta(minutes=11),
        "updated_at": NOW - timedelta(minutes=1),
        "spec": JobFile.model_validate({"task": {"run": "true"}}),
        "reason": "as it is",
    }
    return Job.model_validate(fields | changes)


def a_view(job: Job, *attempts: Attempt, policy: Policy | None = None) -> View:
    """A view of the job with these attempts."""
    return View(job, MappingProxyType({a.cedana_id: a for a in attempts}), policy or Policy())


_OWNER_CHANGES: Mapping[JobState, Mapping[str, object]] = {
    JobState.PROVISIONING: {"phase": AttemptPhase.CREATED, "arrived_at": None, "last_seen": None},
    JobState.RUNNING: {"phase": AttemptPhase.READY},
    JobState.FINALIZING: {"phase": AttemptPhase.READY},
    JobState.INTERRUPTED: {"notice_at": NOW, "phase": AttemptPhase.READY},
    JobState.SETUP_FAILED: {"phase": AttemptPhase.HELD, "held_because": "setup"},
    JobState.STARTUP_FAILED: {"phase": AttemptPhase.HELD, "held_because": "startup"},
    JobState.DONE: {"phase": AttemptPhase.READY, "ending": True},
    JobState.FAILED: {"phase": AttemptPhase.READY, "ending": True},
    JobState.CANCELLED: {"phase": AttemptPhase.RELEASED, "ending": True, "released_at": NOW},
}


def view_in(state: JobState, *, policy: Policy | None = None, **job_changes: object) -> View:
    """A job in that state with the owner it then has (i-1), and an older attempt (i-0) that lost it."""
    older = an_attempt(0, gone_at=NOW, state="terminated", phase=AttemptPhase.RELEASED, released_at=NOW)
    if state is JobState.PENDING:
        return a_view(a_job(state, epoch=1, **job_changes), older, policy=policy)
    owner = an_attempt(1, **_OWNER_CHANGES.get(state, {}))
    held = {"deadline": NOW + timedelta(minutes=5)} if state.name.endswith("_FAILED") else {}
    over = {"exit_code": 0} if state is JobState.FINALIZING else {}
    fields = {"epoch": 1, "owner_id": OWNER, "open_attempts": (OWNER,), **held, **over, **job_changes}
    return a_view(a_job(state, **fields), older, owner, policy=policy)


def a_manifest(number: int = 1, epoch: int = 1, *, exit_code: int | None = None) -> Manifest:
    """A checkpoint's manifest; of a finished task if it has an exit code."""
    part = ArchivePart(name="workdir.tar.gz", key=f"checkpoints/{JOB_ID}/{epoch}/n{number}/workdir.tar.gz",
                       size_bytes=10, sha256=SHA)  # fmt: skip
    return Manifest(
        kind="checkpoint",
        job_id=JOB_ID,
        number=number,
        epoch=epoch,
        engine="workdir",
        reason=CheckpointReason.HEARTBEAT,
        created_at=NOW,
        parts=(part,),
        task_over=exit_code is not None,
        exit_code=exit_code,
    )


def an_event(kind: type[e.Event], instance_id: str = OWNER, *, epoch: int = 2) -> e.Event:  # noqa: C901, PLR0911, PLR0912 (one case a kind)
    """An event of that kind about that attempt."""
    match kind:
        case e.LaunchChosen:
            fresh = {"phase": AttemptPhase.REQUESTED, "allocated_id": "", "launched_at": None, "arrived_at": None}
            return e.LaunchChosen(an_attempt(epoch, state="pending", last_seen=None, **fresh), "the cheapest")
        case e.PlacementDeferred:
            return e.PlacementDeferred("all pools are set aside", NOW + timedelta(minutes=1))
        case e.PlacementImpossible:
            return e.PlacementImpossible("no machine has 9 TiB of memory")
        case e.MachineCreated:
            return e.MachineCreated(instance_id, "i-new", "pending", "us-east-1b", asked_again_at=None)
        case e.LaunchFailed:
            return e.LaunchFailed(instance_id, "InsufficientInstanceCapacity", "no capacity", asked_again_at=None)
        case e.SetupFailed:
            return e.SetupFailed(instance_id, 2, "make")
        case e.StartupFailed | e.CheckpointFailed | e.OutputsFailed | e.MachineCondemned:
            return kind(instance_id, "disk full")
        case e.CheckpointCommitted:
            return e.CheckpointCommitted(instance_id, a_manifest(), "checkpoints/m.json")
        case e.TaskExited:
            return e.TaskExited(instance_id, 0)
        case e.OutputsCommitted:
            return e.OutputsCommitted(instance_id, "outputs/m.json", 2, 100)
        case e.NoticeReceived:
            return e.NoticeReceived(instance_id, "spot-interruption", NOW + timedelta(minutes=2))
        case e.RebalanceAdvised:
            return e.RebalanceAdvised(instance_id, "rebalance-recommendation")
        case e.CommandEnded:
            return e.CommandEnded(instance_id, "post_setup", 0, 1.5)
        case e.CancelRequested | e.RetryRequested | e.CheckpointRequested:
            return kind("ann")
        case e.LimitReached:
            return e.LimitReached("max_cost_usd 3 is used up: its machines have cost $3.0100")
        case e.HoldExpired:
            return e.HoldExpired()
    return kind(instance_id)  # type: ignore[call-arg, arg-type]  # the kinds left over take the attempt alone
