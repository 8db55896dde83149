"""The job file: what a person asks for."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from spotferry.types.base import JsonMoney, Value
from spotferry.types.job_file_inputs import default_path
from spotferry.types.job_file_recovery import CheckpointOptions, RetryOptions

Amount = JsonMoney
"""A number as a person wrote it: Decimal inside, a JSON number outside."""

Objective = Literal["price", "expected_cost"]


def _one_line(value: object) -> object:
    """A `run:` given as one string is one line."""
    return [value] if isinstance(value, str) else value


class Commands(Value):
    """Shell lines that run in one bash, in order, and stop at the first that fails."""

    run: Annotated[tuple[str, ...], BeforeValidator(_one_line)] = ()


class UserCommands(Value):
    """Lines to run around the life of a job."""

    setup: Commands = Field(default_factory=Commands)
    post_setup: Commands = Field(default_factory=Commands)
    pre_checkpoint: Commands = Field(default_factory=Commands)
    post_checkpoint: Commands = Field(default_factory=Commands)
    pre_restore: Commands = Field(default_factory=Commands)
    post_restore: Commands = Field(default_factory=Commands)


class UserInstanceSpecs(Value):
    """The machine that a job needs. Sizes mean "at least"; 0 and "" mean "any".

    Attributes:
        instance_type: exactly this type.
        memory_gb: memory in GiB.
        cpu_cores: virtual CPUs.
        vram_gb: memory of all GPUs together, in GiB.
        gpu: a GPU's name or its manufacturer, without regard to case.
        max_price_usd_hour: cap on machine and disk together; 0 for none.
        gpu_count: GPUs in the machine.
        arch: x86_64 unless said.
        disk_gb: root disk in GB; 0 for the image's own size or the deployment's default, whichever is larger.
        providers, regions: only these; empty for all.
        spot: spot machines only (true), on-demand only (false), or on-demand only while no spot machine that fits is
            free (fallback).
    """

    instance_type: str = ""
    memory_gb: float = Field(default=0, ge=0, allow_inf_nan=False)
    cpu_cores: float = Field(default=0, ge=0, allow_inf_nan=False)
    vram_gb: float = Field(default=0, ge=0, allow_inf_nan=False)
    gpu: str = ""
    max_price_usd_hour: JsonMoney = Field(default=Decimal(0), ge=0)
    gpu_count: int = Field(default=0, ge=0)
    arch: Literal["x86_64", "arm64"] = "x86_64"
    disk_gb: int = Field(default=0, ge=0, le=16_384)
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    spot: bool | Literal["fallback"] = True


class Input(Value):
    """An object that is copied to the machine before setup.

    Attributes:
        uri: its address: `s3://bucket/key`, `gs://bucket/object` or `https://...`.
        location: `provider/region` of where it is; "" for outside the clouds.
        size_gb: in units of a billion bytes, as transfer is billed.
        path: where it goes, below the directory of inputs; "" for the last part of the address.
    """

    uri: str
    location: str = ""
    size_gb: Amount = Field(gt=0)
    path: str = ""

    @property
    def place(self) -> str:
        """Where it goes, below the directory of inputs."""
        return self.path or default_path(self.uri)


class JobFile(Value):
    """A job as its author wrote it, under the seed's YAML keys.

    Attributes:
        job_file_path: where it was read from.
        work_dir: directory that travels with the job, relative to the job file; "" for none.
        containerized: always false until containers are built.
        instance_specs: the machine.
        setup: lines that prepare a fresh machine.
        task: the work.
        restored_task: runs instead of the task after a restore; empty: the task runs again.
        post_setup, pre_checkpoint, post_checkpoint, pre_restore, post_restore: lines that run at these points.
        name, project, labels: for people and for the bill.
        env: environment of setup and task.
        secrets: names of parameters under the deployment's prefix; each becomes an environment variable of its name.
        machine_image: image to boot instead of the resolved one.
        outputs: paths below the work directory (globs allowed) that are sent to the bucket at the end.
        inputs: objects that are copied to the machine before setup.
        objective: what is to be least: the price of an hour, or what the whole run is expected to cost.
        expected_hours: how long the work takes on one machine; 0 when nobody knows.
        checkpoint: when and how it is checkpointed.
        retry: what becomes of a task that fails by itself.
        max_duration_hours: the job ends so long after its task first started; 0 for no limit.
        max_cost_usd: the job ends when its machines and their disks have cost so much; 0 for no limit.
    """

    job_file_path: str = ""
    work_dir: str = ""
    containerized: bool = False
    instance_specs: UserInstanceSpecs = Field(default_factory=UserInstanceSpecs)
    setup: Commands = Field(default_factory=Commands)
    task: Commands = Field(default_factory=Commands)
    restored_task: Commands = Field(default_factory=Commands)
    post_setup: Commands = Field(default_factory=Commands)
    pre_checkpoint: Commands = Field(default_factory=Commands)
    post_checkpoint: Commands = Field(default_factory=Commands)
    pre_restore: Commands = Field(default_factory=Commands)
    post_restore: Commands = Field(default_factory=Commands)
    name: str = ""
    project: str = ""
    labels: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()
    machine_image: str = ""
    outputs: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    objective: Objective = "price"
    expected_hours: Amount = Field(default=Decimal(0), ge=0)
    checkpoint: CheckpointOptions = Field(default_factory=CheckpointOptions)
    retry: RetryOptions = Field(default_factory=RetryOptions)
    max_duration_hours: Amount = Field(default=Decimal(0), ge=0)
    max_cost_usd: JsonMoney = Field(default=Decimal(0), ge=0)
