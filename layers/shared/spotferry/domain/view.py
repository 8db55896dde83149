"""What a decision sees, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job, TimelineEntry


@dataclass(frozen=True, slots=True)
class Policy:
    """The deployment's patience.

    Attributes:
        boot: how long a machine may take from its launch to its agent's hello.
        silence: how long an agent may say nothing; longer than the lease, so that the agent has ended itself by then.
        hold: how long a machine waits for a retry after its setup or start failed.
        cancel: how long an agent has to stop the task of a cancelled job.
        notice: how long past its deadline a machine under notice may still be there.
        visibility: how long a new machine may be missing from the cloud's listings.
        boot_attempts: how many machines in a row may fail to say hello before the job is failed.
        lost_attempts: how many machines in a row may end by themselves under the job before it is failed.
        overlap: a successor is placed at the notice, not after the release.
    """

    boot: timedelta = timedelta(minutes=10)
    silence: timedelta = timedelta(minutes=20)
    hold: timedelta = timedelta(minutes=10)
    cancel: timedelta = timedelta(minutes=2)
    notice: timedelta = timedelta(minutes=1)
    visibility: timedelta = timedelta(minutes=5)
    boot_attempts: int = 3
    lost_attempts: int = 5
    overlap: bool = True


@dataclass(frozen=True, slots=True)
class View:
    """A job and the attempts that a decision about it may touch.

    Attributes:
        job: the job as loaded; its revision is what a save is conditional on.
        attempts: every open attempt of the job (its machine is not known to be gone), and the attempt that the event
            is about, by id.
        policy: the deployment's patience.
    """

    job: Job
    attempts: Mapping[str, Attempt] = field(default_factory=lambda: MappingProxyType({}))
    policy: Policy = field(default_factory=Policy)

    @property
    def owner(self) -> Attempt | None:
        """The attempt that owns the job."""
        return self.attempts.get(self.job.owner_id) if self.job.owner_id else None

    @property
    def successor(self) -> Attempt | None:
        """The attempt that waits to own it."""
        return self.attempts.get(self.job.successor_id) if self.job.successor_id else None

    def open_attempts(self) -> list[Attempt]:
        """The attempts whose machine is not known to be gone."""
        return [self.attempts[i] for i in self.job.open_attempts if i in self.attempts]

    def with_job(self, **changes: object) -> "View":
        """The view with fields of the job changed."""
        return replace(self, job=self.job.model_copy(update=changes))

    def with_attempt(self, attempt: Attempt) -> "View":
        """The view with one attempt added or replaced."""
        return replace(self, attempts=MappingProxyType({**self.attempts, attempt.cedana_id: attempt}))


@dataclass(frozen=True, slots=True)
class PlaceJob:
    """The job needs a machine; not before a time, if one is given."""

    job_id: str
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckLaunch:
    """The launch's answer is not known: ask again, or find the machine.

    `asked_again_at` is the attempt's: of a launch that was asked for again there is something new to look at.
    """

    job_id: str
    instance_id: str
    asked_again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DestroyInstance:
    """The machine is to end.

    `allocated_id` is what is known of it: an order for a machine that has got its id since is a new order.
    """

    job_id: str
    instance_id: str
    allocated_id: str = ""


Effect = PlaceJob | CheckLaunch | DestroyInstance


@dataclass(frozen=True, slots=True)
class Decision:
    """What an event changes and what is owed because of it.

    Attributes:
        view: the view after the event; the same object content when nothing changed.
        effects: what to do once the view is saved.
        entry: the timeline entry of the change; None when nothing changed and so nothing is to be saved.
        checkpoint: the checkpoint record that the change commits, if any.
    """

    view: View
    effects: tuple[Effect, ...] = ()
    entry: TimelineEntry | None = None
    checkpoint: Checkpoint | None = None
