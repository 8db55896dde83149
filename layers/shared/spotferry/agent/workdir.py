"""The `workdir` engine: the task stands still while its work directory is read."""

from __future__ import annotations

from typing import Optional, Tuple

from spotferry.agent.archive import pack
from spotferry.agent.clock import Check
from spotferry.agent.codec import fastest
from spotferry.agent.errors import ArchiveInvalid
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Saved
from spotferry.agent.subject import Subject
from spotferry.agent.uploads import Outgoing

WORKDIR_PART = "workdir.tar"
"""How the part's name begins; how it is compressed follows."""


class WorkdirEngine:
    """Checkpoints of all that is in the work directory.

    Args:
        place: the work directory.
    """

    def __init__(self, place: WorkPlace) -> None:
        self._place = place

    @property
    def parts(self) -> Tuple[str, ...]:
        """One."""
        return (WORKDIR_PART + fastest().suffix,)

    def capture(self, subject: Subject, outgoing: Outgoing, check: Check) -> None:
        """Read it while nothing moves."""
        (name,) = self.parts
        with subject.still(outgoing.room), outgoing.part(name) as part:
            pack(self._place.work_dir, self._place.entries(), part.write, check, codec=fastest())

    def committed(self, number: Optional[int]) -> None:
        """Every capture is whole: there is nothing to remember."""

    def restore(self, saved: Saved, check: Check) -> str:
        """The checkpoint's tree takes the work directory's place."""
        part = next((part for part in saved.parts if part.name.startswith(WORKDIR_PART)), None)
        if part is None:
            raise ArchiveInvalid(f"it has no part {WORKDIR_PART}")
        self._place.replace_by(part, check)
        return ""
