"""What the reaper remembers, in memory."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from spotferry.store.keys import parse_region_key, region_key
from spotferry.types.instance import Attempt


class MemorySightings:
    """The part of `memory.MemoryStore` that the reaper asks."""

    def __init__(self) -> None:
        self._regions: set[str] = set()
        self._seen: dict[tuple[str, str], dict[str, tuple[datetime, datetime]]] = {}

    def _register(self, attempts: Iterable[Attempt]) -> None:
        self._regions |= {region_key(attempt) for attempt in attempts if not attempt.is_gone}

    def used_regions(self) -> Sequence[tuple[str, str]]:
        """Every region that a launch was saved for."""
        return sorted(parse_region_key(key) for key in list(self._regions))

    def sightings(self, provider: str, region: str, now: datetime) -> Mapping[str, datetime]:
        """When each machine was first seen without an owner."""
        noted = dict(self._seen.get((provider, region), {}))
        return {allocated_id: seen for allocated_id, (seen, until) in noted.items() if until > now}

    def note_sighting(
        self, provider: str, region: str, allocated_id: str, seen: datetime, until: datetime, reason: str
    ) -> None:
        """Note a first sighting."""
        assert reason, "a person who looks at the table is told why"
        noted = self._seen.setdefault((provider, region), {})
        if allocated_id not in noted or noted[allocated_id][1] <= seen:
            noted[allocated_id] = seen, until
