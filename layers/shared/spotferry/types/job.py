"""Jobs: the record, its history, its checkpoints."""

import json
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from spotferry.types.base import RECORD_VERSION, Money, Record, Sha256, Time, Value
from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.events import CheckpointReason
from spotferry.types.instance import SerializedInstance
from spotferry.types.job_file import JobFile


class JobState(StrEnum):
    """Where a job is; docs/architecture.md draws the moves between them."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    SETTING_UP = "SETTING_UP"
    RUNNING = "RUNNING"
    INTERRUPTED = "INTERRUPTED"
    FINALIZING = "FINALIZING"
    CANCELLING = "CANCELLING"
    SETUP_FAILED = "SETUP_FAILED"
    STARTUP_FAILED = "STARTUP_FAILED"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_final(self) -> bool:
        """The job never moves again."""
        return self in FINAL_STATES


FINAL_STATES = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})
HOLD_STATES = frozenset({JobState.SETUP_FAILED, JobState.STARTUP_FAILED})

_REFERENCES = TypeAdapter(list[SerializedInstance], config=ConfigDict(defer_build=True))


class Upload(Value):
    """A packed work directory in the bucket, named by its content.

    Attributes:
        sha256: digest of the archive, hex.
        size_bytes: its size.
    """

    sha256: Sha256
    size_bytes: int = Field(ge=1, strict=True)


class Job(Record):
    """One job: the seed's fields, and what the broker needs to run it.

    Attributes:
        job_id: its id.
        job_file_path: path of the job file as the person gave it.
        instances: all its attempts' ids, as the seed's JSON text; `get_instance_ids` reads it.
        state: where it is.
        checkpointed: it has a checkpoint that can be restored.
        last_checkpointed_at: when that was committed.
        bucket: where its archives are.
        revision: number of the last save; the version that a save is conditional on, and the key of its timeline entry.
        owner: who submitted it; "local" where nobody authenticates.
        body_sha256: digest of the submitted body, to tell a repeat from a conflict.
        spec: the job file.
        upload: its work directory; None without one.
        epoch: number of the last attempt, 0 before the first.
        owner_id: the attempt that owns it now; None when none does.
        successor_id: the attempt that waits to own it; None when none does.
        open_attempts: attempts whose machine is not known to be gone; a final job is settled when there is none.
        reason: why it is where it is, for people.
        exit_code: the task's exit status once it ended; None before.
        final_checkpoint: a checkpoint was committed after the task ended, so that outputs can be sent from it.
        checkpoint: number of the last good checkpoint, 0 for none.
        outputs_key: where the manifest of its outputs is, "" until they are sent.
        interruptions: machines lost to the cloud.
        startup_failures: machines in a row that never said hello.
        lost: machines in a row that ended without the cloud taking them back, since the last checkpoint.
        next_try_at: before this nothing is placed; tries counts the fruitless ones in a row.
        deadline: when a hold or a cancel runs out.
        parent_job_id: the job that this one repeats or goes on from, "" for none.
        restored_from: number of the parent's checkpoint that it began from, 0 for none; its own are numbered on.
        checkpoint_wanted: number of the checkpoint that somebody asked for; it stands until the job has that many, or
            one failed. 0: none is asked for.
        last_checkpoint_seconds: what the last checkpoint took from the decision to its commit; None: not known.
        last_checkpoint_paused_seconds: how long the task stood still for it; None: not known.
        started_at: when its task first started.
        run_began_at: when its task last started.
        restarts: how often the task was started again after it had failed by itself.
        restart_pause_seconds: how long the last restart waits, or waited; 0 before the first.
        spent_usd: what its machines that are gone have cost, with their disks.
        limit: the limit that ends it, in words; "" for none.
    """

    version: int = RECORD_VERSION
    id: int = Field(default=0, alias="ID")
    created_at: Time | None = Field(default=None, alias="CreatedAt")
    updated_at: Time | None = Field(default=None, alias="UpdatedAt")
    deleted_at: Time | None = Field(default=None, alias="DeletedAt")
    job_id: str = ""
    job_file_path: str = ""
    instances: str = ""
    state: JobState = JobState.PENDING
    checkpointed: bool = False
    last_checkpointed_at: Time | None = None
    bucket: str = ""
    revision: int = 0
    owner: str = ""
    body_sha256: str = ""
    spec: JobFile = Field(default_factory=JobFile)
    upload: Upload | None = None
    epoch: int = 0
    owner_id: str | None = None
    successor_id: str | None = None
    open_attempts: tuple[str, ...] = ()
    reason: str = ""
    exit_code: int | None = None
    final_checkpoint: bool = False
    checkpoint: int = 0
    outputs_key: str = ""
    interruptions: int = 0
    startup_failures: int = 0
    lost: int = 0
    next_try_at: Time | None = None
    tries: int = 0
    deadline: Time | None = None
    parent_job_id: str = ""
    restored_from: int = 0
    checkpoint_wanted: int = 0
    last_checkpoint_seconds: float | None = None
    last_checkpoint_paused_seconds: float | None = None
    started_at: Time | None = None
    run_began_at: Time | None = None
    restarts: int = 0
    restart_pause_seconds: int = 0
    spent_usd: Money = Decimal(0)
    limit: str = ""

    @property
    def is_settled(self) -> bool:
        """Final, and none of its machines is left."""
        return self.state.is_final and not self.open_attempts

    @property
    def wants_checkpoint(self) -> bool:
        """Somebody asked for a checkpoint that is not there yet."""
        return self.checkpoint_wanted > self.checkpoint

    def get_instance_ids(self) -> list[SerializedInstance]:
        """The attempts' ids, oldest first.

        Raises:
            InvalidInput: the text is not the seed's JSON.
        """
        if not self.instances:
            return []
        try:
            return _REFERENCES.validate_json(self.instances)
        except ValidationError as error:
            raise InvalidInput([Problem("instances", "is not a list of instance references")]) from error

    def append_instance(self, instance_id: str) -> Self:
        """The job with one more attempt in its list."""
        ids = [*self.get_instance_ids(), SerializedInstance(instance_id=instance_id)]
        text = json.dumps([i.model_dump() for i in ids], separators=(",", ":"))
        return self.model_copy(update={"instances": text})


class TimelineEntry(Record):
    """One change of a job: its key is the job's revision, written in the same transaction.

    Attributes:
        job_id: the job.
        revision: the job's revision after the change.
        at: when.
        event: name of the event that caused it.
        from_state, to_state: where the job was and is.
        instance_id: the attempt it was about, "" for none.
        message: the change in words that a user understands.
        data: figures for programs (prices, exit codes, the plan).
    """

    version: int = RECORD_VERSION
    job_id: str
    revision: int
    at: Time
    event: str
    from_state: str
    to_state: str
    instance_id: str = ""
    message: str = ""
    data: Mapping[str, Any] = {}  # Any: JSON, by event


class ArchivePart(Value):
    """One object of an archive in the bucket.

    Attributes:
        name: what it holds ("workdir.tar.gz").
        key: where it is in the bucket.
        size_bytes: its size.
        sha256: digest of its bytes, hex.
        same_as: number of the checkpoint from which it was taken over; None: it was sent for this archive.
    """

    name: str
    key: str
    size_bytes: int = Field(ge=0)
    sha256: Sha256
    same_as: int | None = None


class FileDigest(Value):
    """One file of a job's outputs: path below the work directory, size, digest."""

    path: str
    size_bytes: int = Field(ge=0)
    sha256: Sha256


class Manifest(Record):
    """What a checkpoint or the outputs consist of; written after the bytes, so what it names is whole.

    Attributes:
        kind: "checkpoint" or "outputs".
        number: of the checkpoint, from 1; 0 for outputs.
        engine: how it was made ("workdir", "paths", "criu"); "" for outputs.
        task_over: the task had ended when it was made; then exit_code is its status.
        files: the outputs' files; empty for a checkpoint.
        files_complete: there are no files in the outputs that `files` does not list.
        missed: patterns of the outputs that name nothing.
        machine: what it was made on (arch, kernel), for engines that care.
        why: why this engine made it, for people.
        seconds: what it took from the decision to the commit; None: not said.
        paused_seconds: how long the task stood still for it; None: not said.
    """

    version: int = RECORD_VERSION
    kind: str
    job_id: str
    number: int
    epoch: int
    engine: str = ""
    reason: CheckpointReason | None = None
    created_at: Time
    parts: tuple[ArchivePart, ...]
    task_over: bool = False
    exit_code: int | None = None
    files: tuple[FileDigest, ...] = ()
    files_complete: bool = True
    missed: tuple[str, ...] = ()
    machine: Mapping[str, str] = {}
    why: str = ""
    seconds: float | None = None
    paused_seconds: float | None = None


class Checkpoint(Record):
    """The stored record of a committed checkpoint: table Checkpoints, key (job_id, number).

    Attributes:
        asked_for: it is what the job was asked for; its reason is that of a periodic one.
        pruned_at: when its objects left the bucket, since newer ones are kept; None: it can be restored.
    """

    version: int = RECORD_VERSION
    job_id: str
    number: int
    manifest_key: str
    manifest: Manifest
    instance_id: str
    committed_at: Time
    asked_for: bool = False
    pruned_at: Time | None = None
