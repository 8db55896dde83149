"""Reads YAML text into a tree of values; the only module that knows the YAML library, loaded with the first text."""

import json
import re
import warnings
from typing import NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from spotferry.types.words import MOST_FIELD, cut
from spotferry.types.yaml_nodes import Entry, Kind, MalformedYaml, Value

MAX_VALUES = 10_000
MAX_DEPTH = 20
_TAG_PREFIX = "tag:yaml.org,2002:"
_SCALARS: dict[str, Kind] = {"null": "null", "bool": "bool", "int": "int", "float": "float", "str": "str"}
_TABS_AT_LINE_START = re.compile(r"^\t+", re.MULTILINE)
_NOT_PLAIN = re.compile(r"[^\x00-\x7e]")
_TOKEN = re.compile(r"'?<([a-z ]+)>'?")
_TOKENS = {
    "stream end": "the end of the file",
    "document start": "the start of a document (---)",
    "document end": "the end of a document (...)",
    "block end": "the end of this block",
    "block mapping start": "a key that is indented otherwise",
    "block sequence start": "a list item that is indented otherwise",
    "scalar": "a word",
}
_MISTAKES = {
    "'\\t'": "is indented by a tab; YAML wants spaces",
    "another document": "starts a second document (---); a job file is one document",
    "expected '<document start>'": "goes on behind its end; a job file is one document",
    "mapping values are not allowed": "mapping values are not allowed here; quote a value that contains ': '",
}
"""What stands in the library's words of a mistake, and ours for it."""
_NO_YAML = "cannot be read as YAML, nor as JSON"
_UNREADABLE = (UnicodeError, ValueError, OverflowError, RecursionError, IndexError, AttributeError)
"""What the YAML library lets escape, besides its own errors, on text that is no YAML."""


def read_values(text: str) -> Value | None:
    """The document's root; None when there is nothing but comments. JSON is read as well.

    Raises:
        MalformedYaml: not YAML, several documents, too deep, or too much of it by way of aliases.
    """
    root = _compose(_json_as_yaml(text) if text.lstrip().startswith("{") else text)
    return None if root is None else _Walk().value(root, depth=0)


def _json_as_yaml(text: str) -> str:
    """JSON with what YAML would refuse or take otherwise (tabs, U+007F, U+2028) spelt so that it does not."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _NOT_PLAIN.sub(lambda found: json.dumps(found[0])[1:-1], _TABS_AT_LINE_START.sub(" ", text))


def _compose(text: str) -> Node | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReusedAnchorWarning)
            root: Node | None = YAML(typ="safe", pure=True).compose(text)
    except ReusedAnchorWarning as error:
        raise MalformedYaml("an anchor (&name) is given twice; each name may stand for one thing only") from error
    except YAMLError as error:
        _refuse(error, text)
    except _UNREADABLE as error:
        raise MalformedYaml(_NO_YAML) from error
    return root


def _refuse(error: YAMLError, text: str) -> NoReturn:
    if isinstance(error, ReaderError):
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(str(error.character)[:1] or "\0")
        raise MalformedYaml(f"holds the control character U+{code:04X}, which no text file should", line) from error
    if not isinstance(error, MarkedYAMLError):
        raise MalformedYaml(_NO_YAML) from error
    mark = error.problem_mark or error.context_mark
    message = _in_words(error.problem or error.context or _NO_YAML)
    raise MalformedYaml(message, mark.line + 1 if mark else None) from error


def _in_words(said: str) -> str:
    """What the library says: the mistakes that people make in words of ours, else its own with its names replaced."""
    for mistake, words in _MISTAKES.items():
        if mistake in said:
            return words
    said = said.replace("the node content", "a value")
    return cut(_TOKEN.sub(lambda token: _TOKENS.get(token[1], "something else"), said), MOST_FIELD)


class _Walk:
    """Turns the library's nodes into values, counting them: an alias counts as often as it is used."""

    def __init__(self) -> None:
        self._values = 0

    def value(self, node: Node, depth: int) -> Value:
        self._values += 1
        line = node.start_mark.line + 1
        if self._values > MAX_VALUES:
            raise MalformedYaml(f"holds more than {MAX_VALUES} values once its aliases (*name) are followed", line)
        if depth > MAX_DEPTH:
            raise MalformedYaml(f"is nested more than {MAX_DEPTH} deep", line)
        if isinstance(node, ScalarNode):
            return Value(self._scalar_kind(node), line, text=_joined(node.value, line))
        if isinstance(node, SequenceNode):
            self._expect_tag(node, "seq")
            return Value("list", line, items=tuple(self.value(item, depth + 1) for item in node.value))
        self._expect_tag(node, "map")
        return Value("map", line, entries=self._entries(node, depth))

    def _entries(self, node: Node, depth: int) -> tuple[Entry, ...]:
        assert isinstance(node, MappingNode)
        entries = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                raise MalformedYaml("has a key that is a list or a mapping; a key is a word", line)
            entries.append(Entry(_joined(key.value, line), line, self.value(value, depth + 1)))
        return tuple(entries)

    @staticmethod
    def _scalar_kind(node: ScalarNode) -> Kind:
        tag = str(node.tag).removeprefix(_TAG_PREFIX)
        if tag in _SCALARS:
            return _SCALARS[tag]
        # A date or a lone "=" is text here: no key of a job file wants one.
        if str(node.tag).startswith(_TAG_PREFIX) and tag in {"timestamp", "value", "merge"}:
            return "str"
        raise _tagged(node)

    @staticmethod
    def _expect_tag(node: Node, tag: str) -> None:
        if str(node.tag) != _TAG_PREFIX + tag:
            raise _tagged(node)


def _tagged(node: Node) -> MalformedYaml:
    return MalformedYaml(f"has a tag ({cut(str(node.tag))}); a job file is plain values", node.start_mark.line + 1)


def _joined(text: str, line: int) -> str:
    """JSON writes a character outside the basic plane as two escapes: they become the one that is meant."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError as error:
        raise MalformedYaml("holds half of a character (a lone surrogate escape)", line) from error
