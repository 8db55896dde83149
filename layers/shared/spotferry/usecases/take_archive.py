"""Checkpoints and outputs come in: addresses first, then a commit that makes them count."""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from spotferry.domain import events as e
from spotferry.domain.ledger import CHUNK_BYTES
from spotferry.domain.owed import owed
from spotferry.domain.view import View
from spotferry.ports.cloud import ObjectStore
from spotferry.types.base import Json, Record
from spotferry.types.errors import Conflict, IllegalTransition, InvalidInput, Problem, StaleAttempt
from spotferry.types.events import CheckpointReason
from spotferry.types.instance import Attempt
from spotferry.types.job import ArchivePart, FileDigest, JobState, Manifest
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.hear_agent import HearAgent, LogChunk
from spotferry.usecases.keys import archive_prefix, manifest_key, part_key
from spotferry.usecases.word import PROTOCOL, SayWord

_CHUNKS = 500
"""Addresses handed out for one part: an answer of the function is limited to 6 MB, an address may take 2 KB."""

_LONGEST_CHUNK_BYTES = 5 * 1024**3
"""The bucket takes no longer one."""

_LARGEST_PART_BYTES = _CHUNKS * _LONGEST_CHUNK_BYTES

_TRIES = 6
"""Saves that may lose to somebody else's before the agent is told to repeat its commit."""

Kind = Literal["checkpoint", "outputs"]
_SHA256 = r"^[0-9a-f]{64}$"


class OfferedPart(Record):
    """A part that an agent wants to send."""

    name: str
    size_bytes: int = Field(ge=1, le=5 * 1024**4)
    sha256: str = Field(pattern=_SHA256)


class Addresses(Record):
    """What an agent wants to send: one archive in its parts."""

    kind: Kind
    parts: tuple[OfferedPart, ...] = Field(min_length=1, max_length=16)


class SentPart(OfferedPart):
    """A part that an agent has sent: the upload's id and the ETag of each chunk, in order."""

    upload_id: str
    etags: tuple[str, ...]


class Commit(Record):
    """What makes an archive count."""

    kind: Kind
    nonce: str
    parts: tuple[SentPart, ...] = Field(min_length=1, max_length=16)
    engine: str = ""
    reason: CheckpointReason | None = None
    task_over: bool = False
    exit_code: int | None = Field(default=None, ge=0, le=255)
    machine: Mapping[str, str] = {}
    files: tuple[FileDigest, ...] = Field(default=(), max_length=100_000)
    files_complete: bool = True
    log: LogChunk | None = None

    @model_validator(mode="after")
    def _is_of_one_piece(self) -> Self:
        if self.task_over and self.exit_code is None:
            raise ValueError("exit_code must be said with task_over")
        if len({part.name for part in self.parts}) != len(self.parts):
            raise ValueError("parts must have names of their own")
        return self


@dataclass(frozen=True, slots=True)
class TakeArchive:
    """Two phases: nothing counts before its manifest is written, and the pointer moves last."""

    change: ChangeJob
    say: SayWord
    hear: HearAgent
    objects: ObjectStore

    def addresses(self, attempt: Attempt, wanted: Addresses) -> Json:
        """Where each part goes, chunk by chunk; every call begins a new upload of its own.

        Raises:
            StaleAttempt: the attempt does not own the job.
            InvalidInput: a part is larger than what can be stored, or its name is none.
        """
        self._check_owner(attempt, self.change.store.load(attempt.job_id, attempt.cedana_id))
        _check_sizes(wanted.parts)
        nonce = secrets.token_hex(16)
        prefix = archive_prefix(wanted.kind, attempt.job_id, attempt.epoch, nonce)
        return {
            "protocol": PROTOCOL,
            "nonce": nonce,
            "parts": [self._address(prefix, part) for part in wanted.parts],
            "expires_seconds": self.say.pace.address_expiry.total_seconds(),
        }

    def _address(self, prefix: str, part: OfferedPart) -> Json:
        key = part_key(prefix, part.name)
        chunk = max(CHUNK_BYTES, -(-part.size_bytes // _CHUNKS))
        upload_id = self.objects.begin_multipart(key)
        count = -(-part.size_bytes // chunk)
        urls = self.objects.urls_to_put_chunks(key, upload_id, count, self.say.pace.address_expiry)
        return {"name": part.name, "upload_id": upload_id, "chunk_bytes": chunk, "urls": list(urls)}

    def commit(self, attempt: Attempt, commit: Commit) -> Json:
        """Make the archive count; a repeat answers the same. What is refused is given up: its chunks are kept no
        longer.

        Raises:
            StaleAttempt: the attempt does not own the job.
            InvalidInput: a part is not there as said; the one before stays in force.
        """
        try:
            return self._commit(attempt, commit)
        except (StaleAttempt, InvalidInput):
            self._give_up(attempt, commit)
            raise

    def _commit(self, attempt: Attempt, commit: Commit) -> Json:
        view = self.change.store.load(attempt.job_id, attempt.cedana_id)
        offset = self.hear.keep_log(attempt, commit.log)
        prefix = archive_prefix(commit.kind, attempt.job_id, attempt.epoch, commit.nonce)
        number = self._recorded(view, manifest_key(prefix))
        if number is None:
            self._check_owner(attempt, view)
            if commit.kind == "outputs" and view.job.state is not JobState.FINALIZING:
                raise IllegalTransition(view.job.state, "outputs_committed")
            self._complete(prefix, commit.parts)
            view, number = self._record(attempt, commit, prefix)
        else:
            self._perform(view)
        word = self.say(view, attempt.cedana_id, "", offset)
        return word | ({"number": number} if commit.kind == "checkpoint" else {})

    def _perform(self, view: View) -> None:
        """Whoever saved this archive may have been lost before it sent what is owed because of it."""
        self.change.queue.send(owed(view), self.change.clock())

    def _give_up(self, attempt: Attempt, commit: Commit) -> None:
        with suppress(InvalidInput):  # a place that the broker did not name: nothing was sent there
            prefix = archive_prefix(commit.kind, attempt.job_id, attempt.epoch, commit.nonce)
            for part in commit.parts:
                self.objects.abort_multipart(part_key(prefix, part.name), part.upload_id)

    def _check_owner(self, attempt: Attempt, view: View) -> None:
        if view.job.state.is_final or view.job.owner_id != attempt.cedana_id:
            raise StaleAttempt(f"attempt {attempt.cedana_id} does not own job {attempt.job_id}")

    def _recorded(self, view: View, key: str) -> int | None:
        """The number under which this archive counts already; 0 for outputs."""
        if view.job.outputs_key == key:
            return 0
        known = self.change.store.checkpoints(view.job.job_id) if view.job.checkpoint else ()
        return next((c.number for c in known if c.manifest_key == key), None)

    def _complete(self, prefix: str, parts: Sequence[SentPart]) -> None:
        for part in parts:
            key = part_key(prefix, part.name)
            self.objects.complete_multipart(key, part.upload_id, part.etags)
            size = self.objects.head(key)
            if size != part.size_bytes:
                raise InvalidInput([Problem("parts.size_bytes", f"{part.name}: {part.size_bytes} said, {size} came")])

    def _record(self, attempt: Attempt, commit: Commit, prefix: str) -> tuple[View, int]:
        """Write the manifest, then move the pointer; numbered anew when somebody saved in between."""
        key = manifest_key(prefix)
        for _ in range(_TRIES):
            view = self.change.store.load(attempt.job_id, attempt.cedana_id)
            number = self._recorded(view, key)
            if number is not None:  # the same commit, sent twice, was faster
                self._perform(view)
                return view, number
            self._check_owner(attempt, view)
            manifest = self._manifest(attempt, commit, prefix, view)
            self.objects.put(key, manifest.model_dump_json().encode(), "application/json")
            try:
                return self.change.on(view, _event(attempt, manifest, key)), manifest.number
            except Conflict:
                continue
        raise Conflict(f"job {attempt.job_id} was saved by others {_TRIES} times meanwhile: commit again")

    def _manifest(self, attempt: Attempt, commit: Commit, prefix: str, view: View) -> Manifest:
        is_checkpoint = commit.kind == "checkpoint"
        return Manifest(
            kind=commit.kind,
            job_id=attempt.job_id,
            number=view.job.checkpoint + 1 if is_checkpoint else 0,
            epoch=attempt.epoch,
            engine=commit.engine,
            reason=commit.reason,
            created_at=self.change.clock(),
            parts=tuple(
                ArchivePart(name=p.name, key=part_key(prefix, p.name), size_bytes=p.size_bytes, sha256=p.sha256)
                for p in commit.parts
            ),
            task_over=commit.task_over,
            exit_code=commit.exit_code,
            files=commit.files,
            files_complete=commit.files_complete,
            machine=commit.machine,
        )


def _check_sizes(parts: Sequence[OfferedPart]) -> None:
    for part in parts:
        if part.size_bytes > _LARGEST_PART_BYTES:
            message = f"{part.name} has {part.size_bytes} bytes, and at most {_LARGEST_PART_BYTES} can be stored in one"
            raise InvalidInput([Problem("parts.size_bytes", f"{message}: keep less in the work directory")])


def _event(attempt: Attempt, manifest: Manifest, key: str) -> e.Event:
    if manifest.kind == "checkpoint":
        return e.CheckpointCommitted(attempt.cedana_id, manifest, key)
    size = sum(file.size_bytes for file in manifest.files)
    return e.OutputsCommitted(attempt.cedana_id, key, len(manifest.files), size)
