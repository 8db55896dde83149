"""How many machines the market still has: capacity of pools and quotas of the account."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from local.market_model import LaunchRequest, NoCapacityError, PoolKey, PoolPattern, Purchase, QuotaExceededError, Shape
from local.market_prices import seeded_fraction

_VCPUS_OF_A_POOL = 8192
_DEFAULT_QUOTA_VCPUS = 5120

QuotaKey = tuple[str, str, Purchase, str]


@dataclass(frozen=True, slots=True)
class CapacityRule:
    """A capacity ordered for the pools of a pattern; None gives them back their seeded one."""

    pattern: PoolPattern
    machines: int | None


class Stock:
    """Counts what is sold against what there is. The market's lock guards it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rules: list[CapacityRule] = []
        self._quotas: dict[QuotaKey, int] = {}
        self._sold: Counter[PoolKey] = Counter()
        self._vcpus: Counter[QuotaKey] = Counter()

    def order(self, rule: CapacityRule) -> None:
        """Set the capacity of the pattern's pools; the rule ordered last wins."""
        if rule.pattern == PoolPattern():
            self._rules.clear()
        self._rules = [known for known in self._rules if known.pattern != rule.pattern]
        self._rules.append(rule)

    def set_quota(self, key: QuotaKey, vcpus: int) -> None:
        """Set how many vCPUs of the family may run at once."""
        self._quotas[key] = vcpus

    def quota(self, key: QuotaKey) -> int:
        """How many vCPUs of the family may run at once."""
        return self._quotas.get(key, _DEFAULT_QUOTA_VCPUS)

    def used(self, key: QuotaKey) -> int:
        """How many vCPUs of the family run now."""
        return self._vcpus[key]

    def capacity(self, key: PoolKey, shape: Shape) -> int:
        """How many machines the pool has in all, sold ones included."""
        for rule in reversed(self._rules):
            if rule.pattern.matches(key):
                return self._seeded(key, shape) if rule.machines is None else rule.machines
        return self._seeded(key, shape)

    def left(self, key: PoolKey, shape: Shape) -> int:
        """How many machines can still be had from the pool."""
        return max(0, self.capacity(key, shape) - self._sold[key])

    def check(self, request: LaunchRequest, siblings: tuple[PoolKey, ...]) -> None:
        """Refuse the request when quota or capacity does not allow it.

        Raises:
            QuotaExceededError: the family's vCPUs would not suffice.
            NoCapacityError: the pool is empty; it names the siblings' zones that are not.
        """
        key, shape = request.pool, request.shape
        quota_key = _quota_key(request)
        if self._vcpus[quota_key] + shape.vcpus > self.quota(quota_key):
            raise QuotaExceededError(key, shape.quota_family, self.quota(quota_key))
        if self.left(key, shape) < 1:
            raise NoCapacityError(key, tuple(pool.zone for pool in siblings if self.left(pool, shape) > 0))

    def sell(self, request: LaunchRequest) -> None:
        """Count one machine as sold."""
        self._sold[request.pool] += 1
        self._vcpus[_quota_key(request)] += request.shape.vcpus

    def give_back(self, request: LaunchRequest) -> None:
        """Count one machine as free again."""
        self._sold[request.pool] -= 1
        self._vcpus[_quota_key(request)] -= request.shape.vcpus

    def _seeded(self, key: PoolKey, shape: Shape) -> int:
        share = seeded_fraction(self._seed, "capacity", key.provider, key.zone, key.instance_type, key.purchase)
        return max(2, int(_VCPUS_OF_A_POOL / shape.vcpus * (0.25 + 0.75 * float(share))))


def _quota_key(request: LaunchRequest) -> QuotaKey:
    return (request.pool.provider, request.pool.region, request.pool.purchase, request.shape.quota_family)
