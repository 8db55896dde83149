"""A launch whose answer is not known is settled: the machine is found, or asked for again."""

from dataclasses import dataclass
from datetime import datetime

from spotferry.domain import view as effects
from spotferry.domain.asking import NextStep, next_step
from spotferry.domain.view import View
from spotferry.ports.cloud import Clouds
from spotferry.types.errors import NotFound, NotYet, ProviderError
from spotferry.types.instance import Attempt
from spotferry.usecases.launch import AskCloud, gone_unseen, would_be_visible


@dataclass(frozen=True, slots=True)
class CheckLaunch:
    """Finds the machine of an attempt by what it carries, or repeats the request that was saved.

    Of a launch that was only accepted so far it asks how it ended.
    """

    ask: AskCloud
    clouds: Clouds

    def __call__(self, job_id: str, instance_id: str) -> None:
        """Settle one attempt; nothing to do when it is settled, given up or gone.

        A machine whose agent has reported was made, so it is only looked for: where a machine goes by its name, to ask
        again once it has ended would make another.
        """
        change = self.ask.change
        try:
            view = change.store.load(job_id, instance_id)
        except NotFound:
            return
        attempt = view.attempts[instance_id]
        match next_step(attempt, change.clock()):
            case NextStep.SETTLE:
                self._settle(job_id, attempt)
            case NextStep.FIND:
                self._find(view, attempt)

    def _find(self, view: View, attempt: Attempt) -> None:
        try:
            machine = self.clouds.provider(attempt.provider).find_instance(attempt)
        except ProviderError:
            return  # the look-up proves nothing; the next poll asks again
        if machine is not None:
            self.ask.record(attempt.job_id, attempt, machine)
        else:
            self._not_shown(view, attempt)

    def _not_shown(self, view: View, attempt: Attempt) -> None:
        now = self.ask.change.clock()
        if attempt.arrived_at is None:
            self.ask.again(attempt.job_id, attempt)
        elif would_be_visible(view, attempt, now) and _is_silent(view, attempt, now):
            self.ask.change(attempt.job_id, gone_unseen(attempt), attempt.cedana_id)

    def _settle(self, job_id: str, attempt: Attempt) -> None:
        try:
            self.ask.settle(job_id, attempt)
        except NotYet:
            # It ends when the agent says hello, or when the patience with its boot does.
            again = effects.CheckLaunch(job_id, attempt.cedana_id, attempt.asked_again_at)
            self.ask.change.queue.send([again], self.ask.change.clock())
        except ProviderError:
            return  # the poll asks again


def _is_silent(view: View, attempt: Attempt, now: datetime) -> bool:
    """Its agent has said nothing for as long as a machine may be hidden."""
    return attempt.seen_since() + view.policy.visibility <= now
