"""Records for the store's contract: each test has a job, an owner and a cloud of its own, so tables may be shared."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Protocol

import pytest

from spotferry.domain.view import Decision, View
from spotferry.ports.store import BanStore, JobStore, SightingStore
from spotferry.types.instance import Attempt, LaunchRequest
from spotferry.types.job import ArchivePart, Checkpoint, Job, JobState, Manifest, TimelineEntry
from spotferry.types.job_file import Commands, JobFile

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
SHA = "ab" * 32
WRITERS = 8
_numbers = itertools.count(1)


class Store(JobStore, BanStore, SightingStore, Protocol):
    """Job store, ban store and the reaper's notes in one, as the adapters are."""


@dataclass(frozen=True, slots=True)
class World:
    """Names that only one test uses."""

    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def job_id(self) -> str:
        """The test's job."""
        return f"j-{self.number}"

    @property
    def owner(self) -> str:
        """Who submitted it."""
        return f"owner-{self.number}"

    @property
    def provider(self) -> str:
        """The cloud that its machines are of."""
        return f"cloud{self.number}"

    def job(self, **changes: object) -> Job:
        """A new job."""
        fields: dict[str, object] = {
            "job_id": self.job_id,
            "owner": self.owner,
            "revision": 1,
            "created_at": NOW,
            "spec": JobFile(task=Commands(run=("make",))),
        }
        return Job.model_validate(fields | changes)

    def attempt(self, epoch: int = 1, **changes: object) -> Attempt:
        """A new attempt of the job, without the agent's marks."""
        fields: dict[str, object] = {
            "cedana_id": f"i-{self.number}-{epoch}",
            "job_id": self.job_id,
            "epoch": epoch,
            "provider": self.provider,
            "region": "us-east-1",
            "instance_type": "m5.large",
            "price": Decimal("0.0350"),
            "requested_at": NOW,
        }
        return Attempt.model_validate(fields | changes)

    def checkpoint(self, number: int = 1) -> Checkpoint:
        """A committed checkpoint of the job."""
        part = ArchivePart(name="workdir.tar.gz", key=f"c/{number}", size_bytes=10, sha256=SHA)
        manifest = Manifest(
            kind="checkpoint",
            job_id=self.job_id,
            number=number,
            epoch=1,
            created_at=NOW,
            parts=(part,),
            engine="workdir",
        )
        return Checkpoint(
            job_id=self.job_id,
            number=number,
            manifest_key=f"m/{number}",
            manifest=manifest,
            instance_id="i",
            committed_at=NOW,
        )


def entry_of(job: Job, message: str = "") -> TimelineEntry:
    """The entry of the change that led to this job."""
    return TimelineEntry(
        job_id=job.job_id,
        revision=job.revision,
        at=NOW,
        event="Changed",
        from_state="",
        to_state=job.state,
        message=message,
    )


def create(store: Store, job: Job) -> View:
    """The job, stored, as loaded."""
    store.create_job(job, entry_of(job, "accepted"))
    return store.load(job.job_id)


def decision(
    before: View, *attempts: Attempt, checkpoint: Checkpoint | None = None, message: str = "", **changes: object
) -> Decision:
    """A decision that changes these attempts and fields of the job, and raises its revision."""
    after = before.with_job(revision=before.job.revision + 1, **changes)
    for attempt in attempts:
        after = after.with_attempt(attempt)
    return Decision(after, entry=entry_of(after.job, message), checkpoint=checkpoint)


def change(store: Store, before: View, *attempts: Attempt, **changes: object) -> View:
    """The view after a saved change, as loaded."""
    store.save(before, decision(before, *attempts, **changes))  # type: ignore[arg-type]  # fields of the job by name
    return store.load(before.job.job_id)


def with_attempts(store: Store, world: World, *attempts: Attempt, **changes: object) -> View:
    """A stored job that runs on these attempts."""
    job = world.job()
    for attempt in attempts:
        job = job.append_instance(attempt.cedana_id)
    ids = tuple(a.cedana_id for a in attempts)
    return change(
        store, create(store, job), *attempts, state=JobState.PROVISIONING, open_attempts=ids, owner_id=ids[0], **changes
    )


def gone(attempt: Attempt) -> Attempt:
    """The attempt after its machine's end."""
    return attempt.model_copy(update={"gone_at": NOW + timedelta(hours=1), "state": "terminated"})


def a_launch() -> LaunchRequest:
    """A launch request with everything in it."""
    return LaunchRequest(
        image_id="ami-1",
        disk_gb=30,
        network={"subnet": "subnet-1"},
        tags={"Name": "Zürich ✓"},
        agent_sha256=SHA,
        broker_url="https://broker",
        max_price_usd_hour=Decimal("0.123456789"),
    )


def ids_of(jobs: Sequence[Job]) -> list[str]:
    """The jobs' ids, in order."""
    return [job.job_id for job in jobs]


def only_attempt(view: View) -> Attempt:
    """The one attempt of the view."""
    return next(iter(view.attempts.values()))


class Contract:
    """What the parts of the contract share; a subclass's module has the fixture `store`."""

    @pytest.fixture
    def world(self) -> World:
        """Names that only this test uses."""
        return World()
