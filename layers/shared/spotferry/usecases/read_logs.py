"""What a job printed, attempt after attempt."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from spotferry.ports.cloud import Clock, ObjectStore
from spotferry.ports.store import JobStore
from spotferry.types.base import Json
from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.job import Job
from spotferry.usecases.keys import log_key, log_prefix

_PAGE_BYTES = 2 * 1024 * 1024
"""Text of one answer; a function's answer is limited to 6 MB, and JSON may need two bytes for one."""

_PAGE_PIECES = 100
_WATCH = timedelta(seconds=30)
_POSITION = re.compile(r"(\d{1,6})\.(\d{1,15})\.(\d{1,15})")
_POSITIONS = 64
"""Attempts that a cursor may name: two print at a time, the rest are read through one after the other."""


@dataclass(frozen=True, slots=True)
class Position:
    """Behind one piece of an attempt's log: the attempt, and where the piece begins and ends."""

    epoch: int
    begin: int = 0
    end: int = 0

    def __str__(self) -> str:
        """As a cursor writes it."""
        return f"{self.epoch}.{self.begin}.{self.end}"

    @classmethod
    def of_key(cls, key: str) -> "Position":
        """The position behind the piece that is stored under this key."""
        epoch, span = key.rsplit("/", 2)[1:]
        begin, end = span.split("-")
        return cls(int(epoch), int(begin), int(end))


def parse_cursor(cursor: str) -> dict[int, Position]:
    """The positions in a cursor, by attempt; of attempts below the lowest one everything was read.

    Raises:
        InvalidInput: the cursor is not one of ours.
    """
    if not cursor:
        return {}
    said = [_POSITION.fullmatch(part) for part in cursor.split(",")[: _POSITIONS + 1]]
    found = [Position(*(int(number) for number in match.groups())) for match in said if match]
    if len(found) != len(said) or len(found) > _POSITIONS:
        raise InvalidInput([Problem("cursor", "is not one that an answer before gave")])
    return {position.epoch: position for position in found}


@dataclass(frozen=True, slots=True)
class ReadLogs:
    """Reads the log in pieces, each byte of an attempt once, whatever was sent twice.

    At a handover two attempts print at the same time, so the cursor keeps a position for each attempt that still may.
    """

    store: JobStore
    objects: ObjectStore
    clock: Clock

    def __call__(self, job_id: str, cursor: str = "", *, follow: bool = False) -> Json:
        """The text after the cursor, and the cursor after it.

        Args:
            job_id: the job.
            cursor: of the answer before; "" for the beginning.
            follow: ask the machine for its log at once, for a while.

        Returns:
            `chunks` (epoch, offset, text), `cursor`, `more` (ask again at once), `finished` (nothing more will come),
            and the job's `state` with its `reason`.

        Raises:
            NotFound: there is no such job.
            InvalidInput: the cursor is not one of ours.
        """
        known = parse_cursor(cursor)
        job = self.store.get_job(job_id)
        if follow and not job.state.is_final:
            self._watch(job_id)
        chunks: list[Json] = []
        left: list[Position] = []
        room, more = _PAGE_BYTES, False
        for epoch in range(min(known, default=1), job.epoch + 1):
            at, unread = known.get(epoch, Position(epoch)), room <= 0
            if not unread:
                read, at, unread = self._read(job_id, at, room)
                chunks += read
                room -= sum(len(chunk["text"]) for chunk in read)
            more |= unread
            if left or unread or epoch == job.epoch or not _is_closed(job, epoch):
                left.append(at)
        finished = job.state.is_final and not more
        return {
            "chunks": chunks,
            "cursor": ",".join(map(str, left)),
            "more": more,
            "finished": finished,
            "state": job.state.value,
            "reason": job.reason,
        }

    def _read(self, job_id: str, at: Position, room: int) -> tuple[list[Json], Position, bool]:
        """The pieces of one attempt behind a position, the position behind them, and whether there are more."""
        chunks: list[Json] = []
        for piece in self._new(job_id, at):
            if len(chunks) == _PAGE_PIECES or (chunks and room < piece.end - at.end):
                return chunks, at, True
            begin = max(at.end, piece.begin)
            body = self.objects.get(log_key(job_id, piece.epoch, piece.begin, piece.end))
            text = body[begin - piece.begin :].decode(errors="replace")
            chunks.append({"epoch": piece.epoch, "offset": begin, "text": text})
            room -= piece.end - begin
            at = piece
        return chunks, at, False

    def _new(self, job_id: str, at: Position) -> Iterator[Position]:
        """The pieces that reach further than all before them."""
        prefix = f"{log_prefix(job_id)}{at.epoch:06}/"
        after, end = log_key(job_id, at.epoch, at.begin, at.end), at.end
        while keys := [key for key, _ in self.objects.keys(prefix, after, _PAGE_PIECES)]:
            for piece in map(Position.of_key, keys):
                if piece.end > end:
                    end = piece.end
                    yield piece
            if len(keys) < _PAGE_PIECES:
                return
            after = keys[-1]

    def _watch(self, job_id: str) -> None:
        until = self.store.watched_until(job_id)
        now = self.clock()
        if until is None or until < now + _WATCH / 2:
            self.store.watch_job(job_id, now + _WATCH)


def _is_closed(job: Job, epoch: int) -> bool:
    """The attempt's machine is gone, so it prints no more."""
    ids = job.get_instance_ids()
    return epoch <= len(ids) and ids[epoch - 1].instance_id not in job.open_attempts
