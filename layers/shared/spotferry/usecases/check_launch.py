"""A launch whose answer is not known is settled: the machine is found, or asked for again."""

from dataclasses import dataclass
from datetime import datetime

from spotferry.domain import events as e
from spotferry.domain.view import View
from spotferry.ports.cloud import Clouds
from spotferry.types.errors import NotFound, ProviderError
from spotferry.types.instance import Attempt
from spotferry.usecases.launch import AskCloud, would_be_visible


@dataclass(frozen=True, slots=True)
class CheckLaunch:
    """Finds the machine of an attempt by what it carries, or repeats the request that was saved."""

    ask: AskCloud
    clouds: Clouds

    def __call__(self, job_id: str, instance_id: str) -> None:
        """Settle one attempt; nothing to do when it is settled, given up or gone.

        A machine whose agent has reported was made, so it is only looked for: where a machine goes by its name, to ask
        again once it has ended would make another.
        """
        store = self.ask.change.store
        try:
            view = store.load(job_id, instance_id)
        except NotFound:
            return
        attempt = view.attempts[instance_id]
        if attempt.allocated_id or attempt.is_gone or attempt.ending:
            return
        try:
            machine = self.clouds.provider(attempt.provider).find_instance(attempt)
        except ProviderError:
            return  # the look-up proves nothing; the next poll asks again
        if machine is not None:
            self.ask.record(job_id, attempt, machine)
        elif attempt.arrived_at is None:
            self.ask(job_id, attempt)
        elif would_be_visible(view, attempt, now := self.ask.clock()) and _is_silent(view, attempt, now):
            gone = e.MachineGone(instance_id, "the machine that its agent reported from is gone")
            self.ask.change(job_id, gone, instance_id)


def _is_silent(view: View, attempt: Attempt, now: datetime) -> bool:
    """Its agent has said nothing for as long as a machine may be hidden."""
    return attempt.seen_since() + view.policy.visibility <= now
