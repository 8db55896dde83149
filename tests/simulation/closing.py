"""What must be true once the storm is over: jobs have ended, machines are gone, the ledger is the bill."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from local.market_model import FREE_IF_TAKEN_BACK_WITHIN, MINIMUM_BILLED, Machine
from local.market_model import MachineState as State
from spotferry.domain.costs import attempt_cost
from spotferry.ports.store import JobStore
from spotferry.types.instance import Attempt
from tests.simulation.clouds import OURS
from tests.simulation.invariants import Referee
from tests.simulation.offers import AWS

POLL_SECONDS = 60
_TWO_POLLS = timedelta(seconds=2 * POLL_SECONDS + 30)
_BOUNDARY = timedelta(minutes=3)
_SECOND = timedelta(seconds=1)


def check(referee: Referee, store: JobStore, accepted: Iterable[str], calm_at: datetime, now: datetime) -> None:
    """Hold the end of a run against what always holds."""
    for job_id in sorted(accepted):
        _check_job(referee, store, job_id)
    for machine in referee.machines():
        if machine.request.tags.get("spotferry:deployment") == OURS:
            _check_machine(referee, machine, calm_at)
        else:
            alive = machine.live
            if not alive:
                referee.violated("only unwanted machines are ended", "another deployment's machine was ended")
    for truth in referee.jobs.values():
        for attempt in store.attempts_of(truth.job.job_id):
            _check_bill(referee, attempt, now)


def _check_job(referee: Referee, store: JobStore, job_id: str) -> None:
    job = store.get_job(job_id)
    if not job.is_settled:
        words = f"{job_id} is {job.state} ({job.reason}) with {len(job.open_attempts)} machines"
        referee.violated("every job ends", words)
    entries = store.timeline(job_id)
    gapless = [entry.revision for entry in entries] == list(range(1, job.revision + 1))
    chained = all(a.to_state == b.from_state for a, b in pairwise(entries))
    if not (gapless and chained):
        referee.violated("gapless timeline", f"{job_id}: {[entry.revision for entry in entries]}")
    if entries[-1].to_state != job.state:
        referee.violated("one final state", f"{job_id} is {job.state}, its timeline ends in {entries[-1].to_state}")


def _check_machine(referee: Referee, machine: Machine, calm_at: datetime) -> None:
    """It ended within two polls after its job did, or after the storm."""
    truth = referee.jobs.get(machine.request.tags["spotferry:job"])
    name = f"{machine.allocated_id} of {machine.request.tags['spotferry:instance'][:6]}"
    if truth is None or machine.request.tags["spotferry:instance"] not in referee.attempts:
        referee.violated("no machine outlives its job", f"{name} has no record")
        return
    if truth.final_at is None:
        return
    until = max(truth.final_at, calm_at, machine.visible_at) + _TWO_POLLS
    if machine.billing_ended_at is None or machine.billing_ended_at > until:
        words = f"{name} ended at {machine.billing_ended_at}, its job at {truth.final_at}"
        referee.violated("no machine outlives its job", words)


def _check_bill(referee: Referee, attempt: Attempt, now: datetime) -> None:
    # One that was gone before anybody could save its id is in no record, where the next one has its name.
    heard_of = [m for m in referee.machines_of(attempt.cedana_id) if m.allocated_id == attempt.allocated_id]
    bill = sum((_billed(m, now) for m in heard_of), Decimal(0))
    ledger = attempt_cost(attempt, now).machine_usd
    slack = attempt.price * Decimal((2 * MINIMUM_BILLED) // _SECOND) / 3600
    # Nobody could be asked who ended it, so that it may be billed though its cloud does not: never the other way round.
    # A machine whose id was never heard of is billed by its agent's words: a guess either way.
    untold = (attempt.ended_by != "cloud" and ledger >= bill) or not attempt.allocated_id
    if abs(bill - ledger) > slack and not untold and not _at_the_boundary(heard_of):
        words = f"{attempt.cedana_id[:6]}: the ledger has {ledger:.6f}, the bill {bill:.6f}"
        referee.violated("the ledger is the bill", words)


def _billed(machine: Machine, now: datetime) -> Decimal:
    """The market's bill; only one cloud waives what it takes back early."""
    if machine.pool.provider == AWS or not machine.taken_back or machine.running_at is None:
        return machine.cost_usd(now)
    seconds = max((machine.billing_ended_at or now) - machine.running_at, MINIMUM_BILLED) // _SECOND
    return machine.price_usd_hour * Decimal(seconds) / 3600


def _at_the_boundary(machines: Iterable[Machine]) -> bool:
    """Taken back so close to an hour that a few seconds decide whether it is free."""
    return any(
        m.taken_back
        and m.billing_ended_at is not None
        and m.running_at is not None
        and abs(m.billing_ended_at - m.running_at - FREE_IF_TAKEN_BACK_WITHIN) < _BOUNDARY
        for m in machines
    )


def all_over(referee: Referee, store: JobStore, accepted: Iterable[str]) -> bool:
    """Every job is settled, and none of our machines is left."""
    ours = [m for m in referee.machines() if m.request.tags.get("spotferry:deployment") == OURS]
    gone = all(m.state is State.TERMINATED for m in ours)
    return gone and all(store.get_job(job_id).is_settled for job_id in accepted)
