"""The plan that hello brings, read into values; what a `go` changes of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, Mapping, Optional, Tuple

from spotferry.agent.broker import Json

FINALIZE = "finalize"
"""The mode of an attempt that only sends what another one's task left."""


@dataclass(frozen=True)
class Part:
    """An object to fetch.

    Attributes:
        name: of the part within its archive.
        url: address, good for a while.
        sha256, size_bytes: what must come.
    """

    name: str
    url: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Input:
    """An object to copy to the machine before setup.

    Attributes:
        path: where it goes, below the directory of inputs.
        uri: as the job file has it, for messages.
        url: address to fetch it from.
        access: `broker`: the address is enough, and good for a while; a cloud's name: with the machine's own
            credentials of that cloud, if it has any; "": as anybody may.
        region: of the bucket.
        size_gb: what the job file says, in billions of bytes.
    """

    path: str
    uri: str
    url: str
    access: str
    region: str
    size_gb: float


@dataclass(frozen=True)
class Saved:
    """A checkpoint that may be restored.

    Attributes:
        number, engine, parts: as in the protocol.
        machine: what it was made on, see `fingerprint`.
    """

    number: int
    engine: str
    parts: Tuple[Part, ...]
    machine: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """How checkpoints are made.

    Attributes:
        engine: `auto`, or the one that the job asks for.
        paths: of the application's own checkpoints, below the work directory; globs.
        signal: sent to the task before the paths are read; "" for none.
        grace_seconds: how long the task may take to write them.
    """

    engine: str = "auto"
    paths: Tuple[str, ...] = ()
    signal: str = ""
    grace_seconds: float = 30.0


@dataclass(frozen=True)
class Plan:
    """What this attempt is to do; fields as in the protocol."""

    job_id: str
    epoch: int
    mode: str
    work_dir: Optional[Part]
    setup: Tuple[str, ...]
    task: Tuple[str, ...]
    restored_task: Tuple[str, ...]
    variables: Mapping[str, Any]
    outputs: Tuple[str, ...]
    checkpoints: Tuple[Saved, ...]
    exit_code: int
    grace_seconds: float
    inputs: Tuple[Input, ...] = ()
    options: Options = Options()
    commands: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)

    @property
    def work_dir_name(self) -> str:
        """Of the uploaded directory, or of the empty one that a job without an upload gets."""
        return self.work_dir.name if self.work_dir else "work"

    def changed_by(self, word: Json) -> Plan:
        """The plan after a `go` that may bring newer checkpoints, another mode and an exit code."""
        brought = {**word, **word["directive"]}
        changes: Dict[str, Any] = {}
        if brought.get("checkpoints") is not None:
            changes["checkpoints"] = tuple(_saved(given) for given in brought["checkpoints"])
        if brought.get("mode"):
            changes["mode"] = str(brought["mode"])
        if brought.get("exit_code") is not None:
            changes["exit_code"] = int(brought["exit_code"])
        return replace(self, **changes)


def parse(hello: Json) -> Plan:
    """The plan in hello's answer.

    Raises:
        ValueError: it is not as the protocol says.
    """
    try:
        plan = hello["plan"]
        work_dir = plan.get("work_dir")
        return Plan(
            job_id=str(hello.get("job_id", "")),
            epoch=int(hello["epoch"]),
            mode=str(plan["mode"]),
            work_dir=_part(work_dir) if work_dir else None,
            setup=_lines(plan, "setup"),
            task=_lines(plan, "task"),
            restored_task=_lines(plan, "restored_task"),
            variables={**(plan.get("env") or {}), **(plan.get("secrets") or {})},
            outputs=_lines(plan, "outputs"),
            checkpoints=tuple(_saved(given) for given in plan.get("checkpoints") or ()),
            exit_code=int(plan.get("exit_code") or 0),
            grace_seconds=float(hello.get("grace_seconds", 30)),
            inputs=tuple(_input(given) for given in plan.get("inputs") or ()),
            options=_options(plan.get("checkpoint") or {}),
            commands={name: _lines(plan["commands"], name) for name in plan.get("commands") or {}},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the plan lacks {error}") from None


def _lines(plan: Json, key: str) -> Tuple[str, ...]:
    return tuple(str(line) for line in plan.get(key) or ())


def _options(given: Json) -> Options:
    return Options(
        engine=str(given.get("engine") or "auto"),
        paths=_lines(given, "paths"),
        signal=str(given.get("signal") or ""),
        grace_seconds=float(given.get("grace_seconds", 30)),
    )


def _part(given: Json) -> Part:
    return Part(str(given["name"]), str(given["url"]), str(given["sha256"]), int(given["size_bytes"]))


def _input(given: Json) -> Input:
    return Input(
        path=str(given["path"]),
        uri=str(given["uri"]),
        url=str(given["url"]),
        access=str(given["access"]),
        region=str(given["region"]),
        size_gb=float(given["size_gb"]),
    )


def _saved(given: Json) -> Saved:
    machine = {str(name): str(value) for name, value in (given.get("machine") or {}).items()}
    return Saved(int(given["number"]), str(given["engine"]), tuple(_part(part) for part in given["parts"]), machine)
