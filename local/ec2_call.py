"""What every EC2 operation is given: the call, the market, and moto."""

from __future__ import annotations

from dataclasses import dataclass

from local.aws_facts import offered_types
from local.ec2_moto import Moto
from local.ec2_wire import Params
from local.market import Market
from local.market_model import PoolKey, Purchase

PROVIDER = "aws"


@dataclass(frozen=True, slots=True)
class Call:
    """One signed request."""

    action: str
    region: str
    params: Params
    request_id: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """What stands behind the face."""

    market: Market
    moto: Moto

    def sells(self, pool: PoolKey) -> bool:
        """Tell whether the zone offers the type: as the real one does, or because somebody priced it."""
        offered = offered_types(pool.region).get(pool.zone, frozenset())
        return pool.instance_type in offered or self.market.prices.is_set(pool)

    def pools(self, region: str, instance_type: str, purchase: Purchase) -> list[PoolKey]:
        """The type's pools in the region, one for each zone that offers it."""
        keys = [PoolKey(PROVIDER, region, zone, instance_type, purchase) for zone in sorted(self.moto.zones(region))]
        return [key for key in keys if self.sells(key)]
