"""A market on a clock that only tests move, with short ways to ask it for machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from local.market import Market
from local.market_model import LaunchRequest, Machine, MarketEvent, PoolKey, Purchase, Shape, Timings

REGION = "eu-west-1"
SHAPE = Shape(vcpus=2, memory_mib=8192, gpus=0, quota_family="Standard")
TIMINGS = Timings(
    boot=timedelta(seconds=1),
    shutdown=timedelta(seconds=2),
    notices={"aws": timedelta(seconds=12)},
    terminated_visible=timedelta(seconds=60),
    price_step=timedelta(seconds=100),
    hour=timedelta(seconds=100),
)


def pool(zone: str = "eu-west-1a", purchase: Purchase = Purchase.SPOT, instance_type: str = "m5.large") -> PoolKey:
    """A pool of the test region."""
    return PoolKey("aws", REGION, zone, instance_type, purchase)


def request(
    key: PoolKey | None = None,
    token: str | None = None,
    fingerprint: str = "same",
    max_price: Decimal | None = None,
    *,
    stop_on_shutdown: bool = False,
) -> LaunchRequest:
    """A request for one small machine."""
    return LaunchRequest(
        pool=key or pool(),
        shape=SHAPE,
        fingerprint=fingerprint,
        client_token=token,
        max_price_usd_hour=max_price,
        stop_on_shutdown=stop_on_shutdown,
    )


@dataclass
class World:
    """The market, its clock and what it told."""

    seed: int = 7
    external_power: bool = False
    now: datetime = datetime(2026, 12, 1, tzinfo=UTC)
    told: list[MarketEvent] = field(default_factory=list)
    market: Market = field(init=False)

    def __post_init__(self) -> None:
        """Start the market."""
        self.market = Market(lambda: self.now, seed=self.seed, timings=TIMINGS, external_power=self.external_power)
        self.market.subscribe(self.told.append)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        self.market.advance()

    def running(self, asked: LaunchRequest | None = None) -> Machine:
        """A machine that has booted."""
        machine = self.market.launch(asked or request())
        self.wait(1)
        return machine

    def story(self, machine: Machine) -> list[tuple[str, float]]:
        """What was told of the machine, with the seconds since its launch."""
        return [
            (event.value, (event.at - machine.launched_at).total_seconds())
            for event in self.told
            if event.allocated_id == machine.allocated_id
        ]
