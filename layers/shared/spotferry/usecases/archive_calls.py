"""What agents say when they send archives: the calls of docs/agent-protocol.md, read and checked."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from spotferry.types.base import Record, Sha256
from spotferry.types.events import CheckpointReason
from spotferry.types.job import FileDigest
from spotferry.usecases.hear_agent import LogChunk

Kind = Literal["checkpoint", "outputs"]

_MOST_PARTS = 32
_MOST_CHUNKS = 10_000
"""The bucket takes no more of one object."""

_LARGEST_BYTES = 5 * 1024**4


class OfferedPart(Record):
    """A part that an agent wants to send; its size and digest are not known while it is still being made."""

    name: str
    size_bytes: int | None = Field(default=None, ge=1, le=_LARGEST_BYTES)
    sha256: Sha256 | None = None


class Addresses(Record):
    """What an agent wants to send: one archive in its parts."""

    kind: Kind
    parts: tuple[OfferedPart, ...] = Field(min_length=1, max_length=_MOST_PARTS)


class MoreAddresses(Record):
    """Where the next chunks of a part go, or the same ones again when their addresses have grown old."""

    kind: Kind
    nonce: str
    name: str
    upload_id: str = Field(min_length=1)
    from_chunk: int = Field(ge=0, lt=_MOST_CHUNKS)


class SentPart(Record):
    """A part of a commit: sent, with the upload's id and the ETag of each chunk in order; or kept from an earlier
    checkpoint.

    Attributes:
        same_as: number of the checkpoint that has this part already; None: it was sent.
    """

    name: str
    size_bytes: int = Field(ge=1, le=_LARGEST_BYTES)
    sha256: Sha256
    upload_id: str = ""
    etags: tuple[str, ...] = Field(default=(), max_length=_MOST_CHUNKS)
    same_as: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _is_sent_or_kept(self) -> Self:
        if (self.same_as is None) != bool(self.upload_id):
            raise ValueError("upload_id must be said, or same_as, and not both")
        return self


class Commit(Record):
    """What makes an archive count.

    Attributes:
        missed: patterns of the outputs that name nothing; an older agent says none.
    """

    kind: Kind
    nonce: str
    parts: tuple[SentPart, ...] = Field(min_length=1, max_length=_MOST_PARTS)
    engine: str = ""
    why: str = Field(default="", max_length=1000)
    reason: CheckpointReason | None = None
    task_over: bool = False
    exit_code: int | None = Field(default=None, ge=0, le=255)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    paused_seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    machine: Mapping[str, str] = {}
    files: tuple[FileDigest, ...] = Field(default=(), max_length=100_000)
    files_complete: bool = True
    missed: tuple[str, ...] = Field(default=(), max_length=100)
    log: LogChunk | None = None

    @model_validator(mode="after")
    def _is_of_one_piece(self) -> Self:
        if self.task_over and self.exit_code is None:
            raise ValueError("exit_code must be said with task_over")
        if len({part.name for part in self.parts}) != len(self.parts):
            raise ValueError("parts must have names of their own")
        if self.kind == "outputs" and any(part.same_as for part in self.parts):
            raise ValueError("outputs are sent whole: same_as is for checkpoints")
        return self
