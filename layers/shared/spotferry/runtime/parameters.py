"""Settings and secrets in the parameter store: launch regions, and what jobs may not have in their files."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from spotferry.ports.cloud import COMMANDS, Clock, Command, RegionSettings
from spotferry.runtime.aws_clients import Client
from spotferry.types.errors import Misconfigured
from spotferry.types.faults import sentence_of

_KEEP = timedelta(minutes=1)
_BATCH = 10
_COMMANDS = TypeAdapter(
    dict[Command, list[Annotated[str, Field(min_length=1, max_length=4096)]]],
    config=ConfigDict(defer_build=True),
)


class Parameters:
    """The deployment's part of the parameter store.

    Args:
        prefix: "/spotferry/<deployment>"; below it are `regions/<provider>/<region>`, `secrets/<name>` of jobs,
            `clouds/<provider>/<name>`, the keys of clouds, and `commands`.
        client: makes the SSM client, on first use.
        clock: tells the time.
    """

    def __init__(self, prefix: str, client: Callable[[], Client], clock: Clock) -> None:
        self._prefix = prefix
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._regions: Sequence[RegionSettings] = ()
        self._read_at: datetime | None = None
        self._commands: Mapping[str, Sequence[str]] = {}
        self._commands_at: datetime | None = None

    def regions(self) -> Sequence[RegionSettings]:
        """The launch regions that were set up; read again after a minute.

        Raises:
            Misconfigured: a parameter there is not what it should be.
        """
        with self._lock:
            now = self._clock()
            if self._read_at is None or self._read_at + _KEEP <= now:
                self._regions = tuple(self._read_regions())
                self._read_at = now
            return self._regions

    def _read_regions(self) -> Iterable[RegionSettings]:
        path = f"{self._prefix}/regions/"
        pages = self._client().get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True)
        for page in pages:
            for parameter in page["Parameters"]:
                yield _region(str(parameter["Name"]), str(parameter["Value"]))

    def commands(self) -> Mapping[str, Sequence[str]]:
        """The deployment's own lines around every job's life, from `commands`; read again after a minute.

        Raises:
            Misconfigured: the parameter is not JSON of names and lists of lines.
        """
        with self._lock:
            now = self._clock()
            if self._commands_at is None or self._commands_at + _KEEP <= now:
                self._commands = self._read_commands()
                self._commands_at = now
            return self._commands

    def _read_commands(self) -> Mapping[str, Sequence[str]]:
        name = f"{self._prefix}/commands"
        found = self._client().get_parameters(Names=[name])["Parameters"]
        if not found:
            return {}
        try:
            lines = _COMMANDS.validate_json(str(found[0]["Value"]))
            return {str(point): run for point, run in lines.items()}
        except ValidationError as error:
            raise Misconfigured(
                f"the parameter {name} is not a JSON object of lists of lines, by {', '.join(COMMANDS)}:"
                f" {sentence_of(error)}"
            ) from error

    def resolve(self, names: Iterable[str]) -> Mapping[str, str]:
        """The secrets by name, decrypted; never kept.

        Raises:
            Misconfigured: one of them is not there; the message names it, never a value.
        """
        wanted = {f"{self._prefix}/secrets/{name}": name for name in names}
        paths = list(wanted)
        found: dict[str, str] = {}
        for start in range(0, len(paths), _BATCH):
            answer = self._client().get_parameters(Names=paths[start : start + _BATCH], WithDecryption=True)
            found |= {wanted[str(p["Name"])]: str(p["Value"]) for p in answer["Parameters"]}
        missing = sorted(set(wanted.values()) - set(found))
        if missing:
            raise Misconfigured(f"there is no secret {', '.join(missing)}: put it at {self._prefix}/secrets/<name>")
        return found

    def cloud_secret(self, name: str) -> str:
        """The key of a cloud, such as `paperspace/api-key`, decrypted; never kept.

        Raises:
            Misconfigured: it is not there, or empty; the message says where to put it.
        """
        path = f"{self._prefix}/clouds/{name}"
        found = self._client().get_parameters(Names=[path], WithDecryption=True)["Parameters"]
        value = str(found[0]["Value"]).strip() if found else ""
        if not value:
            raise Misconfigured(f"there is no secret {path}: put it there as a SecureString")
        return value


def _region(name: str, text: str) -> RegionSettings:
    try:
        return RegionSettings.model_validate_json(text)
    except ValidationError as error:
        raise Misconfigured(f"the parameter {name} is not a launch region's settings: {sentence_of(error)}") from error
