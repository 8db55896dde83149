"""What goes wrong in a run: kinds, how often each strikes, and how often it did; all of it by the seed."""

from collections import Counter
from collections.abc import Mapping
from random import Random

STEPS = {
    "crash before a step": 0.004,
    "crash after a step": 0.004,
    "slow step": 0.006,
    "interleaved step": 0.05,
    "cloud throttled": 0.05,
    "cloud answer lost": 0.03,
    "launch answer lost": 0.1,
    "launch late": 0.1,
    "table busy": 0.01,
    "table answer lost": 0.01,
    "bucket failed": 0.02,
    "queue refused": 0.03,
    "queue answer lost": 0.02,
}
"""Faults of one awaited step of a function; how often, by step."""

MESSAGES = {
    "message twice": 0.05,
    "message late": 0.05,
    "notice lost": 0.15,
    "notice late": 0.15,
    "notice twice": 0.1,
    "call lost": 0.02,
    "call late": 0.03,
    "call twice": 0.05,
    "answer lost": 0.02,
    "poll missed": 0.1,
}
"""Faults of what travels: queue messages, notices on the bus, calls of agents, the schedule's ticks."""

HAPPENINGS = {
    "taken back": 3.0,
    "taken back unannounced": 1.0,
    "false notice": 0.7,
    "machine broke": 0.5,
    "zone exhausted": 2.0,
    "cloud exhausted": 0.5,
    "boot failed": 0.7,
    "machine hidden": 1.5,
    "indexes stale": 1.5,
    "agent vanished": 0.5,
    "machine stalled": 1.0,
    "machine cut off": 1.5,
    "rebalance advised": 1.0,
    "person ends machine": 0.4,
    "person checkpoints": 0.8,
    "person begins again": 0.8,
    "person cancels": 0.8,
}
"""What happens to the world; how often an hour."""

KINDS: tuple[str, ...] = (*STEPS, *MESSAGES, *HAPPENINGS)
"""Every kind."""

_SHARE_ON = 0.55
_FURY = (0.3, 1.0, 1.0, 2.0, 4.0)
_MOST_OFTEN = 0.6
_FOLLOWS = (0.0, 0.02, 0.1)


class Faults:
    """Draws what strikes. Each run has some kinds only, each as often as the run's own luck has it.

    Attributes:
        on: nothing strikes while this is False.
        struck: how often each kind did.
    """

    def __init__(self, random: Random) -> None:
        self.on = True
        self.struck: Counter[str] = Counter()
        self._random = random
        fury = random.choice(_FURY)
        rates = {kind: rate * fury for group in (STEPS, MESSAGES) for kind, rate in group.items()}
        self._rates = {kind: min(self._drawn(rate), _MOST_OFTEN) for kind, rate in rates.items()}
        fury = random.choice(_FURY)
        self.hourly: Mapping[str, float] = {kind: self._drawn(rate * fury) for kind, rate in HAPPENINGS.items()}
        self._follows = random.choice(_FOLLOWS)

    def _drawn(self, rate: float) -> float:
        return rate * self._random.uniform(0.3, 2.5) if self._random.random() < _SHARE_ON else 0.0

    def strikes(self, kind: str) -> bool:
        """Whether this kind strikes now; counted if so."""
        rate = self._rates[kind]
        if not self.on or not rate or self._random.random() >= rate:
            return False
        self.struck[kind] += 1
        return True

    def follow(self) -> str | None:
        """What is to happen right behind a change of a job, for much goes wrong only in the middle of something."""
        kinds = [kind for kind, rate in self.hourly.items() if rate]
        if not self.on or not kinds or self._random.random() >= self._follows:
            return None
        return self._random.choices(kinds, [self.hourly[kind] for kind in kinds])[0]

    def happened(self, kind: str) -> None:
        """Count what happened to the world."""
        assert kind in HAPPENINGS, kind
        self.struck[kind] += 1

    def delay(self) -> float:
        """How late something is, in seconds: a little, or minutes."""
        return self._random.uniform(0, self._random.choice((5, 60, 400)))

    def seconds(self, least: float, most: float) -> float:
        """So many, by the seed."""
        return self._random.uniform(least, most)
