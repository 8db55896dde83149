"""One job through `decide` alone, and what its timeline tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Directive, Order, decide, directive, overdue
from spotferry.domain.owed import accept, owed
from spotferry.domain.view import DestroyInstance, PlaceJob, Policy, View
from spotferry.types import AttemptPhase, JobFile, JobState
from tests.builders import JOB_ID, NOW, a_job, a_manifest, an_attempt

_BLANK: dict[str, object] = {
    "phase": AttemptPhase.REQUESTED,
    "allocated_id": "",
    "state": "pending",
    "launched_at": None,
    "arrived_at": None,
    "last_seen": None,
}


@dataclass
class Story:
    """One job, and what was said about it."""

    policy: Policy = field(default_factory=Policy)
    now: datetime = NOW
    spec: Mapping[str, object] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    view: View = field(init=False)

    def __post_init__(self) -> None:
        """The job is accepted."""
        decision = accept(a_job(spec=JobFile.model_validate({"task": {"run": ["x"]}, **self.spec})), self.now)
        self.view = replace(decision.view, policy=self.policy)
        assert owed(self.view) == (PlaceJob(JOB_ID),)

    def hear(self, *events: e.Event, after: float = 10) -> JobState:
        """These happen, one after the other, so many seconds apart."""
        for event in events:
            self.now += timedelta(seconds=after)
            decision = decide(self.view, event, now=self.now)
            self.view = decision.view
            if decision.entry is not None:
                self.told.append(decision.entry.message)
        return self.state

    @property
    def state(self) -> JobState:
        """Where the job is."""
        return self.view.job.state

    def choose(self) -> str:
        """Placement chooses a machine; its id."""
        epoch = self.view.job.epoch + 1
        blank = {**_BLANK, "requested_at": self.now, "cedana_id": f"i-{epoch}"}
        self.hear(e.LaunchChosen(an_attempt(epoch, **blank), "the cheapest of 12 that fit"))
        return f"i-{epoch}"

    def launch(self) -> str:
        """A machine is chosen and made."""
        instance_id = self.choose()
        self.hear(e.MachineCreated(instance_id, f"cloud-{instance_id}", "pending", asked_again_at=None))
        return instance_id

    def ready(self) -> str:
        """A machine is made, and its setup done."""
        instance_id = self.launch()
        self.hear(e.AgentArrived(instance_id), e.SetupFinished(instance_id, 42))
        return instance_id

    def run(self) -> str:
        """A machine runs the task."""
        instance_id = self.ready()
        self.hear(e.TaskStarted(instance_id))
        return instance_id

    def notice(self, instance_id: str) -> JobState:
        """The cloud takes the machine back in two minutes."""
        return self.hear(e.NoticeReceived(instance_id, "terminate", self.now + timedelta(minutes=2)))

    def save(self, instance_id: str, exit_code: int | None = None) -> None:
        """A checkpoint is committed."""
        manifest = a_manifest(self.view.job.checkpoint + 1, self.view.job.epoch, exit_code=exit_code)
        self.hear(e.CheckpointCommitted(instance_id, manifest, f"m{manifest.number}.json"))

    def seen(self, instance_id: str) -> None:
        """The agent will have been heard of right before the next look."""
        attempt = self.view.attempts[instance_id]
        far = self.now + timedelta(days=1)
        self.view = self.view.with_attempt(attempt.model_copy(update={"last_seen": far}))

    def wait(self, **by: float) -> JobState:
        """Time goes on, and a poll looks."""
        self.now += timedelta(**by)
        return self.hear(*overdue(self.view, self.now), after=0)

    def order(self, instance_id: str, phase: str = "") -> Order:
        """What the agent is told."""
        told: Directive = directive(self.view, instance_id, phase)
        return told.order

    def settle(self) -> None:
        """The clouds confirm every end that is owed."""
        for effect in owed(self.view):
            assert isinstance(effect, DestroyInstance)
            self.hear(e.MachineGone(effect.instance_id, "User initiated"))
        assert self.view.job.is_settled
        assert owed(self.view) == ()
