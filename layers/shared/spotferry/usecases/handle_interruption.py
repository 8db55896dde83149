"""A cloud says something about a machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spotferry.domain import events as e
from spotferry.domain.interruption import Meaning, meaning
from spotferry.types.errors import NotFound
from spotferry.types.events import Notice, NoticeKind
from spotferry.types.instance import Attempt
from spotferry.usecases.ending import ask_end
from spotferry.usecases.launch import AskCloud

ParseNotice = Callable[[Mapping[str, object]], Sequence[Notice] | None]
"""The notices in an event of a cloud's; None when no cloud knows its kind."""


class Heard(StrEnum):
    """What became of a notice."""

    ACTED = "acted"
    NOTHING_TO_DO = "nothing_to_do"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HandleInterruption:
    """Finds the attempt that a notice is about, and tells its job."""

    ask: AskCloud
    parse: ParseNotice

    def __call__(self, envelope: Mapping[str, object]) -> list[Heard]:
        """Handle all notices of one event, as a cloud sent it; twice, late or out of order ends the same.

        Returns:
            What became of each notice; UNKNOWN is worth one more try after UNKNOWN_PAUSE, then the machine is foreign.

        Raises:
            InvalidInput: a known kind of event that is not what it should be.
        """
        return [self.hear(notice) for notice in self.parse(envelope) or ()]

    def hear(self, notice: Notice) -> Heard:
        """Handle one notice."""
        what = meaning(notice)
        if what is Meaning.NOTHING:
            return Heard.NOTHING_TO_DO
        attempt = self._attempt(notice)
        if attempt is None:
            return Heard.UNKNOWN
        if what is Meaning.ADVISED:
            return self._advised(notice, attempt)
        if what is Meaning.LOSE and notice.kind is NoticeKind.TAKE_BACK:
            self.ask.take_back(attempt)
        event = self._gone(notice, attempt) if what is Meaning.GONE else _lost(notice, attempt)
        self.ask.change(attempt.job_id, event, attempt.cedana_id)
        return Heard.ACTED

    def _advised(self, notice: Notice, attempt: Attempt) -> Heard:
        if not self.ask.change.store.get_job(attempt.job_id).spec.checkpoint.on_rebalance:
            return Heard.NOTHING_TO_DO
        advice = e.RebalanceAdvised(attempt.cedana_id, notice.event.fault_code)
        self.ask.change(attempt.job_id, advice, attempt.cedana_id)
        return Heard.ACTED

    def _attempt(self, notice: Notice) -> Attempt | None:
        """The attempt whose machine the notice names; where the cloud tells no region, its name is our own id."""
        store, named = self.ask.change.store, notice.event.instance_id
        if notice.region:
            return store.find_attempt(notice.provider, notice.region, named)
        try:
            attempt = store.get_attempt(named)
        except NotFound:
            return None
        return attempt if (attempt.provider, attempt.allocated_id) == (notice.provider, named) else None

    def _gone(self, notice: Notice, attempt: Attempt) -> e.MachineGone:
        """The end; the cloud is asked who ended it and when, which its event does not say and its bill depends on."""
        ended = e.MachineGone(attempt.cedana_id, notice.event.fault_code, billed_until=notice.at)
        return ended if attempt.is_gone else ask_end(self.ask.clouds, attempt, ended)


def _lost(notice: Notice, attempt: Attempt) -> e.Event:
    by_cloud = notice.kind is NoticeKind.TAKE_BACK
    return e.NoticeReceived(attempt.cedana_id, notice.event.fault_code, notice.deadline, by_cloud=by_cloud)
