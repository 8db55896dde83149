"""The keys of a job file: which there are, what each may hold, and what to say when it holds something else."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial

from spotferry.types.job_file_inputs import check_inputs
from spotferry.types.job_file_recovery import (
    ENGINES,
    MAX_EXIT_CODE,
    MAX_INTERVAL_SECONDS,
    MAX_KEEP,
    MAX_RESTARTS,
    MIN_INTERVAL_SECONDS,
    OTHER_SIGNAL_NAMES,
    SIGNALS,
    check_checkpoint_path,
    check_recovery,
)
from spotferry.types.job_file_values import COMMAND_KEYS, JobFileValues, noun
from spotferry.types.job_file_words import (
    check_image,
    check_input_path,
    check_location,
    check_name,
    check_output,
    check_provider,
    check_region,
    check_title,
    check_uri,
    check_work_dir,
    nearest,
)
from spotferry.types.words import shown
from spotferry.types.yaml_nodes import Entry, Value

MAX_LABELS = 20
MAX_INPUTS = 100
MAX_HOURS = 8_760
_MAX_SIZE = Decimal(1_000_000)
_MAX_DISK = Decimal(16_384)
_ARCHES = ("x86_64", "arm64")
_OTHER_NAMES = {"amd64": "x86_64", "x64": "x86_64", "x86-64": "x86_64", "intel": "x86_64", "aarch64": "arm64"}
_OBJECTIVES = ("price", "expected_cost")

Read = Callable[[str, Value], object]


class JobFileKeys(JobFileValues):
    """Reads the values of one job file into the fields of a JobFile."""

    def __init__(self) -> None:
        super().__init__()
        self._specs = self._specs_readers()
        self._input = self._input_readers()
        self._checkpoint = self._checkpoint_readers()
        self._retry = self._retry_readers()
        self._commands: Mapping[str, Read] = {"run": self._run}
        commands = partial(self._mapping, readers=self._commands)
        self._root: Mapping[str, Read] = {
            "job_file_path": self._text,
            "work_dir": partial(self._checked, check=check_work_dir),
            "containerized": self._containerized,
            "instance_specs": partial(self._mapping, readers=self._specs),
            **dict.fromkeys(COMMAND_KEYS, commands),
            "name": self._title,
            "project": self._title,
            "labels": self._labels,
            "env": self._env,
            "secrets": partial(self._words, check=check_name),
            "machine_image": partial(self._checked, check=check_image),
            "outputs": partial(self._words, check=check_output),
            "inputs": self._inputs,
            "objective": partial(self._one_of, known=_OBJECTIVES),
            "expected_hours": partial(self._number, top=Decimal(MAX_HOURS)),
            "checkpoint": partial(self._mapping, readers=self._checkpoint),
            "retry": partial(self._mapping, readers=self._retry),
            "max_duration_hours": partial(self._number, top=Decimal(MAX_HOURS)),
            "max_cost_usd": partial(self._number, top=_MAX_SIZE),
        }

    def _checkpoint_readers(self) -> Mapping[str, Read]:
        return {
            "engine": partial(self._one_of, known=ENGINES),
            "paths": partial(self._words, check=check_checkpoint_path),
            "signal": self._signal,
            "interval_seconds": self._interval,
            "keep": partial(self._number, least=1, top=Decimal(MAX_KEEP), whole=True),
            "on_rebalance": self._truth,
        }

    def _retry_readers(self) -> Mapping[str, Read]:
        return {
            "max_restarts": partial(self._number, top=Decimal(MAX_RESTARTS), whole=True),
            "on_exit_codes": self._exit_codes,
        }

    def _input_readers(self) -> Mapping[str, Read]:
        return {
            "uri": partial(self._word, check=check_uri),
            "location": partial(self._word, check=check_location),
            "size_gb": partial(self._number, top=_MAX_DISK),
            "path": partial(self._word, check=check_input_path),
        }

    def _specs_readers(self) -> Mapping[str, Read]:
        size = partial(self._number, top=_MAX_SIZE)
        count = partial(self._number, top=_MAX_SIZE, whole=True)
        return {
            "instance_type": self._text,
            "memory_gb": size,
            "cpu_cores": size,
            "vram_gb": size,
            "gpu": self._text,
            "max_price_usd_hour": size,
            "gpu_count": count,
            "arch": self._arch,
            "disk_gb": partial(self._number, top=_MAX_DISK, whole=True),
            "providers": partial(self._words, check=check_provider),
            "regions": partial(self._words, check=check_region),
            "spot": self._spot,
        }

    def read(self, root: Value) -> dict[str, object]:
        """The fields that were given; what is wrong with them is in `problems`."""
        if root.kind != "map":
            self._refuse("", f"is {noun(root)}; a job file is a mapping of keys such as `task:`", root.line)
            return {}
        fields = self._mapping("", root, self._root)
        self._check_task(root, fields)
        self._check_secrets(fields)
        if not self.problems:
            for problem in check_recovery(fields):
                self._refuse(problem.field, problem.message, self.lines[problem.field])
        return fields

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

    def _unknown(self, path: str, entry: Entry, readers: Mapping[str, Read]) -> None:
        meant = self._elsewhere(entry.key) or nearest(entry.key, [*readers])
        hint = f"did you mean {meant}?" if meant else f"known here: {', '.join(readers)}"
        self._refuse(path, f"is not a key of a job file; {hint}", entry.line)

    def _elsewhere(self, key: str) -> str:
        if key in self._specs:
            return f"instance_specs.{key}"
        for section, readers in (("checkpoint", self._checkpoint), ("retry", self._retry)):
            if key in readers:
                return f"{section}.{key}"
        return "task.run" if key in {"run", "command", "commands"} else key if key in self._root else ""

    def _arch(self, field: str, value: Value) -> str:
        return self._one_of(field, value, _ARCHES, _OTHER_NAMES)

    def _spot(self, field: str, value: Value) -> bool | str:
        if value.kind == "bool":
            return self._truth(field, value)
        if value.text != "fallback":
            hint = "; did you mean fallback?" if nearest(value.text, ("fallback",)) else ""
            self._refuse(field, f"must be true, false or fallback, not {noun(value)}{hint}", value.line)
        return "fallback"

    def _signal(self, field: str, value: Value) -> str:
        blank = value.kind == "str" and not value.text
        return "" if blank else self._one_of(field, value, SIGNALS, OTHER_SIGNAL_NAMES)

    def _interval(self, field: str, value: Value) -> Decimal:
        least = 0 if value.text == "0" else MIN_INTERVAL_SECONDS
        return self._number(field, value, Decimal(MAX_INTERVAL_SECONDS), least=least, whole=True)

    def _exit_codes(self, field: str, value: Value) -> list[Decimal]:
        if value.kind == "map":
            self._refuse(field, "must be a list of exit codes, not a mapping", value.line)
            return []
        items = list(value.items) if value.kind == "list" else [value]
        paths = [f"{field}.{number}" if value.kind == "list" else field for number in range(len(items))]
        top = Decimal(MAX_EXIT_CODE)
        return [self._number(path, item, top, least=1, whole=True) for path, item in zip(paths, items, strict=True)]

    def _inputs(self, field: str, value: Value) -> list[dict[str, object]]:
        if value.kind != "list":
            self._refuse(field, f"must be a list of mappings with `uri:` and `size_gb:`, not {noun(value)}", value.line)
            return []
        if len(value.items) > MAX_INPUTS:
            self._refuse(field, f"has {len(value.items)} entries; the limit is {MAX_INPUTS}", value.line)
        before = len(self.problems)
        inputs = [self._mapping(f"{field}.{number}", item, self._input) for number, item in enumerate(value.items)]
        if len(self.problems) == before:
            for problem in check_inputs(inputs):
                number = int(problem.field.split(".")[1])
                self._refuse(problem.field, problem.message, self.lines.get(problem.field, value.items[number].line))
        return inputs

    def _containerized(self, field: str, value: Value) -> bool:
        truth = self._truth(field, value)
        if truth:
            self._refuse(field, "true is not yet built; leave it out", value.line)
        return truth

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
            self._refuse(field, f"must be a line, not {noun(line)}; put quotes around the whole line", line.line)
        elif line.kind == "null" or not line.text.strip():
            self._refuse(field, "is a blank line; leave it out", line.line)
        elif "\0" in line.text:
            self._refuse(field, "holds a NUL byte", line.line)

    def _env(self, field: str, value: Value) -> dict[str, str]:
        env = self._pairs(field, value)
        for name in env:
            fault = check_name(name)
            if fault:
                self._refuse(f"{field}.{name}", f"{shown(name)} {fault}", self.lines[f"{field}.{name}"])
        return env

    def _labels(self, field: str, value: Value) -> dict[str, str]:
        labels = self._pairs(field, value)
        if len(labels) > MAX_LABELS:
            self._refuse(field, f"has {len(labels)} labels; the limit is {MAX_LABELS}", value.line)
        for name, text in labels.items():
            fault = check_name(name) or (f"has a value that {check_title(text)}" if text and check_title(text) else "")
            if fault:
                self._refuse(f"{field}.{name}", f"{shown(name)} {fault}", self.lines[f"{field}.{name}"])
        return labels
