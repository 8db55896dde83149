"""Sets of small numbers as Python integers: one AND compares thousands of them at once."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def members(bits: int) -> Iterator[int]:
    """The numbers in the set, ascending."""
    text = bin(bits)[:1:-1]
    at = text.find("1")
    while at >= 0:
        yield at
        at = text.find("1", at + 1)


def sets_by_key(keys: Iterable[K]) -> dict[K, int]:
    """For each key the set of positions at which it stands."""
    found: dict[K, list[int]] = {}
    for position, key in enumerate(keys):
        found.setdefault(key, []).append(position)
    return {key: _from_members(positions) for key, positions in found.items()}


def _from_members(numbers: Sequence[int]) -> int:
    """The set of these numbers, of which there is at least one."""
    digits = bytearray(b"0" * (max(numbers) + 1))
    for number in numbers:
        digits[-1 - number] = 0x31
    return int(digits, 2)


def union(sets: Iterable[int]) -> int:
    """What is in any of the sets."""
    result = 0
    for bits in sets:
        result |= bits
    return result


class AtLeast:
    """Which positions hold a value of at least so much: one bisection, one set for each distinct value."""

    def __init__(self, values: Sequence[float]) -> None:
        by_value = sets_by_key(values)
        self.values = sorted(by_value)
        self._sets = [0] * (len(self.values) + 1)
        for rank in range(len(self.values) - 1, -1, -1):
            self._sets[rank] = self._sets[rank + 1] | by_value[self.values[rank]]

    def __call__(self, least: float) -> int:
        """The positions whose value is `least` or more."""
        return self._sets[bisect_left(self.values, least)]


class Weights:
    """A weight for each position, kept as one set for each binary digit, so that a sum is a few population counts."""

    def __init__(self, weights: Sequence[int]) -> None:
        by_weight: Mapping[int, int] = sets_by_key(weights)
        digits = max(by_weight, default=0).bit_length()
        self._digits = [union(bits for w, bits in by_weight.items() if w >> digit & 1) for digit in range(digits)]

    def total(self, bits: int) -> int:
        """Sum of the weights at the positions in the set."""
        return sum((bits & digit).bit_count() << place for place, digit in enumerate(self._digits))
