"""The broker's word to an agent: what to do, how often to call, how long it may go on alone."""

from dataclasses import dataclass
from datetime import timedelta

from spotferry.domain.checkpoints import interval
from spotferry.domain.lifecycle import Order, directive, wants_attention
from spotferry.domain.pace import Pace
from spotferry.domain.view import View
from spotferry.ports.cloud import Clock, ObjectStore
from spotferry.ports.store import JobStore
from spotferry.types.base import Json
from spotferry.types.job import Checkpoint

OFFERED = 3
"""Checkpoints that a restore may fall back through."""

PROTOCOL = 1


@dataclass(frozen=True, slots=True)
class SayWord:
    """Makes the word of a view."""

    store: JobStore
    objects: ObjectStore
    pace: Pace
    clock: Clock

    def __call__(self, view: View, instance_id: str, agent_phase: str = "", log_offset: int | None = None) -> Json:
        """The word for one attempt.

        Args:
            view: the job with the attempt.
            instance_id: the attempt.
            agent_phase: what the agent says it is doing.
            log_offset: how far the broker has its log, if the call brought some.

        Raises:
            StaleAttempt: the attempt no longer takes part.
        """
        told = directive(view, instance_id, agent_phase)
        order: Json = {"kind": told.order.value, "reason": told.reason}
        if told.pause_seconds:
            order["pause_seconds"] = told.pause_seconds
        word: Json = {
            "protocol": PROTOCOL,
            "directive": order,
            "heartbeat_seconds": self._pause(view, instance_id).total_seconds(),
            "lease_seconds": self.pace.lease.total_seconds(),
            "checkpoint_seconds": self._interval_seconds(view, instance_id),
            "log_offset": log_offset,
        }
        if told.order is Order.GO:
            order |= self.start(view)
        return word

    def start(self, view: View) -> Json:
        """How the task is to start: mode, checkpoints with their addresses, and the exit status if it is over.

        The agent finds out what of them its machine can restore.
        """
        job = view.job
        known = [c for c in self.store.checkpoints(job.job_id) if c.pruned_at is None] if job.checkpoint else []
        mode = "finalize" if job.exit_code is not None else "restore" if known else "fresh"
        offered = [self._checkpoint(c) for c in known[:OFFERED]]
        return {"mode": mode, "checkpoints": offered, "exit_code": job.exit_code}

    def _interval_seconds(self, view: View, instance_id: str) -> float | None:
        between = interval(view.job, view.attempts[instance_id], self.clock())
        return between.total_seconds() if between else None

    def _checkpoint(self, checkpoint: Checkpoint) -> Json:
        manifest = checkpoint.manifest
        parts = [
            {
                "name": part.name,
                "url": self.objects.url_to_get(part.key, self.pace.address_expiry),
                "size_bytes": part.size_bytes,
                "sha256": part.sha256,
            }
            for part in manifest.parts
        ]
        return {
            "number": checkpoint.number,
            "engine": manifest.engine,
            "machine": dict(manifest.machine),
            "parts": parts,
        }

    def _pause(self, view: View, instance_id: str) -> timedelta:
        """Between two heartbeats; three fit into a lease, so that one that is lost does not end the machine."""
        most = self.pace.lease / 3
        if wants_attention(view, instance_id):
            return min(self.pace.attention, most)
        watched = self.store.watched_until(view.job.job_id)
        return min(self.pace.attention if watched and watched > self.clock() else self.pace.quiet, most)
