"""Checkpoints, restores and outputs of one work directory, by whichever engine."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Tuple

from spotferry.agent.archive import pack
from spotferry.agent.broker import Json
from spotferry.agent.clock import Check, Clock
from spotferry.agent.engines import AUTO, CRIU, PATHS, WORKDIR, Engine, choose
from spotferry.agent.errors import (
    AddressExpired,
    ArchiveInvalid,
    CriuFailed,
    StepFailed,
    TransferFailed,
    Unreadable,
    reason_of,
)
from spotferry.agent.fingerprint import fingerprint
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Options, Part, Saved
from spotferry.agent.subject import Fate, Subject
from spotferry.agent.uploads import Uploader, told

OUTPUTS_PART = "outputs.tar.gz"

_NAME_PATHS = ", or name in checkpoint.paths what a checkpoint needs: then nothing else is read"
_INSTEAD = {
    WORKDIR: _NAME_PATHS,
    CRIU: _NAME_PATHS,
    PATHS: ", or name it neither in checkpoint.paths nor in outputs",
}
"""What helps against an entry that cannot be read, by engine, beside making it readable."""


class Saving:
    """What is saved of one job.

    Args:
        place: its work directory.
        engines: by name.
        refusals: why an engine cannot be used now; "" when it can; engines that always work need none.
        uploader: sends archives.
        clock: to measure with.
    """

    def __init__(
        self,
        place: WorkPlace,
        engines: Mapping[str, Engine],
        refusals: Mapping[str, Callable[[], str]],
        uploader: Uploader,
        clock: Clock,
    ) -> None:
        self._place = place
        self._engines = engines
        self._refusals = refusals
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
                self._place.empty()
            else:
                self._place.replace_by(part, check)
        except failures as error:
            raise StepFailed("startup_failed", {"reason": f"the work directory: {reason_of(error)}"}) from error

    def restore(self, saved: Tuple[Saved, ...], check: Check, *, fresh: bool) -> Tuple[int, str]:
        """Bring back the newest checkpoint that verifies; its number, and why not a newer one or not all of it.

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
                lacks = self._engine_of(checkpoint).restore(checkpoint, check)
            except passed_over as error:
                why_not.append(f"checkpoint {checkpoint.number}: {reason_of(error)}")
            else:
                why_not += [f"checkpoint {checkpoint.number}: {lacks}"] if lacks else []
                return checkpoint.number, "; ".join(why_not)
        reason = "; ".join(why_not) or "there is no checkpoint to restore"
        raise StepFailed("startup_failed", {"reason": reason})

    def checkpoint(self, subject: Subject, options: Options, began_at: float, check: Check) -> int:
        """Make a checkpoint and commit it; its number.

        Args:
            subject: the task; one that goes on is left alone until there is a place for its state.
            options: of the job.
            began_at: when it was decided, by the clock.
            check: may raise to give up.

        Raises:
            CriuFailed, TransferFailed, Unreadable, OSError, ValueError: nothing was committed.
        """
        name, why = choose(options, subject.wanted.fate, self._refusals)
        engine, number = self._engines[name], None
        try:
            with self._uploader.begin("checkpoint", engine.parts, check) as outgoing:
                if subject.wanted.fate is Fate.GOES_ON:
                    outgoing.open()
                try:
                    engine.capture(subject, outgoing, check)
                except CriuFailed as failed:
                    if options.engine != AUTO:
                        raise
                    name, why = WORKDIR, f"workdir: {failed}"  # its parts are among those of `criu`
                    self._engines[name].capture(subject, outgoing, check)
                outgoing.settle()
                details = self._details(name, why, subject, self._clock.monotonic() - began_at)
                number = _number(outgoing.commit(details, []))
        except Unreadable as unreadable:
            raise Unreadable(unreadable.path, unreadable.error, _INSTEAD[name]) from unreadable
        finally:
            engine.committed(number)
        return number

    def send_outputs(self, patterns: Tuple[str, ...], check: Check) -> None:
        """Send the files that the patterns name.

        Raises:
            TransferFailed, Unreadable, OSError, ValueError: nothing was committed.
        """
        try:
            paths, missed = self._place.matching(patterns)
            with self._uploader.begin("outputs", (OUTPUTS_PART,), check) as outgoing:
                with outgoing.part(OUTPUTS_PART) as part:
                    files = pack(self._place.work_dir, paths, part.write, check, list_files=True)
                outgoing.settle()
                outgoing.commit({"machine": fingerprint(), "missed": told(missed)}, files)
        except Unreadable as unreadable:
            raise Unreadable(unreadable.path, unreadable.error, ", or leave it out of outputs") from unreadable

    def _engine_of(self, checkpoint: Saved) -> Engine:
        if checkpoint.engine not in self._engines:
            raise ArchiveInvalid(f"this agent cannot restore what engine {checkpoint.engine!r} made")
        return self._engines[checkpoint.engine]

    def _details(self, engine: str, why: str, subject: Subject, seconds: float) -> Dict[str, object]:
        """What the commit says beside the bytes."""
        wanted = subject.wanted
        return {
            "engine": engine,
            "why": why,
            "reason": wanted.reason,
            "task_over": wanted.exit_code is not None,
            "exit_code": wanted.exit_code,
            "seconds": round(seconds, 3),
            "paused_seconds": round(subject.paused_seconds, 3),
            "machine": fingerprint(),
        }


def _number(answer: Json) -> int:
    number = answer.get("number")
    if not isinstance(number, int):
        raise TransferFailed("the broker's answer names no checkpoint")
    return number
