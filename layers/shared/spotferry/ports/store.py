"""Where jobs and machines are kept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from spotferry.domain.view import Decision, View
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job, TimelineEntry


@dataclass(frozen=True, slots=True)
class Page:
    """One page of jobs, newest first; `cursor` is None on the last."""

    jobs: Sequence[Job]
    cursor: str | None = None


class JobStore(Protocol):
    """Jobs, their attempts, their timeline, their checkpoints. Reads are strongly consistent unless said otherwise."""

    def create_job(self, job: Job, entry: TimelineEntry, checkpoints: Sequence[Checkpoint] = ()) -> None:
        """Write a new job, the first entry of its timeline and the checkpoints it begins with in one transaction.

        Raises:
            Conflict: a job of this id exists.
        """
        ...

    def get_job(self, job_id: str) -> Job:
        """The job.

        Raises:
            NotFound: there is none of this id.
        """
        ...

    def load(self, job_id: str, instance_id: str | None = None) -> View:
        """The job, all its open attempts, and the attempt asked for even if it is closed; the policy is the store's
        own.

        Raises:
            NotFound: no such job, or no such attempt of this job.
        """
        ...

    def save(self, before: View, decision: Decision) -> None:
        """Write what the decision changed, in one transaction, if the job's revision is still the one of `before`.

        Job, changed and new attempts, timeline entry (key: the new revision) and checkpoint record go together or not
        at
        all. An attempt that got its allocated_id is from then on found by `find_attempt`. `last_seen`,
        `heartbeats` and `agent_key_sha256` are never overwritten by a save. A decision without an entry writes nothing.

        Raises:
            Conflict: somebody saved first; nothing was written.
        """
        ...

    def list_jobs(self, owner: str, limit: int, cursor: str | None = None) -> Page:
        """The owner's jobs, newest first, by index (a job made this very second may be missing).

        Raises:
            InvalidInput: the cursor is not one of ours.
        """
        ...

    def unsettled_jobs(self) -> Iterator[str]:
        """Ids of all jobs that are not settled, by index: possibly stale, so load before deciding."""
        ...

    def get_attempt(self, instance_id: str) -> Attempt:
        """The attempt.

        Raises:
            NotFound: there is none of this id.
        """
        ...

    def find_attempt(self, provider: str, region: str, allocated_id: str) -> Attempt | None:
        """The attempt whose machine has this id of the cloud's; None when no answer with it was saved."""
        ...

    def attempts_of(self, job_id: str) -> Sequence[Attempt]:
        """All attempts of the job, oldest first: ids by the job's own list, read consistently."""
        ...

    def living_attempts(self) -> Iterator[str]:
        """Ids of the attempts whose machine is not known to be gone, of all jobs, by index: possibly stale."""
        ...

    def bind_agent(self, instance_id: str, key_sha256: str) -> bool:
        """Bind the digest of the agent's key to the attempt if none is bound; whether this digest is the one bound
        now.
        """
        ...

    def touch_attempt(self, instance_id: str, seen: datetime) -> None:
        """Note the agent's last word and count it as a heartbeat; a plain update that never conflicts with a save."""
        ...

    def watch_job(self, job_id: str, until: datetime) -> None:
        """Somebody follows the job's log until then; a plain update that never conflicts with a save."""
        ...

    def watched_until(self, job_id: str) -> datetime | None:
        """Until when somebody follows the job's log; None when nobody did."""
        ...

    def timeline(self, job_id: str) -> Sequence[TimelineEntry]:
        """The job's history, oldest first."""
        ...

    def checkpoints(self, job_id: str) -> Sequence[Checkpoint]:
        """The job's committed checkpoints, newest first."""
        ...

    def get_checkpoint(self, job_id: str, number: int) -> Checkpoint:
        """One checkpoint.

        Raises:
            NotFound: there is none of this number.
        """
        ...

    def note_pruned(self, job_id: str, number: int, at: datetime) -> None:
        """Note that a checkpoint's objects are gone; a plain update that never conflicts with a save. The first time
        stands, and a checkpoint that is not there is left so.
        """
        ...


class BanStore(Protocol):
    """Pools that are left alone for a while, for all jobs."""

    def ban(self, provider: str, market: str, pool: str, until: datetime, reason: str) -> None:
        """Set a pool aside until then; a later end than the one that is stored wins.

        `pool` is a pattern over `Candidate.pool` ("region/zone/type"): "*" stands for any part, a part may end in ".*"
        for a family ("us-east-1/*/m5.*").
        """
        ...

    def bans(self, providers: Sequence[str], now: datetime) -> Mapping[tuple[str, str], Sequence[str]]:
        """The patterns in force by (provider, market); what has expired is left out, whether or not it is still
        stored.
        """
        ...

    def ban_reasons(self, providers: Sequence[str], now: datetime) -> Mapping[tuple[str, str], Mapping[str, str]]:
        """Why each pattern in force is, by (provider, market): for the words of a plan that had to pass some over."""
        ...


class SightingStore(Protocol):
    """What the reaper remembers from poll to poll: machines that were seen, and that nobody owns."""

    def used_regions(self) -> Sequence[tuple[str, str]]:
        """Every (provider, region) that a launch was ever saved for, in order; from before the save on, for ever."""
        ...

    def sightings(self, provider: str, region: str, now: datetime) -> Mapping[str, datetime]:
        """When each machine of the region, by the cloud's id, was first seen without an owner; those that have expired
        are left out, whether or not they are still stored.
        """
        ...

    def note_sighting(
        self, provider: str, region: str, allocated_id: str, seen: datetime, until: datetime, reason: str
    ) -> None:
        """Note a first sighting, which counts until then; one that is in force stays as it is.

        The reason is for people who look at the table.
        """
        ...
