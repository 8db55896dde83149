"""What people see of jobs and machines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from spotferry.domain.costs import attempt_cost, job_cost
from spotferry.ports.cloud import Clock
from spotferry.ports.store import JobStore
from spotferry.types.base import Json
from spotferry.types.errors import NotFound
from spotferry.types.instance import Attempt
from spotferry.types.job import Job
from spotferry.types.words import cut


@dataclass(frozen=True, slots=True)
class ReadJobs:
    """Reads jobs and machines as the API shows them; money and times as JSON has them."""

    store: JobStore
    clock: Clock

    def list(self, owner: str, limit: int, cursor: str | None) -> Json:
        """One page of the owner's jobs, newest first, without their machines."""
        page = self.store.list_jobs(owner, limit, cursor)
        return {"jobs": [_brief(job) for job in page.jobs], "cursor": page.cursor}

    def show(self, job_id: str) -> Json:
        """One job with all its attempts and what they cost.

        Raises:
            NotFound: there is no such job.
        """
        return self.full(self.store.get_job(job_id))

    def full(self, job: Job) -> Json:
        """A job that is at hand, with all its attempts and what they cost."""
        now = self.clock()
        attempts = self.store.attempts_of(job.job_id) if job.epoch else ()
        cost = job_cost(attempts, now)
        current = next((a for a in attempts if a.cedana_id == job.owner_id and not a.is_gone), None)
        return {
            **_brief(job),
            "job_file": job.spec.model_dump(mode="json", exclude_defaults=True),
            "machine": instance_json(current, now) if current else None,
            "instances": [instance_json(attempt, now) for attempt in attempts],
            "cost_usd": float(round(cost.usd, 6)),
            "on_demand_cost_usd": float(round(cost.on_demand_usd, 6)),
        }

    def part(self, job_id: str, name: str) -> Json:
        """One part of what is known of a job: "timeline", "instances" or "checkpoints".

        Raises:
            NotFound: there is no such job, or no such part.
        """
        match name:
            case "timeline":
                return self.timeline(job_id)
            case "instances":
                return self.instances_of(job_id)
            case "checkpoints":
                return self.checkpoints(job_id)
        raise NotFound(f"a job has no {cut(name)}")

    def timeline(self, job_id: str) -> Json:
        """A job's history, oldest first.

        Raises:
            NotFound: there is no such job.
        """
        self.store.get_job(job_id)
        return {"entries": [entry.model_dump(mode="json", exclude={"job_id"}) for entry in self.store.timeline(job_id)]}

    def instances_of(self, job_id: str) -> Json:
        """All attempts of one job.

        Raises:
            NotFound: there is no such job.
        """
        self.store.get_job(job_id)
        return _instances(self.store.attempts_of(job_id), self.clock())

    def living_instances(self) -> Json:
        """All machines that are not known to be gone, of all jobs."""
        attempts = [self.store.get_attempt(instance_id) for instance_id in self.store.living_attempts()]
        return _instances([a for a in attempts if not a.is_gone], self.clock())

    def instance(self, attempt: Attempt) -> Json:
        """One machine that is at hand."""
        return {"instance": instance_json(attempt, self.clock())}

    def checkpoints(self, job_id: str) -> Json:
        """A job's checkpoints, newest first.

        Raises:
            NotFound: there is no such job.
        """
        self.store.get_job(job_id)
        return {
            "checkpoints": [
                {
                    "number": checkpoint.number,
                    "epoch": checkpoint.manifest.epoch,
                    "engine": checkpoint.manifest.engine,
                    "reason": checkpoint.manifest.reason,
                    "asked_for": checkpoint.asked_for,
                    "committed_at": _time(checkpoint.committed_at),
                    "size_bytes": sum(part.size_bytes for part in checkpoint.manifest.parts),
                    "why": checkpoint.manifest.why,
                    "seconds": checkpoint.manifest.seconds,
                    "paused_seconds": checkpoint.manifest.paused_seconds,
                    "made_by": checkpoint.manifest.job_id,
                    "pruned_at": _time(checkpoint.pruned_at),
                    "manifest_key": checkpoint.manifest_key,
                }
                for checkpoint in self.store.checkpoints(job_id)
            ]
        }


_TIMES = ("requested_at", "launched_at", "gone_at", "billed_until", "last_seen")


def instance_json(attempt: Attempt, now: datetime) -> Json:
    """One attempt's machine as people see it."""
    cost = attempt_cost(attempt, now)
    return {
        "instance_id": attempt.cedana_id,
        "job_id": attempt.job_id,
        "epoch": attempt.epoch,
        "provider": attempt.provider,
        "region": attempt.region,
        "zone": attempt.availability_zone,
        "instance_type": attempt.instance_type,
        "market": attempt.market,
        "price_usd_hour": float(attempt.price),
        "disk_gb": attempt.disk_gb,
        "disk_usd_hour": float(attempt.disk_usd_hour),
        "on_demand_usd_hour": None if attempt.on_demand_usd_hour is None else float(attempt.on_demand_usd_hour),
        "allocated_id": attempt.allocated_id,
        "ip_address": attempt.ip_address,
        "phase": attempt.phase.value,
        "state": attempt.state,
        "seconds": float(round(cost.seconds, 3)),
        "cost_usd": float(round(cost.usd, 6)),
        "waived_usd": float(round(cost.waived_usd, 6)),
        **{name: _time(getattr(attempt, name)) for name in _TIMES},
        "ended_by": attempt.ended_by,
        "taken_back": attempt.taken_back,
        "end_reason": attempt.end_reason,
        "facts": dict(attempt.facts),
        "plan": attempt.plan,
    }


def _instances(attempts: Iterable[Attempt] | Sequence[Attempt], now: datetime) -> Json:
    return {"instances": [instance_json(attempt, now) for attempt in attempts]}


def _brief(job: Job) -> Json:
    return {
        "job_id": job.job_id,
        "name": job.spec.name,
        "project": job.spec.project,
        "labels": dict(job.spec.labels),
        "owner": job.owner,
        "state": job.state.value,
        "reason": job.reason,
        "settled": job.is_settled,
        "created_at": _time(job.created_at),
        "updated_at": _time(job.updated_at),
        "deadline": _time(job.deadline),
        "next_try_at": _time(job.next_try_at),
        "exit_code": job.exit_code,
        "interruptions": job.interruptions,
        "checkpoint": job.checkpoint,
        "attempts": job.epoch,
        "parent_job_id": job.parent_job_id,
        "restored_from": job.restored_from or None,
        "checkpoint_wanted": job.checkpoint_wanted if job.wants_checkpoint else None,
        "restarts": job.restarts,
        "started_at": _time(job.started_at),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat().replace("+00:00", "Z")
