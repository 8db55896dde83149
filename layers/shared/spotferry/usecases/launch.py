"""Asking a cloud for the machine of an attempt whose intent is saved."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from spotferry.domain import events as e
from spotferry.domain.asking import may_ask_again, may_begin
from spotferry.domain.pools import patterns, pool_of
from spotferry.domain.view import View
from spotferry.ports.cloud import Clouds, SettlesLaunches, TellsLaunchPrice
from spotferry.ports.store import BanStore
from spotferry.types.errors import CapacityError, LaunchRefused, ProviderError, TryAgainLater
from spotferry.types.instance import Attempt, Instance
from spotferry.types.job import JobState
from spotferry.usecases.change import ChangeJob

TAKEN_BACK_BAN = timedelta(minutes=15)
"""How long a pool that just took a machine back is left alone: its capacity is short for minutes, not for hours."""


@dataclass(frozen=True, slots=True)
class AskCloud:
    """Makes the very request that was saved with the attempt, and records the answer."""

    change: ChangeJob
    clouds: Clouds
    bans: BanStore

    def __call__(self, job_id: str, attempt: Attempt) -> View | None:
        """Ask, as was saved just now, and record what came of it.

        Returns:
            The view with the answer; None when the question is still open: the cloud gave no verdict, or the call would
            begin so late that somebody else may ask before it is over.
        """
        provider = self.clouds.provider(attempt.provider)  # first: its SDK may take seconds to load
        if not may_begin(attempt, self.change.clock()):
            return None
        try:
            machine = provider.create_instance(attempt)
        except TryAgainLater:
            return None
        except CapacityError as refusal:
            return self.fail(job_id, attempt, refusal)
        except ProviderError:
            return None
        return self.record(job_id, attempt, machine)

    def again(self, job_id: str, attempt: Attempt) -> View | None:
        """Ask once more for a machine that nobody knows of, if no other call for it is under way.

        Returns:
            As of a first call; None as well when there is nothing to ask for now.
        """
        if not may_ask_again(attempt, self.change.clock()):
            return None
        decision = self.change.decided(job_id, e.LaunchRepeated(attempt.cedana_id), attempt.cedana_id)
        if decision.entry is None:
            return None  # somebody else was first
        return self(job_id, decision.view.attempts[attempt.cedana_id])

    def settle(self, job_id: str, attempt: Attempt) -> View | None:
        """Close an attempt whose launch was accepted and came to nothing.

        Returns:
            The view with the failure; None when the machine was made, or the cloud of the attempt leaves nothing to
            settle.

        Raises:
            NotYet: the cloud is still at it.
            ProviderError: the question failed; it proves nothing.
        """
        provider = self.clouds.provider(attempt.provider)
        if not isinstance(provider, SettlesLaunches):
            return None
        refusal = provider.settle_launch(attempt)
        return self.fail(job_id, attempt, refusal, accepted=True) if refusal else None

    def fail(self, job_id: str, attempt: Attempt, refusal: CapacityError, *, accepted: bool = False) -> View:
        """Leave alone what the refusal reaches, and close the attempt."""
        self.set_aside(attempt.provider, attempt.market, attempt, refusal)
        failed = e.LaunchFailed(
            attempt.cedana_id, refusal.code, refusal.message, accepted=accepted, asked_again_at=attempt.asked_again_at
        )
        view = self.change(job_id, failed, attempt.cedana_id)
        return self._give_up(view, refusal) if is_the_jobs_own(refusal) else view

    def _give_up(self, view: View, refusal: CapacityError) -> View:
        """No other candidate would do: the job ends with the cloud's words, unless it has another machine."""

        def impossible(now: View) -> e.Event | None:
            return e.PlacementImpossible(refusal.message) if now.job.state is JobState.PENDING else None

        return self.change(view.job.job_id, impossible)

    def record(self, job_id: str, attempt: Attempt, machine: Instance) -> View:
        """Save what the cloud says of the attempt's machine, and what it asks for it."""
        created = e.MachineCreated(
            attempt.cedana_id,
            machine.allocated_id,
            machine.state,
            machine.availability_zone,
            machine.ip_address,
            launched_at=machine.launched_at if isinstance(machine, Attempt) else None,
            price_usd_hour=self._asked(machine),
            asked_again_at=attempt.asked_again_at,
        )
        return self.change(job_id, created, attempt.cedana_id)

    def _asked(self, machine: Instance) -> Decimal | None:
        """The price at launch; the machine is there whether or not it can be read."""
        provider = self.clouds.provider(machine.provider)
        if not isinstance(provider, TellsLaunchPrice) or not isinstance(machine, Attempt):
            return None
        try:
            return provider.launch_price(machine)
        except ProviderError:
            return None

    def set_aside(self, provider: str, market: str, machine: Instance, refusal: CapacityError) -> None:
        """Leave alone what the refusal reaches, for as long as it says, for all jobs."""
        for banned_market, pattern in patterns(market, machine, refusal):
            until = self.change.clock() + refusal.ban_for
            self.bans.ban(provider, banned_market, pattern, until, f"{refusal.code}: {refusal.message}"[:500])

    def take_back(self, attempt: Attempt) -> None:
        """An interruption teaches the market: the pool that took a machine back is short of them."""
        until = self.change.clock() + TAKEN_BACK_BAN
        self.bans.ban(attempt.provider, attempt.market, pool_of(attempt), until, "it took a machine back")


def is_the_jobs_own(refusal: CapacityError) -> bool:
    """The refusal reaches no pool, because what the job itself asks for is at fault (its image, its disk)."""
    return isinstance(refusal, LaunchRefused) and refusal.scope == "none"


def would_be_visible(view: View, attempt: Attempt, now: datetime) -> bool:
    """It would be shown by now: nobody has asked for it since the job's last change ordered its end."""
    last_asked = max(attempt.requested_at, view.job.updated_at or attempt.requested_at)
    return last_asked + view.policy.visibility <= now


def gone_unseen(attempt: Attempt) -> e.MachineGone:
    """The end of an attempt whose machine the cloud does not show: at its agent's last word, if it had one."""
    if attempt.arrived_at is None:
        return e.MachineGone(attempt.cedana_id, "no machine was ever made for it")
    words = "the machine that its agent reported from is gone"
    return e.MachineGone(attempt.cedana_id, words, billed_until=attempt.released_at or attempt.seen_since())
