"""YAML text as a tree of plain values that know their lines."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["null", "bool", "int", "float", "str", "list", "map"]


class MalformedYaml(Exception):
    """The text is not one plain YAML document.

    Attributes:
        message: what is wrong and what would be right.
        line: counted from 1; None when it is unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the document.

    Attributes:
        kind: what YAML takes it for.
        line: where it starts, counted from 1.
        text: a scalar as it was written.
        items: the values of a list.
        entries: the entries of a map, in order; keys may repeat.
    """

    kind: Kind
    line: int
    text: str = ""
    items: "tuple[Value, ...]" = ()
    entries: "tuple[Entry, ...]" = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a map, with the line of its key."""

    key: str
    line: int
    value: Value
