"""The `criu` engine: the task's process tree as a directory of images, together with its work directory."""

from __future__ import annotations

from pathlib import Path
from typing import Iterable, Optional, Protocol, Tuple

from spotferry.agent.archive import pack, tree
from spotferry.agent.clock import Check
from spotferry.agent.errors import AgentError, ArchiveInvalid, EngineRefused, reason_of
from spotferry.agent.members import fastest
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Saved
from spotferry.agent.subject import Subject
from spotferry.agent.task import Runner
from spotferry.agent.unpack import unpack
from spotferry.agent.uploads import Outgoing
from spotferry.agent.workdir import WORKDIR_PART
from spotferry.agent.world import remove

TREE_PART = "tree.tar"
"""How the name of the images' part begins; how it is compressed follows."""


class Dumper(Protocol):
    """What dumps a tree of processes and brings it back; its errors are `AgentError`s."""

    def refusal(self, pids: Iterable[int]) -> str:
        """Why it cannot dump these processes; "" when it can."""
        ...

    def dump(self, pid: int, images: Path) -> None:
        """Write the tree below a process to a directory that is made, and leave it stopped; on an error it runs on."""
        ...

    def restore(self, images: Path, log: Path) -> int:
        """Bring a tree back, stopped, with its streams at the end of the log; its leader, which is a child of ours."""
        ...


class TreeEngine:
    """Checkpoints of processes and work directory.

    Args:
        place: the work directory.
        runner: whose processes.
        dumper: None where the machine has none.
        spool: directory for the images.
        log: what the processes print to.
    """

    def __init__(self, place: WorkPlace, runner: Runner, dumper: Optional[Dumper], spool: Path, log: Path) -> None:
        self._place = place
        self._runner = runner
        self._dumper = dumper
        self._images = spool / "tree"
        self._log = log
        self._leader: Optional[int] = None

    @property
    def parts(self) -> Tuple[str, ...]:
        """Images and work directory."""
        return (TREE_PART + fastest().suffix, WORKDIR_PART + fastest().suffix)

    def refusal(self) -> str:
        """Why the task that runs cannot be dumped; "" when it can."""
        if self._dumper is None:
            return "criu is not installed"
        leader, pids = self._runner.leader, self._runner.pids()
        if leader not in pids:
            return "criu: the task does not run"
        if strays := self._runner.strays():
            return f"criu: {len(strays)} processes of the job are outside of the task's own tree"
        return self._dumper.refusal(pids)

    def capture(self, subject: Subject, outgoing: Outgoing, check: Check) -> None:
        """Dump the tree, which stops it, and read images and work directory.

        Raises:
            EngineRefused: the tree holds what cannot be dumped; it runs on.
        """
        images, work_dir = self.parts
        remove(self._images)
        try:
            with subject.dumped(self._dump, outgoing.room):
                with outgoing.part(images) as part:
                    pack(self._images, tree(self._images), part.write, check, codec=fastest())
                with outgoing.part(work_dir) as part:
                    pack(self._place.work_dir, self._place.entries(), part.write, check, codec=fastest())
        finally:
            remove(self._images)

    def committed(self, number: Optional[int]) -> None:
        """Every capture is whole: there is nothing to remember."""

    def restore(self, saved: Saved, check: Check) -> None:
        """Put the work directory in its place, and bring the tree back; it stands still until `take_leader`'s caller
        lets it go on.
        """
        parts = {prefix: p for prefix in (TREE_PART, WORKDIR_PART) for p in saved.parts if p.name.startswith(prefix)}
        if self._dumper is None or len(parts) != len(self.parts):
            raise ArchiveInvalid("criu is not installed" if self._dumper is None else "it lacks a part")
        remove(self._images)
        self._images.mkdir(mode=0o700)
        try:
            with self._place.fetched(parts[TREE_PART], check) as incoming:
                unpack(incoming, self._images, None, check)
                incoming.verify()
            self._place.replace_by(parts[WORKDIR_PART], check)
            self._leader = self._bring_back(self._dumper)
        finally:
            remove(self._images)

    def take_leader(self) -> Optional[int]:
        """The leader of the tree that the last restore brought back, once; None where it brought none."""
        leader, self._leader = self._leader, None
        return leader

    def _dump(self) -> None:
        leader = self._runner.leader
        if self._dumper is None or leader is None:
            raise EngineRefused("criu: the task does not run")
        try:
            self._dumper.dump(leader, self._images)
        except AgentError as error:
            raise EngineRefused(reason_of(error)) from error

    def _bring_back(self, dumper: Dumper) -> int:
        try:
            return dumper.restore(self._images, self._log)
        except AgentError as error:
            raise ArchiveInvalid(reason_of(error)) from error
