"""The keys of a job file: which there are, what each may hold, and what to say when it holds something else."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial

from spotferry.types.errors import Problem
from spotferry.types.job_file_words import (
    check_name,
    check_output,
    check_provider,
    check_region,
    check_title,
    nearest,
)
from spotferry.types.yaml_nodes import Entry, Value

NOT_YET: Mapping[str, tuple[str, ...]] = {
    "post_setup": (),
    "pre_checkpoint": (),
    "post_checkpoint": (),
    "pre_restore": (),
    "post_restore": (),
    "checkpoint": ("engine", "paths", "signal", "interval_seconds", "keep"),
    "retry": ("max_restarts", "on_exit_codes"),
    "max_duration_hours": (),
    "max_cost_usd": (),
    "inputs": (),
    "objective": (),
}
"""Keys that a job file will have, with the keys below them; refused until they are built."""

MAX_LABELS = 20
MAX_WORDS = 100
_NUMBER = re.compile(r"[+-]?\d{1,12}(\.\d{1,12})?")
_MAX_SIZE = Decimal(1_000_000)
_ARCHES = ("x86_64", "arm64")
_OTHER_NAMES = {"amd64": "x86_64", "x64": "x86_64", "x86-64": "x86_64", "intel": "x86_64", "aarch64": "arm64"}
_NOUNS = {"list": "a list", "map": "a mapping", "null": "nothing", "bool": "true or false"}

Read = Callable[[str, Value], object]


class JobFileKeys:
    """Reads the values of one job file into the fields of a JobFile.

    Attributes:
        problems: all that is wrong; the fields are of use only when there is none.
        lines: line of each key, by its dotted path.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}
        size = partial(self._number, top=_MAX_SIZE)
        count = partial(self._number, top=_MAX_SIZE, whole=True)
        self._specs: Mapping[str, Read] = {
            "instance_type": self._text,
            "memory_gb": size,
            "cpu_cores": size,
            "vram_gb": size,
            "gpu": self._text,
            "max_price_usd_hour": size,
            "gpu_count": count,
            "arch": self._arch,
            "disk_gb": partial(self._number, top=Decimal(16_384), whole=True),
            "providers": partial(self._words, check=check_provider),
            "regions": partial(self._words, check=check_region),
            "spot": self._spot,
        }
        self._commands: Mapping[str, Read] = {"run": self._run}
        commands = partial(self._mapping, readers=self._commands)
        self._root: Mapping[str, Read] = {
            "job_file_path": self._text,
            "work_dir": self._text,
            "containerized": self._containerized,
            "instance_specs": partial(self._mapping, readers=self._specs),
            "setup": commands,
            "task": commands,
            "restored_task": commands,
            "name": self._title,
            "project": self._title,
            "labels": self._labels,
            "env": self._env,
            "secrets": partial(self._words, check=check_name),
            "machine_image": self._text,
            "outputs": partial(self._words, check=check_output),
        }

    def read(self, root: Value) -> dict[str, object]:
        """The fields that were given; what is wrong with them is in `problems`."""
        if root.kind != "map":
            self._refuse("", f"is {_noun(root)}; a job file is a mapping of keys such as `task:`", root.line)
            return {}
        fields = self._mapping("", root, self._root)
        self._check_task(root, fields)
        self._check_secrets(fields)
        return fields

    def _refuse(self, field: str, message: str, line: int) -> None:
        self.problems.append(Problem(field, message, line))

    def _check_task(self, root: Value, fields: Mapping[str, object]) -> None:
        if any(p.field == "task" or p.field.startswith("task.") for p in self.problems):
            return
        task = fields.get("task")
        if not (isinstance(task, dict) and task.get("run")):
            self._refuse(
                "task.run", "is missing; a job needs at least one line to run", self.lines.get("task", root.line)
            )

    def _check_secrets(self, fields: Mapping[str, object]) -> None:
        env, secrets = fields.get("env"), fields.get("secrets")
        if not (isinstance(env, dict) and isinstance(secrets, list)):
            return
        for name in sorted(set(env) & set(secrets)):
            self._refuse("secrets", f"{name} is in env as well; a name can have one value", self.lines["secrets"])

    def _mapping(self, field: str, value: Value, readers: Mapping[str, Read]) -> dict[str, object]:
        fields: dict[str, object] = {}
        for entry in self._entries(field, value):
            path = f"{field}.{entry.key}" if field else entry.key
            reader = readers.get(entry.key)
            if reader is None:
                self._unknown(path, entry, readers)
            elif entry.value.kind != "null":
                fields[entry.key] = reader(path, entry.value)
        return fields

    def _entries(self, field: str, value: Value) -> list[Entry]:
        if value.kind != "map":
            below = " with `run:` below it" if field in {"setup", "task", "restored_task"} else ""
            self._refuse(field, f"must be a mapping{below}, not {_noun(value)}", value.line)
            return []
        entries: dict[str, Entry] = {}
        for entry in value.entries:
            path = f"{field}.{entry.key}" if field else entry.key
            if entry.key in entries:
                self._refuse(path, f"is given twice, first in line {entries[entry.key].line}", entry.line)
                continue
            entries[entry.key] = entry
            self.lines[path] = entry.line
        return list(entries.values())

    def _unknown(self, path: str, entry: Entry, readers: Mapping[str, Read]) -> None:
        at_root = readers is self._root
        if at_root and entry.key in NOT_YET:
            self._not_yet(entry)
            return
        known = [*readers, *(NOT_YET if at_root else ())]
        meant = nearest(entry.key, known) or self._elsewhere(entry.key)
        hint = f"did you mean {meant}?" if meant else f"known here: {', '.join(readers)}"
        self._refuse(path, f"is not a key of a job file; {hint}", entry.line)

    def _elsewhere(self, key: str) -> str:
        if key in self._specs:
            return f"instance_specs.{key}"
        return "task.run" if key in {"run", "command", "commands"} else key if key in self._root else ""

    def _not_yet(self, entry: Entry) -> None:
        below = NOT_YET[entry.key]
        if not below or entry.value.kind != "map" or not entry.value.entries:
            self._refuse(entry.key, "not yet built; leave it out", entry.line)
            return
        for inner in entry.value.entries:
            meant = nearest(inner.key, below)
            hint = f"did you mean {meant}?" if meant else f"known here: {', '.join(below)}"
            message = "not yet built; leave it out" if inner.key in below else f"is not a key of a job file; {hint}"
            self._refuse(f"{entry.key}.{inner.key}", message, inner.line)

    def _text(self, field: str, value: Value) -> str:
        if value.kind not in {"str", "int", "float"}:
            self._refuse(field, f"must be text, not {_noun(value)}", value.line)
        elif "\0" in value.text or "\n" in value.text:
            self._refuse(field, "must be one line of text", value.line)
        return value.text

    def _title(self, field: str, value: Value) -> str:
        text = self._text(field, value)
        fault = check_title(text) if text else ""
        if fault and value.kind in {"str", "int", "float"}:
            self._refuse(field, f"{text!r} {fault}", value.line)
        return text

    def _number(self, field: str, value: Value, top: Decimal, *, whole: bool = False) -> Decimal:
        kind = "a whole number" if whole else "a number"
        if value.kind not in {"int", "float", "str"} or not _NUMBER.fullmatch(value.text):
            self._refuse(field, f"must be {kind}, not {_noun(value)}", value.line)
            return Decimal(0)
        number = Decimal(value.text)
        if whole and number != int(number):
            self._refuse(field, f"must be {kind}, not {value.text}", value.line)
        elif not 0 <= number <= top:
            self._refuse(field, f"must be from 0 to {top}, not {value.text}", value.line)
        return number

    def _arch(self, field: str, value: Value) -> str:
        text = self._text(field, value)
        if value.kind in {"str", "int", "float"} and text not in _ARCHES:
            meant = _OTHER_NAMES.get(text.lower()) or nearest(text, _ARCHES)
            hint = f"; did you mean {meant}?" if meant else ""
            self._refuse(field, f"must be {' or '.join(_ARCHES)}, not {text!r}{hint}", value.line)
        return text

    def _spot(self, field: str, value: Value) -> bool:
        if value.kind == "str" and value.text == "fallback":
            self._refuse(field, "fallback is not yet built; say true or false", value.line)
            return True
        return self._truth(field, value)

    def _containerized(self, field: str, value: Value) -> bool:
        truth = self._truth(field, value)
        if truth:
            self._refuse(field, "true is not yet built; leave it out", value.line)
        return truth

    def _truth(self, field: str, value: Value) -> bool:
        if value.kind != "bool":
            self._refuse(field, f"must be true or false, not {_noun(value)}", value.line)
        return value.text.lower() == "true"

    def _run(self, field: str, value: Value) -> list[str]:
        if value.kind == "map":
            self._refuse(
                field, "must be a line or a list of lines, not a mapping; quote a line with ': ' in it", value.line
            )
            return []
        lines = [value] if value.kind != "list" else list(value.items)
        for number, line in enumerate(lines):
            self._check_line(f"{field}.{number}" if value.kind == "list" else field, line)
        return [line.text for line in lines]

    def _check_line(self, field: str, line: Value) -> None:
        if line.kind in {"map", "list"}:
            self._refuse(field, f"must be a line, not {_noun(line)}; put quotes around the whole line", line.line)
        elif line.kind == "null" or not line.text.strip():
            self._refuse(field, "is a blank line; leave it out", line.line)
        elif "\0" in line.text:
            self._refuse(field, "holds a NUL byte", line.line)

    def _words(self, field: str, value: Value, check: Callable[[str], str]) -> list[str]:
        """A list of words, or one word; `check` says what is wrong with one, "" for nothing."""
        items = value.items if value.kind == "list" else (value,)
        if value.kind == "map":
            self._refuse(field, "must be a list, not a mapping", value.line)
            return []
        if len(items) > MAX_WORDS:
            self._refuse(field, f"has {len(items)} entries; the limit is {MAX_WORDS}", value.line)
        words: list[str] = []
        for number, item in enumerate(items):
            path = f"{field}.{number}" if value.kind == "list" else field
            before = len(self.problems)
            word = self._text(path, item)
            fault = check(word) or ("is there twice" if word in words else "")
            if fault and len(self.problems) == before:
                self._refuse(path, f"{word!r} {fault}", item.line)
            words.append(word)
        return words

    def _env(self, field: str, value: Value) -> dict[str, str]:
        env = self._pairs(field, value)
        for name in env:
            fault = check_name(name)
            if fault:
                self._refuse(f"{field}.{name}", f"{name!r} {fault}", self.lines[f"{field}.{name}"])
        return env

    def _labels(self, field: str, value: Value) -> dict[str, str]:
        labels = self._pairs(field, value)
        if len(labels) > MAX_LABELS:
            self._refuse(field, f"has {len(labels)} labels; the limit is {MAX_LABELS}", value.line)
        for name, text in labels.items():
            fault = check_name(name) or (f"has a value that {check_title(text)}" if text and check_title(text) else "")
            if fault:
                self._refuse(f"{field}.{name}", f"{name!r} {fault}", self.lines[f"{field}.{name}"])
        return labels

    def _pairs(self, field: str, value: Value) -> dict[str, str]:
        """Names and their values as they were written: 1.10 stays "1.10", true stays "true"."""
        pairs: dict[str, str] = {}
        for entry in self._entries(field, value):
            path = f"{field}.{entry.key}"
            if entry.value.kind in {"map", "list", "null"}:
                hint = ' write "" for an empty one' if entry.value.kind == "null" else ""
                self._refuse(path, f"must be one value, not {_noun(entry.value)};{hint}".rstrip(";"), entry.line)
            elif "\0" in entry.value.text:
                self._refuse(path, "holds a NUL byte", entry.line)
            else:
                pairs[entry.key] = entry.value.text
        return pairs


def _noun(value: Value) -> str:
    return _NOUNS.get(value.kind) or repr(value.text)
