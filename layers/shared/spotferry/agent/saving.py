"""The `workdir` engine: the work directory into a checkpoint and back, and outputs out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from spotferry.agent.archive import Packed, pack, tree
from spotferry.agent.broker import Json
from spotferry.agent.clock import Check, Clock
from spotferry.agent.errors import AddressExpired, ArchiveInvalid, StepFailed, TransferFailed, reason_of
from spotferry.agent.outputs import matching
from spotferry.agent.plan import Part, Saved
from spotferry.agent.transfer import fetch
from spotferry.agent.unpack import unpack
from spotferry.agent.uploads import Upload, Uploader
from spotferry.agent.world import World, is_self_link

ENGINE = "workdir"
WORKDIR_PART = "workdir.tar.gz"
OUTPUTS_PART = "outputs.tar.gz"


class Saving:
    """Checkpoints, restores and outputs of one work directory.

    Args:
        world: whose work directory.
        work_dir: where it is.
        spool: directory for archives on their way.
        uploader: sends them.
        clock: to wait on.
    """

    def __init__(self, world: World, work_dir: Path, spool: Path, uploader: Uploader, clock: Clock) -> None:
        self._world = world
        self._work_dir = work_dir
        self._spool = spool
        self._uploader = uploader
        self._clock = clock

    def unpack_upload(self, part: Optional[Part], check: Check, *, fresh: bool) -> None:
        """Put the pristine upload, or an empty directory, in the work directory's place.

        Raises:
            AddressExpired: its address, which was not fresh, was refused.
            StepFailed: it cannot be had, or is damaged.
        """
        failures = (TransferFailed, ArchiveInvalid, OSError, *((AddressExpired,) if fresh else ()))
        try:
            if part is None:
                self._world.put_in_place(self._world.unpack_place(self._work_dir), self._work_dir, link=False)
            else:
                self._replace_by(part, check)
        except failures as error:
            raise StepFailed("startup_failed", {"reason": f"the work directory: {reason_of(error)}"}) from error

    def restore(self, saved: Tuple[Saved, ...], check: Check, *, fresh: bool) -> Tuple[int, str]:
        """Put the newest checkpoint that verifies in the work directory's place; its number, and why not a newer one.

        Args:
            saved: newest first.
            check: may raise to give up.
            fresh: the addresses were just made: one that is refused means that there is no such object.

        Raises:
            AddressExpired: an address that is not fresh was refused.
            StepFailed: none can be restored.
        """
        passed_over = (TransferFailed, ArchiveInvalid, OSError, *((AddressExpired,) if fresh else ()))
        why_not: List[str] = []
        for checkpoint in saved:
            try:
                self._restore(checkpoint, check)
            except passed_over as error:
                why_not.append(f"checkpoint {checkpoint.number}: {reason_of(error)}")
            else:
                return checkpoint.number, "; ".join(why_not)
        reason = "; ".join(why_not) or "there is no checkpoint to restore"
        raise StepFailed("startup_failed", {"reason": reason})

    def pack(self, check: Check) -> Packed:
        """The whole work directory as an archive.

        Raises:
            OSError: it could not be read or written.
        """
        return pack(self._work_dir, self._without_self_link(tree(self._work_dir)), self._spool / WORKDIR_PART, check)

    def commit(self, packed: Packed, reason: str, check: Check, exit_code: Optional[int] = None) -> int:
        """Send a packed work directory and make it a checkpoint; its number. The archive is deleted in any case.

        Args:
            packed: from `pack`.
            reason: of the checkpoint.
            check: may raise to give up.
            exit_code: of a task that is over, whose finished work directory this is.

        Raises:
            TransferFailed: nothing was committed.
        """
        details = {"engine": ENGINE, "reason": reason, "task_over": exit_code is not None, "exit_code": exit_code}
        answer = self._sent(Upload("checkpoint", WORKDIR_PART, packed, details), check)
        number = answer.get("number")
        if not isinstance(number, int):
            raise TransferFailed("the broker's answer names no checkpoint")
        return number

    def send_outputs(self, patterns: Tuple[str, ...], check: Check) -> None:
        """Send the files that the patterns name.

        Raises:
            TransferFailed, OSError, ValueError: nothing was committed.
        """
        paths = self._without_self_link(iter(matching(self._work_dir, patterns)))
        packed = pack(self._work_dir, paths, self._spool / OUTPUTS_PART, check, list_files=True)
        self._sent(Upload("outputs", OUTPUTS_PART, packed, {}), check)

    def _sent(self, upload: Upload, check: Check) -> Json:
        try:
            return self._uploader.send(upload, check)
        finally:
            upload.packed.path.unlink()

    def _restore(self, checkpoint: Saved, check: Check) -> None:
        part = next((part for part in checkpoint.parts if part.name == WORKDIR_PART), None)
        if checkpoint.engine != ENGINE or part is None:
            raise ArchiveInvalid(f"this agent cannot restore what engine {checkpoint.engine!r} made")
        self._replace_by(part, check)

    def _replace_by(self, part: Part, check: Check) -> None:
        archive = self._spool / "in.tar.gz"
        place = self._world.unpack_place(self._work_dir)
        try:
            fetch(part.url, part.size_bytes, part.sha256, archive, self._clock, check)
            unpack(archive, place, self._world.owner, check)
        finally:
            archive.unlink(missing_ok=True)
        self._world.put_in_place(place, self._work_dir, link=True)

    def _without_self_link(self, paths: Iterator[str]) -> Iterator[str]:
        """No archive holds the link that the agent made."""
        return (path for path in paths if not is_self_link(path, self._work_dir))
