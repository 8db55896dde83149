"""Which regions the reaper lists at a poll: all where something may be, the others now and then."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

LATELY = timedelta(minutes=15)
"""How long a region is listed at every poll after it was last in use: longer than a launch can hide its machine."""

SELDOM = timedelta(minutes=10)
"""How often a region is listed that is not in use."""

Region = tuple[str, str]
"""Cloud and region."""


class Rounds:
    """When each region was last in use and last listed, as far as this process knows.

    It saves calls and decides nothing: a process that has just started takes every region for one in use.
    """

    def __init__(self) -> None:
        self._used: dict[Region, datetime] = {}
        self._listed: dict[Region, datetime] = {}

    def due(self, regions: Iterable[Region], busy: Collection[Region], now: datetime) -> list[Region]:
        """Those to list now, the one that has waited longest first.

        Args:
            regions: all that were ever used.
            busy: those where a machine of ours may be, by the records.
            now: the time of the poll.
        """
        for region in regions:
            self._used[region] = now if region in busy else self._used.get(region, now)
        due = [region for region in regions if self._is_due(region, now)]
        return sorted(due, key=lambda region: (region in self._listed, self._listed.get(region, now), region))

    def _is_due(self, region: Region, now: datetime) -> bool:
        listed = self._listed.get(region)
        return listed is None or now - self._used[region] <= LATELY or now - listed >= SELDOM

    def listed(self, region: Region, now: datetime) -> None:
        """The region was listed, whole."""
        self._listed[region] = now

    def use(self, region: Region, now: datetime) -> None:
        """There is a machine in the region, whether or not a record says so."""
        self._used[region] = now
