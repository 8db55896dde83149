"""The referee: knows what is true on machines and in clouds, and holds every save against it (DESIGN 4)."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from local.market_model import Machine
from local.market_model import MachineState as State
from spotferry.domain.lifecycle import event_name
from spotferry.domain.transitions import TRANSITIONS
from spotferry.domain.view import Decision, View
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job, JobState, TimelineEntry
from tests.simulation.host import done_seconds_in

INVARIANTS = (
    "one final state",
    "listed transitions only",
    "gapless timeline",
    "epochs and checkpoints rise",
    "one machine runs the task",
    "ownership passes rightly",
    "gone machines are gone",
    "old epochs change nothing",
    "intent before the cloud",
    "one machine an attempt",
    "only unwanted machines are ended",
    "no committed work lost",
    "whole checkpoints only",
    "the end is true",
    "no error that nobody knows",
    "repeats send what is owed",
    "every job ends",
    "no machine outlives its job",
    "the ledger is the bill",
)
"""What is checked, by the names of the table."""

_OWNERS_WORDS = {"task_started", "checkpoint_committed", "task_exited", "outputs_committed", "outputs_failed"}
_MOVES = {(state, event_name(event)): targets for (state, event), targets in TRANSITIONS.items()}
_CLOSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold."""

    invariant: str
    words: str
    at: datetime


@dataclass(slots=True)
class JobTruth:
    """What is true of a job: its record as saved last, who runs its task, how much work is committed, how it ended."""

    job: Job
    running: str = ""
    committed_seconds: float = 0.0
    exit_codes: list[int] = field(default_factory=list)
    newest_parts: frozenset[str] = frozenset()
    final_at: datetime | None = None


class Referee:
    """Sees every save, every launch, every start of a task.

    Args:
        clock: the time.
        note: keeps the step list.
    """

    def __init__(self, clock: Callable[[], datetime], note: Callable[[str], None]) -> None:
        self.violations: list[Violation] = []
        self.jobs: dict[str, JobTruth] = {}
        self.attempts: dict[str, Attempt] = {}
        self.machines: Callable[[], list[Machine]] = list
        self.then: Callable[[], None] = lambda: None
        self.read_object: Callable[[str], bytes | None] = lambda _: None
        self._gave_back: set[str] = set()
        self._clock = clock
        self._note = note

    def violated(self, invariant: str, words: str) -> None:
        """Write it down."""
        assert invariant in INVARIANTS, invariant
        self._note(f"VIOLATION of '{invariant}': {words}")
        self.violations.append(Violation(invariant, words, self._clock()))

    def _must(self, holds: object, invariant: str, words: str) -> None:
        if not holds:
            self.violated(invariant, words)

    def created(self, job: Job, entry: TimelineEntry, taken_over: Sequence[Checkpoint]) -> None:
        """A job was written, perhaps with checkpoints of the one that it goes on from."""
        self._must(job.job_id not in self.jobs, "gapless timeline", f"{job.job_id} was created twice")
        self._must(entry.revision == 1, "gapless timeline", f"{job.job_id} begins at {entry.revision}")
        self.jobs[job.job_id] = truth = JobTruth(job)
        if job.parent_job_id:
            truth.exit_codes += self.jobs[job.parent_job_id].exit_codes
        if taken_over:
            truth.newest_parts = frozenset(part.key for part in taken_over[0].manifest.parts)
            works = [done_seconds_in(self.read_object(key)) for key in truth.newest_parts]
            self._must(None not in works, "whole checkpoints only", f"{job.job_id} goes on from what is not there")
            truth.committed_seconds = max((work for work in works if work is not None), default=0.0)

    def saved(self, before: View, decision: Decision) -> None:
        """A decision was written."""
        entry, job = decision.entry, decision.view.job
        assert entry is not None
        truth = self.jobs[job.job_id]
        last, truth.job = truth.job, job
        self._note(
            f"r{entry.revision} {entry.from_state}>{entry.to_state} {entry.event} {entry.instance_id[:6]}"
            f" {entry.message[:90]}"
        )
        self._check_entry(last, job, entry)
        self._check_rises(last, job, entry)
        self._check_speaker(last, entry)
        self._check_owner(last, decision.view)
        self._check_gone(before, decision.view)
        if decision.checkpoint is not None:
            self._check_checkpoint(truth, decision.checkpoint)
        self._check_end(truth, last)
        self.attempts.update({i: a for i, a in decision.view.attempts.items() if before.attempts.get(i) != a})
        self.then()

    def _check_entry(self, last: Job, job: Job, entry: TimelineEntry) -> None:
        follows = entry.revision == job.revision == last.revision + 1
        self._must(follows, "gapless timeline", f"{entry.revision} was saved over {last.revision}")
        pair = (JobState(entry.from_state), entry.event)
        listed = entry.from_state == last.state and job.state in _MOVES.get(pair, ()) and entry.to_state == job.state
        self._must(listed, "listed transitions only", f"{last.state} to {job.state} by {entry.event}")
        still = not last.state.is_final or last.state is job.state
        self._must(still, "one final state", f"{last.state} became {job.state} by {entry.event}")

    def _check_rises(self, last: Job, job: Job, entry: TimelineEntry) -> None:
        raised = int(entry.event == "launch_chosen")
        words = f"epoch {last.epoch} to {job.epoch}, checkpoint {last.checkpoint} to {job.checkpoint} by {entry.event}"
        newer = job.checkpoint - last.checkpoint == int(entry.event == "checkpoint_committed")
        self._must(job.epoch - last.epoch == raised and newer, "epochs and checkpoints rise", words)

    def _check_speaker(self, last: Job, entry: TimelineEntry) -> None:
        if entry.event in _OWNERS_WORDS:
            words = f"{entry.event} of {entry.instance_id[:6]} was heard, but {str(last.owner_id)[:6]} owns the job"
            self._must(entry.instance_id == last.owner_id, "old epochs change nothing", words)

    def _check_owner(self, last: Job, view: View) -> None:
        """Who lost the job gave it back, or has no machine: not by the records, but in truth."""
        lost = last.owner_id
        if lost is None or view.job.owner_id == lost:
            return
        living = [m for m in self.machines_of(lost) if m.state is not State.TERMINATED]
        told = lost in self._gave_back and view.attempts[lost].released_at is not None
        words = f"{lost[:6]} lost the job, and its machine is {[str(m.state) for m in living]}"
        self._must(told or not living, "ownership passes rightly", words)
        running = self.jobs[view.job.job_id].running
        self._must(running != lost, "ownership passes rightly", f"{lost[:6]} lost the job and its task still runs")

    def _check_gone(self, before: View, view: View) -> None:
        """A machine that counts as gone is."""
        for instance_id, attempt in view.attempts.items():
            was = before.attempts.get(instance_id)
            if attempt.is_gone and not (was and was.is_gone):
                living = [str(m.state) for m in self.machines_of(instance_id) if m.state is not State.TERMINATED]
                self._must(not living, "gone machines are gone", f"{instance_id[:6]} counts as gone and is {living}")

    def _check_checkpoint(self, truth: JobTruth, checkpoint: Checkpoint) -> None:
        manifest = checkpoint.manifest
        words = f"checkpoint {checkpoint.number}: "
        told = self.read_object(checkpoint.manifest_key)
        self._must(told is not None, "whole checkpoints only", words + "no manifest")
        done: float | None = None
        for part in manifest.parts:
            body = self.read_object(part.key)
            whole = body is not None and hashlib.sha256(body).hexdigest() == part.sha256
            self._must(whole, "whole checkpoints only", words + f"{part.name} is not there, or another")
            done = done_seconds_in(body)
        truth.newest_parts = frozenset(part.key for part in manifest.parts)
        if done is not None:
            lost = truth.committed_seconds - done
            self._must(lost < _CLOSE_SECONDS, "no committed work lost", words + f"holds {lost:.1f} s less than before")
            truth.committed_seconds = done

    def _check_end(self, truth: JobTruth, last: Job) -> None:
        job = truth.job
        if not job.state.is_final or last.state.is_final:
            return
        truth.final_at = self._clock()
        if job.state is JobState.DONE:
            self._must(0 in truth.exit_codes, "the end is true", "DONE, but no task ended with status 0")
        if job.exit_code is not None:
            words = f"{job.state} with status {job.exit_code}, true are {truth.exit_codes}"
            self._must(job.exit_code in truth.exit_codes, "the end is true", words)
        cancelled = job.state is JobState.CANCELLED
        asked = not cancelled or "cancel" in job.reason or "cancel" in last.reason
        self._must(asked, "the end is true", f"CANCELLED because {job.reason}")

    def task_runs(self, job_id: str, instance_id: str, done_seconds: float, *, again: bool) -> None:
        """The task was started on this machine, for the first time there or again."""
        truth = self.jobs[job_id]
        if again:
            truth.committed_seconds = min(truth.committed_seconds, done_seconds)
        words = f"{instance_id[:6]} started it while {truth.running[:6]} runs it"
        self._must(truth.running in {"", instance_id}, "one machine runs the task", words)
        lost = truth.committed_seconds - done_seconds
        words = f"{instance_id[:6]} starts {lost:.1f} s before what was committed"
        self._must(lost < _CLOSE_SECONDS, "no committed work lost", words)
        self._must(not truth.job.final_checkpoint, "no committed work lost", "the task runs again after its end")
        truth.running = instance_id

    def task_stopped(self, instance_id: str) -> None:
        """No process of the task is left on it."""
        for truth in self.jobs.values():
            if truth.running == instance_id:
                truth.running = ""

    def task_ended(self, job_id: str, instance_id: str, exit_code: int) -> None:
        """The task came to its end there."""
        self._note(f"{instance_id[:6]}: the task ended with {exit_code}")
        self.jobs[job_id].exit_codes.append(exit_code)

    def ends_of(self, job_id: str) -> int:
        """How often the job's task came to an end by itself."""
        return len(self.jobs[job_id].exit_codes)

    def gave_back(self, instance_id: str) -> None:
        """Its agent is about to say that it gives the job back."""
        self._gave_back.add(instance_id)

    def asked_for(self, attempt: Attempt) -> None:
        """A cloud is asked for an attempt's machine."""
        saved = self.attempts.get(attempt.cedana_id)
        fixed = saved is not None and saved.launch == attempt.launch and saved.epoch == attempt.epoch
        self._must(fixed, "intent before the cloud", f"{attempt.cedana_id[:6]} was asked for as it was never saved")

    def sold(self, machine: Machine, *, by_name: bool) -> None:
        """A machine was made."""
        instance_id = machine.request.tags.get("spotferry:instance", "")
        same = [m for m in self.machines_of(instance_id) if not by_name or m.state is not State.TERMINATED]
        self._must(len(same) == 1, "one machine an attempt", f"{instance_id[:6]} has {len(same)} machines")

    def told_to_end(self, machine: Machine) -> None:
        """A cloud is told to end a machine."""
        attempt = self.attempts.get(machine.request.tags.get("spotferry:instance", ""))
        another = attempt is not None and attempt.allocated_id not in {"", machine.allocated_id}
        unwanted = attempt is None or attempt.ending or attempt.is_gone or another
        ours = machine.request.tags.get("spotferry:deployment") == "sim"
        words = f"{machine.allocated_id} of attempt {attempt.cedana_id[:6] if attempt else None} was wanted"
        self._must(unwanted and ours, "only unwanted machines are ended", words)

    def deleted(self, keys: Iterable[str]) -> None:
        """Objects leave the bucket."""
        for job_id, truth in self.jobs.items():
            lost = truth.newest_parts.intersection(keys)
            self._must(not lost, "whole checkpoints only", f"the newest checkpoint of {job_id} loses {sorted(lost)}")

    def machines_of(self, instance_id: str) -> list[Machine]:
        """All machines that were ever made for an attempt."""
        return [m for m in self.machines() if m.request.tags.get("spotferry:instance") == instance_id]


def counts(violations: Mapping[str, int]) -> list[tuple[str, int]]:
    """Every invariant with its violations."""
    return [(name, violations.get(name, 0)) for name in INVARIANTS]
