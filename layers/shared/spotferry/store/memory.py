"""The store in memory: the twin of `dynamo` under the same contract, with levers for tests and simulations."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from types import MappingProxyType

from spotferry.domain.view import Decision, Policy, View
from spotferry.ports.store import Page
from spotferry.store.changes import AGENT_MARKS, Changes, changes_of, without_agent_marks
from spotferry.store.cursors import Position, check_limit, read_cursor, write_cursor
from spotferry.store.keys import MARKETS, allocated_key, check_market, market_key, sortable
from spotferry.store.memory_sightings import MemorySightings
from spotferry.types.errors import Conflict, NotFound
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job, TimelineEntry
from spotferry.types.words import cut


@dataclass(slots=True)
class _Tables:
    jobs: dict[str, Job] = field(default_factory=dict)
    created: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    allocated: dict[str, str] = field(default_factory=dict)
    timeline: dict[str, dict[int, TimelineEntry]] = field(default_factory=lambda: defaultdict(dict))
    checkpoints: dict[str, dict[int, Checkpoint]] = field(default_factory=lambda: defaultdict(dict))
    watched: dict[str, datetime] = field(default_factory=dict)
    bans: dict[str, dict[str, tuple[datetime, str]]] = field(default_factory=lambda: defaultdict(dict))


@dataclass(slots=True)
class _Fault:
    error: Exception
    times: int
    after_write: bool


class _MemoryLevers(MemorySightings):
    """What a test may do to the store."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._tables = _Tables()
        self._frozen: _Tables | None = None
        self._faults: list[_Fault] = []

    @property
    def _index(self) -> _Tables:
        return self._frozen or self._tables

    def freeze_indexes(self) -> None:
        """From now on every read by index answers as of now."""
        with self._lock:
            live = self._tables
            self._frozen = replace(live, jobs=dict(live.jobs), created=dict(live.created), attempts=dict(live.attempts))

    def thaw_indexes(self) -> None:
        """Reads by index are up to date again."""
        with self._lock:
            self._frozen = None

    def conflict_saves(self, times: int = 1) -> None:
        """The next saves find that somebody saved first; nothing of them is written."""
        self.fail_saves(Conflict("made to conflict"), times)

    def fail_saves(self, error: Exception, times: int = 1, *, after_write: bool = False) -> None:
        """The next saves raise this error, before anything is written, or after all is (the answer was lost)."""
        with self._lock:
            self._faults.append(_Fault(error, times, after_write))

    def _fail(self, *, after_write: bool) -> None:
        fault = next((f for f in self._faults if f.times > 0), None)
        if fault is not None and fault.after_write == after_write:
            fault.times -= 1
            raise fault.error


class _MemoryJobs(_MemoryLevers):
    def __init__(self, policy: Policy | None = None) -> None:
        super().__init__()
        self._policy = policy or Policy()

    def create_job(self, job: Job, entry: TimelineEntry, checkpoints: Sequence[Checkpoint] = ()) -> None:
        """Write a new job, the first entry of its timeline and the checkpoints it begins with."""
        assert job.job_id == entry.job_id, "the first entry is about the new job"
        assert job.revision == entry.revision, "the first entry has the new job's revision"
        with self._lock:
            if job.job_id in self._tables.jobs:
                raise Conflict(f"there is a job {job.job_id} already")
            self._tables.jobs[job.job_id] = job
            self._tables.created[job.job_id] = sortable(job.created_at or entry.at)
            self._tables.timeline[job.job_id][entry.revision] = entry
            self._tables.checkpoints[job.job_id].update({point.number: point for point in checkpoints})

    def get_job(self, job_id: str) -> Job:
        """The job."""
        with self._lock:
            if job_id not in self._tables.jobs:
                raise NotFound(f"there is no job {cut(job_id)}")
            return self._tables.jobs[job_id]

    def load(self, job_id: str, instance_id: str | None = None) -> View:
        """The job, its open attempts, and the one asked for."""
        with self._lock:
            job = self.get_job(job_id)
            wanted = [*job.open_attempts, *([instance_id] if instance_id is not None else [])]
            found = {i: self._tables.attempts[i] for i in wanted if i in self._tables.attempts}
        if instance_id is not None and (instance_id not in found or found[instance_id].job_id != job_id):
            raise NotFound(f"job {job_id} has no instance {cut(instance_id)}")
        return View(job, MappingProxyType(found), self._policy)

    def save(self, before: View, decision: Decision) -> None:
        """Write what the decision changed, if nobody saved first."""
        changes = changes_of(before, decision)
        if changes is None:
            return
        with self._lock:
            self._register([*changes.created, *changes.updated])
            self._fail(after_write=False)
            self._check(changes)
            self._write(changes)
            self._fail(after_write=True)

    def _check(self, changes: Changes) -> None:
        tables, job_id = self._tables, changes.job.job_id
        stored = tables.jobs.get(job_id)
        checkpoint = changes.checkpoint
        if (
            stored is None
            or stored.revision != changes.revision
            or changes.entry.revision in tables.timeline[job_id]
            or any(a.cedana_id in tables.attempts for a in changes.created)
            or any(a.cedana_id not in tables.attempts for a in changes.updated)
            or (checkpoint is not None and checkpoint.number in tables.checkpoints[job_id])
        ):
            raise Conflict(f"job {job_id} is no longer at revision {changes.revision}")

    def _write(self, changes: Changes) -> None:
        tables, job_id = self._tables, changes.job.job_id
        tables.jobs[job_id] = changes.job
        tables.timeline[job_id][changes.entry.revision] = changes.entry
        for attempt in changes.created:
            tables.attempts[attempt.cedana_id] = without_agent_marks(attempt)
        for attempt in changes.updated:
            stored = tables.attempts[attempt.cedana_id]
            marks = {name: getattr(stored, name) for name in AGENT_MARKS}
            tables.attempts[attempt.cedana_id] = attempt.model_copy(update=marks)
        for attempt in changes.allocated:
            tables.allocated[allocated_key(attempt.provider, attempt.region, attempt.allocated_id)] = attempt.cedana_id
        if changes.checkpoint is not None:
            tables.checkpoints[job_id][changes.checkpoint.number] = changes.checkpoint

    def list_jobs(self, owner: str, limit: int, cursor: str | None = None) -> Page:
        """The owner's jobs, newest first."""
        check_limit(limit)
        after = read_cursor(owner, cursor) if cursor is not None else None
        with self._lock:
            index = self._index
            keys = sorted(
                ((index.created[i], i) for i, j in index.jobs.items() if j.owner == owner != ""), reverse=True
            )
            if after is not None:
                keys = [key for key in keys if key < (after.created_at, after.job_id)]
            jobs = [index.jobs[job_id] for _, job_id in keys[:limit]]
        more = len(keys) > limit
        return Page(jobs, write_cursor(Position(owner, *keys[limit - 1])) if more else None)

    def unsettled_jobs(self) -> Iterator[str]:
        """Ids of the jobs that are not settled."""
        with self._lock:
            ids = [i for i, job in self._index.jobs.items() if not job.is_settled]
        yield from ids

    def watch_job(self, job_id: str, until: datetime) -> None:
        """Somebody follows the job's log until then."""
        with self._lock:
            if job_id in self._tables.jobs:
                self._tables.watched[job_id] = max(until, self._tables.watched.get(job_id, until))

    def watched_until(self, job_id: str) -> datetime | None:
        """Until when somebody follows the job's log."""
        with self._lock:
            return self._tables.watched.get(job_id)

    def timeline(self, job_id: str) -> Sequence[TimelineEntry]:
        """The job's history, oldest first."""
        with self._lock:
            return [entry for _, entry in sorted(self._tables.timeline.get(job_id, {}).items())]

    def checkpoints(self, job_id: str) -> Sequence[Checkpoint]:
        """The job's checkpoints, newest first."""
        with self._lock:
            return [c for _, c in sorted(self._tables.checkpoints.get(job_id, {}).items(), reverse=True)]

    def get_checkpoint(self, job_id: str, number: int) -> Checkpoint:
        """One checkpoint."""
        with self._lock:
            found = self._tables.checkpoints.get(job_id, {}).get(number)
        if found is None:
            raise NotFound(f"job {job_id} has no checkpoint {number}")
        return found

    def note_pruned(self, job_id: str, number: int, at: datetime) -> None:
        """Note that a checkpoint's objects are gone."""
        with self._lock:
            known = self._tables.checkpoints.get(job_id, {})
            if number in known and known[number].pruned_at is None:
                known[number] = known[number].model_copy(update={"pruned_at": at})


class _MemoryAttempts(_MemoryJobs):
    def get_attempt(self, instance_id: str) -> Attempt:
        """The attempt."""
        with self._lock:
            if instance_id not in self._tables.attempts:
                raise NotFound(f"there is no instance {cut(instance_id)}")
            return self._tables.attempts[instance_id]

    def find_attempt(self, provider: str, region: str, allocated_id: str) -> Attempt | None:
        """The attempt whose machine has this id of the cloud's."""
        with self._lock:
            instance_id = self._tables.allocated.get(allocated_key(provider, region, allocated_id))
            return self._tables.attempts[instance_id] if instance_id is not None else None

    def attempts_of(self, job_id: str) -> Sequence[Attempt]:
        """All attempts of the job, oldest first."""
        with self._lock:
            ids = [reference.instance_id for reference in self.get_job(job_id).get_instance_ids()]
            return [self._tables.attempts[i] for i in ids if i in self._tables.attempts]

    def living_attempts(self) -> Iterator[str]:
        """Ids of the attempts whose machine is not known to be gone."""
        with self._lock:
            ids = [i for i, attempt in self._index.attempts.items() if not attempt.is_gone]
        yield from ids

    def bind_agent(self, instance_id: str, key_sha256: str) -> bool:
        """Bind the digest of the agent's key if none is bound."""
        with self._lock:
            attempt = self._tables.attempts.get(instance_id)
            if attempt is None:
                return False
            if not attempt.agent_key_sha256:
                self._tables.attempts[instance_id] = attempt.model_copy(update={"agent_key_sha256": key_sha256})
            return self._tables.attempts[instance_id].agent_key_sha256 == key_sha256

    def touch_attempt(self, instance_id: str, seen: datetime) -> None:
        """Note the agent's last word and count it."""
        with self._lock:
            attempt = self._tables.attempts.get(instance_id)
            if attempt is not None:
                marks = {"last_seen": max(seen, attempt.last_seen or seen), "heartbeats": attempt.heartbeats + 1}
                self._tables.attempts[instance_id] = attempt.model_copy(update=marks)


class MemoryStore(_MemoryAttempts):
    """Job store, ban store and the reaper's notes in one; safe to share between threads.

    Levers: `freeze_indexes`, `thaw_indexes`, `conflict_saves`, `fail_saves`.

    Args:
        policy: what the views it loads carry; the defaults when left out.
    """

    def ban(self, provider: str, market: str, pool: str, until: datetime, reason: str) -> None:
        """Set a pool aside until then; the reason is for people who look at the table."""
        check_market(market)
        with self._lock:
            pools = self._tables.bans[market_key(provider, market)]
            pools[pool] = max((until, reason), pools.get(pool, (until, reason)), key=lambda ban: ban[0])

    def bans(self, providers: Sequence[str], now: datetime) -> Mapping[tuple[str, str], Sequence[str]]:
        """The patterns in force by (provider, market)."""
        return {key: list(reasons) for key, reasons in self.ban_reasons(providers, now).items()}

    def ban_reasons(self, providers: Sequence[str], now: datetime) -> Mapping[tuple[str, str], Mapping[str, str]]:
        """The same, each with its reason."""
        in_force: dict[tuple[str, str], Mapping[str, str]] = {}
        with self._lock:
            for provider, market in product(providers, MARKETS):
                pools = self._tables.bans.get(market_key(provider, market), {})
                reasons = {pool: reason for pool, (until, reason) in sorted(pools.items()) if until > now}
                if reasons:
                    in_force[provider, market] = reasons
        return in_force
