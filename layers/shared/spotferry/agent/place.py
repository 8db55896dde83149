"""The work directory as archives see it: what they hold of it, and how what they held takes its place."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Sequence

from spotferry.agent.archive import tree
from spotferry.agent.clock import Check, Clock
from spotferry.agent.incoming import Incoming
from spotferry.agent.outputs import Matched, matching
from spotferry.agent.plan import Part
from spotferry.agent.unpack import unpack
from spotferry.agent.world import World, is_self_link


class WorkPlace:
    """One work directory.

    Args:
        world: whose it is.
        work_dir: where it is.
        clock: to wait on.

    Attributes:
        world, work_dir: as given.
    """

    def __init__(self, world: World, work_dir: Path, clock: Clock) -> None:
        self.world = world
        self.work_dir = work_dir
        self._clock = clock

    def entries(self) -> Iterator[str]:
        """All of it, but for the link that the agent made: no archive holds that."""
        return (path for path in tree(self.work_dir) if not is_self_link(path, self.work_dir))

    def matching(self, patterns: Sequence[str]) -> Matched:
        """The entries that the patterns name, in order, with all that they hold, but for the agent's link."""
        paths, missed = matching(self.work_dir, patterns)
        return Matched([path for path in paths if not is_self_link(path, self.work_dir)], missed)

    def empty(self) -> None:
        """Make it an empty directory."""
        self.world.put_in_place(self.world.unpack_place(self.work_dir), self.work_dir, link=False)

    def replace_by(self, part: Part, check: Check) -> None:
        """Put an archive's tree in its place, once all of that has come and is as promised.

        Raises:
            AddressExpired, TransferFailed, ArchiveInvalid, OSError: it did not; the work directory is as before.
        """
        place = self.world.unpack_place(self.work_dir)
        with self.fetched(part, check) as incoming:
            unpack(incoming, place, self.world.owner, check)
            incoming.verify()
        self.world.put_in_place(place, self.work_dir, link=True)

    def fetched(self, part: Part, check: Check) -> Incoming:
        """A part as it comes."""
        return Incoming(part, self._clock, check)
