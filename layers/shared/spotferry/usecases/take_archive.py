"""Checkpoints and outputs come in: addresses first, then a commit that makes them count."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from spotferry.domain import events as e
from spotferry.domain.owed import owed
from spotferry.domain.view import View
from spotferry.ports.cloud import ObjectStore
from spotferry.types.base import Json
from spotferry.types.errors import Conflict, IllegalTransition, InvalidInput, StaleAttempt, wrong
from spotferry.types.instance import Attempt
from spotferry.types.job import ArchivePart, JobState, Manifest
from spotferry.usecases.archive_calls import Addresses, Commit, MoreAddresses, OfferedPart, SentPart
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.hear_agent import HearAgent
from spotferry.usecases.keys import archive_prefix, begun_later, manifest_key, new_nonce, part_key
from spotferry.usecases.prune_checkpoints import PruneCheckpoints
from spotferry.usecases.word import PROTOCOL, SayWord

_MIB = 1024**2

CHUNKS: Sequence[tuple[int, int]] = (
    (1000, 8 * _MIB),
    (2000, 32 * _MIB),
    (3000, 128 * _MIB),
    (4000, 512 * _MIB),
)
"""How an archive is cut whose size is not known: so many chunks of so many bytes, then the next step.

Short ones first, so that an agent holds a few in its memory; longer ones later, since the bucket takes at most 10,000.
Together they are 2,445 GiB.
"""

FIRST_ADDRESSES = 16
NEXT_ADDRESSES = 64
"""Addresses handed out at a time: each may take 2 KB, and few archives need many."""

_VERIFIED_BYTES = 8 * _MIB
"""A part that is not longer is read and its digest checked; of a longer one the bucket compares the digest of each
chunk (its ETag) with what the commit says."""
_CHUNKS = 500
"""Addresses handed out for one part: an answer of the function is limited to 6 MB, an address may take 2 KB."""

_WHOLE_CHUNK_BYTES = 64 * _MIB
"""How an archive is cut whose size is known before: by an agent that has it on its disk, as older ones do."""

_LONGEST_CHUNK_BYTES = 5 * 1024**3
"""The bucket takes no longer one."""

_LARGEST_PART_BYTES = _CHUNKS * _LONGEST_CHUNK_BYTES

_TRIES = 6
"""Saves that may lose to somebody else's before the agent is told to repeat its commit."""


@dataclass(frozen=True, slots=True)
class TakeArchive:
    """Two phases: nothing counts before its manifest is written, and the pointer moves last."""

    change: ChangeJob
    say: SayWord
    hear: HearAgent
    objects: ObjectStore
    prune: PruneCheckpoints

    def addresses(self, attempt: Attempt, wanted: Addresses) -> Json:
        """Where each part goes, chunk by chunk; every call begins a new upload of its own.

        Raises:
            StaleAttempt: the attempt does not own the job.
            InvalidInput: a part is larger than what can be stored, or its name is none.
        """
        self._check_owns(attempt)
        _check_sizes(wanted.parts)
        nonce = new_nonce(self.change.clock())
        prefix = archive_prefix(wanted.kind, attempt.job_id, attempt.epoch, nonce)
        return {
            "protocol": PROTOCOL,
            "nonce": nonce,
            "parts": [self._address(prefix, part) for part in wanted.parts],
            "expires_seconds": self.say.pace.address_expiry.total_seconds(),
        }

    def more_addresses(self, attempt: Attempt, wanted: MoreAddresses) -> Json:
        """Where the chunks from a number on go.

        Raises:
            StaleAttempt: the attempt does not own the job.
            InvalidInput: nonce or name are none that the broker gave out.
        """
        self._check_owns(attempt)
        key = part_key(archive_prefix(wanted.kind, attempt.job_id, attempt.epoch, wanted.nonce), wanted.name)
        return {
            "protocol": PROTOCOL,
            **self._urls(key, wanted.upload_id, wanted.from_chunk, NEXT_ADDRESSES),
            "expires_seconds": self.say.pace.address_expiry.total_seconds(),
        }

    def _address(self, prefix: str, part: OfferedPart) -> Json:
        key = part_key(prefix, part.name)
        upload_id = self.objects.begin_multipart(key)
        told: Json = {"name": part.name, "upload_id": upload_id}
        if part.size_bytes is None:
            ladder = [{"count": count, "bytes": size} for count, size in CHUNKS]
            return told | {"chunks": ladder, **self._urls(key, upload_id, 0, FIRST_ADDRESSES)}
        chunk = max(_WHOLE_CHUNK_BYTES, -(-part.size_bytes // _CHUNKS))
        return told | {"chunk_bytes": chunk, **self._urls(key, upload_id, 0, -(-part.size_bytes // chunk))}

    def _urls(self, key: str, upload_id: str, first: int, count: int) -> Json:
        count = min(count, sum(steps for steps, _ in CHUNKS) - first)
        urls = self.objects.urls_to_put_chunks(key, upload_id, count, self.say.pace.address_expiry, first=first + 1)
        return {"first_chunk": first, "urls": list(urls)}

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
            leftovers = self.prune.leftovers(attempt.job_id, commit.kind)
            parts = self._complete(view, prefix, commit.parts)
            view, number = self._record(attempt, commit, prefix, parts)
            self.prune(view.job, commit.kind, leftovers)
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
            view = self.change.store.load(attempt.job_id, attempt.cedana_id)
            if self._recorded(view, manifest_key(prefix)) is not None:
                return  # it counts: only its repeat was refused
            sent = {part_key(prefix, part.name): part.upload_id for part in commit.parts if part.upload_id}
            for key, upload_id in sent.items():
                self.objects.abort_multipart(key, upload_id)
            if commit.kind == "checkpoint":
                self.objects.delete(list(sent))

    def _check_owns(self, attempt: Attempt) -> None:
        self._check_owner(attempt, self.change.store.load(attempt.job_id, attempt.cedana_id))

    def _check_owner(self, attempt: Attempt, view: View) -> None:
        if view.job.state.is_final or view.job.owner_id != attempt.cedana_id:
            raise StaleAttempt(f"attempt {attempt.cedana_id} does not own job {attempt.job_id}")

    def _recorded(self, view: View, key: str) -> int | None:
        """The number under which this archive counts already; 0 for outputs."""
        if view.job.outputs_key == key:
            return 0
        known = self.change.store.checkpoints(view.job.job_id) if view.job.checkpoint else ()
        return next((c.number for c in known if c.manifest_key == key), None)

    def _complete(self, view: View, prefix: str, parts: Sequence[SentPart]) -> tuple[ArchivePart, ...]:
        """See that every part is there as said, those first that earlier checkpoints should have: they cost nothing."""
        kept = {part.name: self._kept(view, part) for part in parts if part.same_as is not None}
        return tuple(kept[part.name] if part.name in kept else self._sent(prefix, part) for part in parts)

    def _kept(self, view: View, part: SentPart) -> ArchivePart:
        """A part that an earlier checkpoint of the same job has."""
        known = (c for c in self.change.store.checkpoints(view.job.job_id) if c.number == part.same_as)
        checkpoint = next((c for c in known if c.pruned_at is None), None)
        same = next((p for p in checkpoint.manifest.parts if p.name == part.name), None) if checkpoint else None
        if same is None or (same.sha256, same.size_bytes) != (part.sha256, part.size_bytes):
            raise wrong("parts.same_as", f"checkpoint {part.same_as} of this job has no such part {part.name}")
        if self.objects.head(same.key) != same.size_bytes:
            raise wrong("parts.same_as", f"{part.name} of checkpoint {part.same_as} left the bucket: send it")
        return same.model_copy(update={"same_as": part.same_as})

    def _sent(self, prefix: str, part: SentPart) -> ArchivePart:
        """A part that was sent: the bucket makes it of its chunks, if they are those of the ETags."""
        key = part_key(prefix, part.name)
        self.objects.complete_multipart(key, part.upload_id, part.etags)
        size = self.objects.head(key)
        if size != part.size_bytes:
            raise wrong("parts.size_bytes", f"{part.name}: {part.size_bytes} said, {size} came")
        if size <= _VERIFIED_BYTES and hashlib.sha256(self.objects.get(key)).hexdigest() != part.sha256:
            raise wrong("parts.sha256", f"{part.name}: what came has another digest")
        return ArchivePart(name=part.name, key=key, size_bytes=part.size_bytes, sha256=part.sha256)

    def _record(
        self, attempt: Attempt, commit: Commit, prefix: str, parts: tuple[ArchivePart, ...]
    ) -> tuple[View, int]:
        """Write the manifest, then move the pointer; numbered anew when somebody saved in between."""
        key = manifest_key(prefix)
        for _ in range(_TRIES):
            view = self.change.store.load(attempt.job_id, attempt.cedana_id)
            number = self._recorded(view, key)
            if number is not None:  # the same commit, sent twice, was faster
                self._perform(view)
                return view, number
            self._check_owner(attempt, view)
            if commit.kind == "checkpoint":
                self._check_newest(attempt, key)
            manifest = self._manifest(attempt, commit, parts, view)
            self.objects.put(key, manifest.model_dump_json().encode(), "application/json")
            try:
                return self.change.on(view, _event(attempt, manifest, key)), manifest.number
            except Conflict:
                continue
        raise Conflict(f"job {attempt.job_id} was saved by others {_TRIES} times meanwhile: commit again")

    def _check_newest(self, attempt: Attempt, key: str) -> None:
        """What was on its way for so long that a later checkpoint overtook it holds less work than that one."""
        newest = next(iter(self.change.store.checkpoints(attempt.job_id)), None)
        if newest is not None and begun_later(newest.manifest_key, key, self.change.clock()):
            raise wrong("nonce", f"checkpoint {newest.number}, which was begun later, counts already")

    def _manifest(self, attempt: Attempt, commit: Commit, parts: tuple[ArchivePart, ...], view: View) -> Manifest:
        is_checkpoint = commit.kind == "checkpoint"
        return Manifest(
            kind=commit.kind,
            job_id=attempt.job_id,
            number=view.job.checkpoint + 1 if is_checkpoint else 0,
            epoch=attempt.epoch,
            engine=commit.engine,
            reason=commit.reason,
            created_at=self.change.clock(),
            parts=parts,
            task_over=commit.task_over,
            exit_code=commit.exit_code,
            files=commit.files,
            files_complete=commit.files_complete,
            missed=commit.missed,
            machine=commit.machine,
            why=commit.why,
            seconds=commit.seconds,
            paused_seconds=commit.paused_seconds,
        )


def _check_sizes(parts: Sequence[OfferedPart]) -> None:
    for part in parts:
        if part.size_bytes is not None and part.size_bytes > _LARGEST_PART_BYTES:
            message = f"{part.name} has {part.size_bytes} bytes, and at most {_LARGEST_PART_BYTES} can be stored in one"
            raise wrong("parts.size_bytes", f"{message}: keep less in the work directory")


def _event(attempt: Attempt, manifest: Manifest, key: str) -> e.Event:
    if manifest.kind == "checkpoint":
        return e.CheckpointCommitted(attempt.cedana_id, manifest, key)
    size = sum(file.size_bytes for file in manifest.files)
    return e.OutputsCommitted(attempt.cedana_id, key, len(manifest.files), size, manifest.missed)
