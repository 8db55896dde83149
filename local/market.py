"""One spot market behind all clouds: it sells machines, moves them through their lives, and takes them back.

Nothing here reads a clock of its own or touches a network or a process: the clock is injected, the seed decides prices
and capacities, and levers (also over HTTP, see `local.levers`) decide the rest. Times are real; only the clouds' own
delays are divided by the speed-up. Every method is safe to call from many threads.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from local.market_engine import Clock, MarketEngine
from local.market_model import (
    INSTANCE_SHUTDOWN,
    INTERNAL_ERROR,
    SPOT_TERMINATION,
    USER_SHUTDOWN,
    EventKind,
    InterruptionCause,
    LaunchRequest,
    Machine,
    MachineState,
    NoCapacityError,
    Notice,
    NotPossibleError,
    PoolKey,
    PoolPattern,
    PriceTooLowError,
    Purchase,
    StateReason,
    Timings,
    TokenMismatchError,
)
from local.market_prices import PriceBook, PriceRow, seeded_fraction
from local.market_stock import CapacityRule, QuotaKey

# Longer than anything runs here, and short enough for dates.
_FOR_EVER_HOURS = 100_000.0


class Market(MarketEngine):
    """Sells machines. `external_power`: a machine that ends waits for `powered_off` before it counts as terminated."""

    def __init__(
        self, clock: Clock, *, seed: int = 0, timings: Timings | None = None, external_power: bool = False
    ) -> None:
        super().__init__(clock, seed, timings or Timings(), external_power=external_power)
        self.prices = PriceBook(seed, self.timings.price_step)
        self._seed = seed
        self._tokens: dict[tuple[str, str, str], Machine] = {}
        self._visibility_delay = timedelta(0)
        self._failing_boots: list[StateReason] = []
        self._rates: list[tuple[PoolPattern, float]] = []

    def launch(self, request: LaunchRequest, siblings: tuple[PoolKey, ...] = ()) -> Machine:
        """Sell one machine; the same client token with the same fingerprint answers the machine it bought.

        Args:
            request: what is asked for.
            siblings: the same pool in other zones, for the hint in a refusal.

        Raises:
            TokenMismatchError, QuotaExceededError, PriceTooLowError, NoCapacityError: nothing was sold, and a refused
                token may be used again.
        """
        with self._changed:
            now = self.advance()
            known = self._bought_with(request)
            if known is not None:
                return known
            self.stock.check(request, siblings)
            price = self.prices.price(request.pool, request.shape, now)
            if price is None:
                raise NoCapacityError(request.pool, tuple(pool.zone for pool in siblings))
            if request.max_price_usd_hour is not None and request.max_price_usd_hour < price:
                raise PriceTooLowError(request.max_price_usd_hour, price)
            machine = self._made(request, price, now)
            self._admit(machine, now)
            return machine

    def terminate(self, provider: str, region: str, allocated_ids: Iterable[str]) -> list[tuple[Machine, MachineState]]:
        """End the machines, all or none, and answer each with its state before; ended ones stay ended.

        Raises:
            UnknownMachineError: an id is not visible; nothing was ended.
        """
        with self._changed:
            machines = self.find(provider, region, allocated_ids)
            before = [(machine, machine.state) for machine in machines]
            for machine in machines:
                self._end(machine, USER_SHUTDOWN, self.now())
            return before

    def os_shutdown(self, allocated_id: str) -> None:
        """The machine switched itself off: it terminates, or stops when its request said so."""
        with self._changed:
            machine, now = self.get(allocated_id), self.now()
            if machine.request.stop_on_shutdown and machine.live:
                machine.reason = INSTANCE_SHUTDOWN
                if not machine.request.bills_when_stopped:
                    self._leave_service(machine, INSTANCE_SHUTDOWN, now)
                self._go(machine, MachineState.STOPPING, now)
                self._in(self.timings.shutdown, now, lambda at: self._off(machine, at))
            else:
                self._end(machine, INSTANCE_SHUTDOWN, now)

    def interrupt(
        self,
        allocated_id: str,
        *,
        notice: timedelta | None = None,
        false_notice: bool = False,
        cause: InterruptionCause = InterruptionCause.NO_CAPACITY,
    ) -> Notice:
        """Announce that the spot machine is taken back after the notice, and do so unless the notice is a false one.

        Repeating it answers the notice that stands.

        Raises:
            UnknownMachineError: there never was such a machine.
            NotPossibleError: it is not a spot machine, or it is ending.
        """
        with self._changed:
            machine, now = self.get(allocated_id), self.now()
            if machine.pool.purchase is not Purchase.SPOT:
                raise NotPossibleError(f"{allocated_id} is on demand: a cloud does not take it back with a notice")
            if not machine.live:
                raise NotPossibleError(f"{allocated_id} is {machine.state}: only a live machine can be interrupted")
            return self._announce(machine, notice, false_notice=false_notice, cause=cause, at=now)

    def rebalance(self, allocated_id: str) -> None:
        """Recommend to leave the spot machine; nothing else happens to it.

        Raises:
            UnknownMachineError: there never was such a machine.
            NotPossibleError: it is ending.
        """
        with self._changed:
            machine, now = self.get(allocated_id), self.now()
            if not machine.live:
                raise NotPossibleError(f"{allocated_id} is {machine.state}: nobody can leave it any more")
            machine.rebalance_at = machine.rebalance_at or now
            self._tell(machine, EventKind.REBALANCE, "rebalance", now)

    def kill(self, allocated_id: str, reason: StateReason | None = None) -> None:
        """End the machine without a notice; unless told why, as the cloud's reclaim or as its failure.

        Raises:
            UnknownMachineError: there never was such a machine.
        """
        with self._changed:
            machine = self.get(allocated_id)
            spot = machine.pool.purchase is Purchase.SPOT
            if machine.live and spot and reason is None:
                machine.reclaimed_for = InterruptionCause.NO_CAPACITY
            self._end(machine, reason or (SPOT_TERMINATION if spot else INTERNAL_ERROR), self.now())

    def order_capacity(self, rule: CapacityRule) -> None:
        """Set the capacity of pools; machines already sold stay."""
        with self._changed:
            self.stock.order(rule)

    def set_quota(self, key: QuotaKey, vcpus: int) -> None:
        """Set an account's quota; machines already sold stay."""
        with self._changed:
            self.stock.set_quota(key, vcpus)

    def set_prices(self, rows: Iterable[tuple[PoolKey, PriceRow]]) -> None:
        """Set the prices of types in zones, and interrupt the machines whose maximum price is passed."""
        with self._changed:
            for key, row in rows:
                self.prices.put(key, row)
            now = self.advance()
            for machine in self._machines.values():
                self._check_price(machine, now)

    def delay_visibility(self, delay: timedelta) -> None:
        """Hide machines sold from now on from the API for so long."""
        with self._changed:
            self._visibility_delay = delay

    def fail_boots(self, times: int, reason: StateReason) -> None:
        """Let the next machines go from pending straight to their end."""
        with self._changed:
            self._failing_boots.extend([reason] * times)

    def order_interruptions(self, pattern: PoolPattern, per_hour: float) -> None:
        """Let spot machines sold from now on in the pattern's pools be taken back at random, at this mean rate.

        The hour is the cloud's, so the speed-up applies; the seed decides each machine's time. The rate ordered last
        for a pool wins, and zero ends it.
        """
        with self._changed:
            self._rates.append((pattern, per_hour))

    def _bought_with(self, request: LaunchRequest) -> Machine | None:
        if request.client_token is None:
            return None
        known = self._tokens.get(_token_key(request, request.client_token))
        if known is not None and known.request.fingerprint != request.fingerprint:
            raise TokenMismatchError(request.client_token)
        return known

    def _made(self, request: LaunchRequest, price: Decimal, now: datetime) -> Machine:
        serial = next(self._sequence)
        digest = hashlib.sha256(f"{self._seed}|{serial}|{now.isoformat()}".encode()).hexdigest()
        return Machine(
            allocated_id=request.allocated_id or f"i-0{digest[:16]}",
            serial=serial,
            request=request,
            price_usd_hour=price,
            launched_at=now,
            visible_at=now + self._visibility_delay,
        )

    def _admit(self, machine: Machine, now: datetime) -> None:
        request = machine.request
        self._keep(machine)
        if request.client_token is not None:
            self._tokens[_token_key(request, request.client_token)] = machine
        self.stock.sell(request)
        self._go(machine, MachineState.PENDING, now)
        failure = self._failing_boots.pop(0) if self._failing_boots else None
        self._in(self.timings.boot, now, lambda at: self._booted(machine, failure, at))
        if request.pool.purchase is Purchase.SPOT:
            self._draw_interruption(machine, now)
        if request.max_price_usd_hour is not None:
            self._at(self._next_price(machine, now), lambda at: self._watch_price(machine, at))

    def _draw_interruption(self, machine: Machine, now: datetime) -> None:
        rate = next((rate for pattern, rate in reversed(self._rates) if pattern.matches(machine.pool)), 0.0)
        if rate > 0:
            draw = float(seeded_fraction(self._seed, "interruption", machine.serial))
            hours = min(-math.log(1.0 - draw) / rate, _FOR_EVER_HOURS)
            self._in(self.timings.hour * hours, now, lambda at: self._take_back(machine, at))

    def _take_back(self, machine: Machine, at: datetime) -> None:
        if machine.live:
            self._announce(machine, None, false_notice=False, cause=InterruptionCause.NO_CAPACITY, at=at)

    def _announce(
        self, machine: Machine, notice: timedelta | None, *, false_notice: bool, cause: InterruptionCause, at: datetime
    ) -> Notice:
        if machine.notice is None:
            due = at + (self.timings.notices[machine.pool.provider] if notice is None else notice)
            machine.notice = Notice("terminate", at, due, cause, false_notice, partial(self._accept, machine))
            machine.noticed_at = at
            self._tell(machine, EventKind.INTERRUPTION, "terminate", at)
            self._at(due, lambda later: self._reclaim(machine, later))
        return machine.notice

    def _booted(self, machine: Machine, failure: StateReason | None, at: datetime) -> None:
        if machine.state is not MachineState.PENDING:
            return
        if failure is None:
            machine.running_at = at
            self._go(machine, MachineState.RUNNING, at)
        else:
            self._end(machine, failure, at)

    def _watch_price(self, machine: Machine, at: datetime) -> None:
        if machine.live:
            self._check_price(machine, at)
            self._at(self._next_price(machine, at), lambda later: self._watch_price(machine, later))

    def _next_price(self, machine: Machine, at: datetime) -> datetime:
        return self.prices.next_change(machine.pool, machine.request.shape, at)

    def _check_price(self, machine: Machine, at: datetime) -> None:
        limit = machine.request.max_price_usd_hour
        if limit is None or not machine.live or machine.notice is not None:
            return
        price = self.prices.price(machine.pool, machine.request.shape, at)
        if machine.pool.purchase is Purchase.SPOT and price is not None and price > limit:
            self._announce(machine, None, false_notice=False, cause=InterruptionCause.BY_PRICE, at=at)

    def _accept(self, machine: Machine) -> None:
        """The machine is ready to go: what its notice announced happens now."""
        with self._changed:
            self._reclaim(machine, self.advance())

    def _reclaim(self, machine: Machine, at: datetime) -> None:
        notice = machine.notice
        if notice is None or not machine.live:
            return
        if notice.false_notice:
            machine.notice = None
            return
        machine.reclaimed_for = notice.cause
        self._end(machine, SPOT_TERMINATION, at)


def _token_key(request: LaunchRequest, token: str) -> tuple[str, str, str]:
    return (request.pool.provider, request.pool.region, token)
