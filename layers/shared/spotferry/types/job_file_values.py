"""The values of a job file: how each kind is read, and what to say when it is of another kind."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from spotferry.types.errors import Problem
from spotferry.types.faults import problem_at
from spotferry.types.job_file_words import check_title, nearest
from spotferry.types.words import shown
from spotferry.types.yaml_nodes import Entry, Value

MAX_WORDS = 100
COMMAND_KEYS = (
    "setup",
    "task",
    "restored_task",
    "post_setup",
    "pre_checkpoint",
    "post_checkpoint",
    "pre_restore",
    "post_restore",
)
"""Keys that hold lines to run."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,12}(\.[0-9]{1,12})?")
_NOUNS = {"list": "a list", "map": "a mapping", "null": "nothing", "bool": "true or false"}


def noun(value: Value) -> str:
    """What a value is, for a message: its kind, or itself in quotes."""
    return _NOUNS.get(value.kind) or shown(value.text)


class JobFileValues:
    """Reads values; what is wrong with one is noted.

    Attributes:
        problems: all that is wrong; the fields are of use only when there is none.
        lines: line of each key, by its dotted path.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}

    def _refuse(self, field: str, message: str, line: int) -> None:
        self.problems.append(problem_at(field, message, line))

    def _entries(self, field: str, value: Value) -> list[Entry]:
        if value.kind != "map":
            below = " with `run:` below it" if field in COMMAND_KEYS else ""
            self._refuse(field, f"must be a mapping{below}, not {noun(value)}", value.line)
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

    def _text(self, field: str, value: Value) -> str:
        if value.kind not in {"str", "int", "float"}:
            self._refuse(field, f"must be text, not {noun(value)}", value.line)
        elif "\0" in value.text or "\n" in value.text:
            self._refuse(field, "must be one line of text", value.line)
        return value.text

    def _title(self, field: str, value: Value) -> str:
        return self._checked(field, value, check_title)

    def _checked(self, field: str, value: Value, check: Callable[[str], str]) -> str:
        """Text that may be blank, or is what the check lets pass."""
        text = self._text(field, value)
        fault = check(text) if text else ""
        if fault and value.kind in {"str", "int", "float"}:
            self._refuse(field, f"{shown(text)} {fault}", value.line)
        return text

    def _number(self, field: str, value: Value, top: Decimal, *, least: int = 0, whole: bool = False) -> Decimal:
        kind = "a whole number" if whole else "a number"
        if value.kind not in {"int", "float", "str"} or not _NUMBER.fullmatch(value.text):
            self._refuse(field, f"must be {kind}, not {noun(value)}", value.line)
            return Decimal(0)
        number = Decimal(value.text)
        if whole and number != int(number):
            self._refuse(field, f"must be {kind}, not {value.text}", value.line)
        elif not least <= number <= top:
            self._refuse(field, f"must be from {least} to {top}, not {value.text}", value.line)
        return number

    def _truth(self, field: str, value: Value) -> bool:
        if value.kind != "bool":
            self._refuse(field, f"must be true or false, not {noun(value)}", value.line)
        return value.text.lower() == "true"

    def _one_of(
        self, field: str, value: Value, known: Sequence[str], other_names: Mapping[str, str] | None = None
    ) -> str:
        """One of the known words; `other_names` are what people call them elsewhere."""
        before = len(self.problems)
        text = self._text(field, value)
        if text not in known and len(self.problems) == before:
            meant = (other_names or {}).get(text.lower()) or nearest(text, known)
            hint = f"; did you mean {meant}?" if meant else ""
            self._refuse(field, f"must be {', '.join(known[:-1])} or {known[-1]}, not {shown(text)}{hint}", value.line)
        return text

    def _word(self, field: str, value: Value, check: Callable[[str], str]) -> str:
        """One word; `check` says what is wrong with it, "" for nothing."""
        before = len(self.problems)
        text = self._text(field, value)
        if len(self.problems) == before and (fault := check(text)):
            self._refuse(field, f"{shown(text)} {fault}", value.line)
        return text

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
                self._refuse(path, f"{shown(word)} {fault}", item.line)
            words.append(word)
        return words

    def _pairs(self, field: str, value: Value) -> dict[str, str]:
        """Names and their values as they were written: 1.10 stays "1.10", true stays "true"."""
        pairs: dict[str, str] = {}
        for entry in self._entries(field, value):
            path = f"{field}.{entry.key}"
            if entry.value.kind in {"map", "list", "null"}:
                hint = ' write "" for an empty one' if entry.value.kind == "null" else ""
                self._refuse(path, f"must be one value, not {noun(entry.value)};{hint}".rstrip(";"), entry.line)
            elif "\0" in entry.value.text:
                self._refuse(path, "holds a NUL byte", entry.line)
            else:
                pairs[entry.key] = entry.value.text
        return pairs
