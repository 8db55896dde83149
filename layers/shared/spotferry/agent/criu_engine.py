"""The `criu` engine: the task's processes themselves, and the work directory that they stand in."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Callable, List, Optional, Tuple

from spotferry.agent import criu as program
from spotferry.agent.archive import pack, tree
from spotferry.agent.clock import Check
from spotferry.agent.codec import fastest
from spotferry.agent.criu import Criu
from spotferry.agent.errors import ArchiveInvalid, CriuFailed, TransferFailed, reason_of
from spotferry.agent.fingerprint import fingerprint, mismatch
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Part, Saved
from spotferry.agent.subject import Fate, Subject
from spotferry.agent.task import TASK, Runner
from spotferry.agent.unpack import unpack
from spotferry.agent.uploads import Outgoing
from spotferry.agent.workdir import WORKDIR_PART

IMAGES_PART = "criu.tar"
"""How the part's name begins; how it is compressed follows."""

_ROOM = 1.25
"""Images take as much room as the memory does, and a little more."""


class CriuEngine:
    """Checkpoints of the process tree, which goes on in the middle of a line on another machine.

    The work directory travels with it: the open files of the tree are in it, and where the processes cannot go on, the
    task can still begin anew from there.

    Args:
        place: the work directory.
        runner: of the task.
        spool: directory for images; nobody but the agent may read it.
        path: the task's PATH, on which CRIU may be.
        alone: the job asks for this engine and no other, so that files without their processes are no restore.
    """

    def __init__(
        self, place: WorkPlace, runner: Runner, spool: Path, path: Callable[[], str], alone: Callable[[], bool]
    ) -> None:
        self._place = place
        self._runner = runner
        self._spool = spool
        self._path = path
        self._alone = alone
        self._checked: Tuple[Optional[Criu], str] = (None, "criu is not installed")
        self._brought: Optional[int] = None

    @property
    def parts(self) -> Tuple[str, ...]:
        """The tree, and the work directory as the `workdir` engine writes it."""
        return (IMAGES_PART + fastest().suffix, WORKDIR_PART + fastest().suffix)

    def refusal(self) -> str:
        """Why the task that runs cannot be dumped; "" when nothing speaks against it."""
        refusal = self.unavailable()
        if refusal:
            return refusal
        pids = self._runner.living()
        if device := program.accelerator_of(pids):
            return f"the task uses {device}, whose memory no image holds"
        if self._runner.strays():
            return "the task has processes outside its own tree"
        if program.memory_bytes(pids) * _ROOM > shutil.disk_usage(self._spool).free:
            return "the disk has no room for the task's memory"
        return ""

    def unavailable(self) -> str:
        """Why this machine can neither dump nor restore; "" when it can."""
        found = program.find(self._path())
        if found is None:
            return "criu is not installed"
        if found != self._checked[0]:
            self._checked = (found, found.refusal())
        return self._checked[1]

    def capture(self, subject: Subject, outgoing: Outgoing, check: Check) -> None:
        """Dump the tree, and read the work directory while it stands still.

        Raises:
            CriuFailed: the tree cannot be dumped, and runs on; nothing was written.
        """
        images, work_dir = self.parts
        dumped = self._empty("dump")
        try:
            with subject.dumped(lambda: self._dump(subject, dumped), outgoing.room):
                with outgoing.part(images) as part:
                    pack(dumped, tree(dumped), part.write, check, codec=fastest())
                with outgoing.part(work_dir) as part:
                    pack(self._place.work_dir, self._place.entries(), part.write, check, codec=fastest())
        finally:
            shutil.rmtree(dumped, ignore_errors=True)

    def committed(self, number: Optional[int]) -> None:
        """Every capture is whole: there is nothing to remember."""

    def restore(self, saved: Saved, check: Check) -> str:
        """Bring the work directory back, then the tree, stopped; why the tree did not come, "" when it did.

        Raises:
            ArchiveInvalid: no tree, and the job wants nothing less.
        """
        self._brought = None
        why = self._obstacle(saved)
        if why and self._alone():
            raise ArchiveInvalid(why)
        self._place.replace_by(_part(saved, WORKDIR_PART), check)
        if not why:
            why = self._bring(_part(saved, IMAGES_PART), check)
        if why and self._alone():
            raise ArchiveInvalid(why)
        return f"its processes could not go on ({why}), its files did" if why else ""

    def brought(self) -> Optional[int]:
        """The leader of the tree that was brought back and waits to go on; None where there is none. Asked once."""
        pid, self._brought = self._brought, None
        return pid

    def _obstacle(self, saved: Saved) -> str:
        return mismatch(saved.machine, fingerprint()) or self.unavailable()

    def _bring(self, part: Part, check: Check) -> str:
        criu = self._checked[0]
        assert criu is not None, "nobody gets here without"
        images = self._empty("restore")
        try:
            with self._place.fetched(part, check) as incoming:
                unpack(incoming, images, None, check)
                incoming.verify()
            shutil.copyfile(images / TASK, self._runner.script_file(TASK))
            self._brought = criu.restore(images / "images", self._runner.log)
        except (CriuFailed, TransferFailed, ArchiveInvalid, OSError) as failed:
            return reason_of(failed)  # the files are there already, and whole
        finally:
            shutil.rmtree(images, ignore_errors=True)
        return ""

    def _dump(self, subject: Subject, dumped: Path) -> None:
        criu, leader = self._checked[0], self._runner.leader
        if criu is None or leader is None:
            raise CriuFailed("there is no task that could be dumped")
        before: Optional[Path] = None
        if subject.wanted.fate is Fate.GOES_ON and criu.tracks_memory():
            before = dumped / "before"
            criu.pre_dump(leader, before)
        criu.dump(leader, dumped / "images", before)
        for images in filter(None, (before, dumped / "images")):
            program.tidy(images)
        # The shell reads the task's lines from this file as it goes.
        shutil.copyfile(self._runner.script_file(TASK), dumped / TASK)

    def _empty(self, name: str) -> Path:
        directory = self._spool / f"criu-{name}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700)
        return directory


def _part(saved: Saved, name: str) -> Part:
    found: List[Part] = [part for part in saved.parts if part.name.startswith(name)]
    if not found:
        raise ArchiveInvalid(f"it has no part {name}")
    return found[0]
