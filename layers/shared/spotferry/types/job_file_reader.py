"""Reading a job file as people write it: every problem at once, each with its key and its line."""

from importlib import import_module
from pathlib import Path

from pydantic import ValidationError

from spotferry.types.errors import InvalidJobFile, Problem
from spotferry.types.faults import problems_of
from spotferry.types.job_file import JobFile
from spotferry.types.job_file_keys import JobFileKeys
from spotferry.types.yaml_nodes import MalformedYaml, Value

MAX_BYTES = 64 * 1024


def init_job_file(path: str | Path) -> JobFile:
    """Read a job file; `job_file_path` of the answer is the path as given.

    Raises:
        InvalidJobFile: it cannot be read, or is not a job file; all its problems, with file, line and key.
    """
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise _refused(name, "there is no such file") from error
    except IsADirectoryError as error:
        raise _refused(name, "is a directory; name the job file in it") from error
    except (OSError, ValueError) as error:
        raise _refused(name, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > MAX_BYTES:
        raise _too_large(name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refused(name, "is not UTF-8 text; save it as UTF-8", line) from error
    return read_job_file(text, name)


def read_job_file(text: str, path: str = "") -> JobFile:
    """Read the text of a job file, YAML or JSON.

    Args:
        text: at most 64 KiB of it.
        path: where it came from: goes into the answer and into messages; "" keeps the `job_file_path` of the text.

    Raises:
        InvalidJobFile: it is not a job file; all its problems, with line and key.
    """
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _too_large(path)
    try:
        root = _read_values(text.removeprefix("\ufeff"))
    except MalformedYaml as error:
        raise _refused(path, error.message, error.line) from error
    if root is None or root.kind == "null":
        raise _refused(path, "is empty; a job file needs at least `task:` with the lines to `run:`")
    keys = JobFileKeys()
    fields = keys.read(root)
    if keys.problems:
        raise InvalidJobFile(path, sorted(keys.problems, key=lambda p: p.line or 0))
    try:
        job_file = JobFile.model_validate(fields)
    except ValidationError as error:
        found = [Problem(p.field, p.message, keys.lines.get(p.field)) for p in problems_of(error)]
        raise InvalidJobFile(path, found) from error
    return job_file.model_copy(update={"job_file_path": path}) if path else job_file


def _read_values(text: str) -> Value | None:
    """The document's root; the YAML library is loaded by the first file that is read."""
    root: Value | None = import_module("spotferry.types.yaml_reader").read_values(text)
    return root


def _refused(path: str, message: str, line: int | None = None) -> InvalidJobFile:
    return InvalidJobFile(path, [Problem("", message, line)])


def _too_large(path: str) -> InvalidJobFile:
    return _refused(path, f"is larger than {MAX_BYTES // 1024} KiB; put data into the work directory")
