"""Which files of a work directory stay behind, by the rules that git has for .gitignore."""

from dataclasses import dataclass
from pathlib import Path

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from cli.errors import UsageProblem

RULE_FILES = (".gitignore", ".spotferryignore")
"""Read in this order, so that .spotferryignore can take back what .gitignore leaves out (`!data/`)."""
NEVER_PACKED = (".git", ".spotferry")
"""At any depth: history, and a local cloud's state, which changes while it is read and holds the jobs of before."""
_FOLDER_GROUP = "ps_d"  # the library marks the slash after a matched folder by this group


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of a rule file.

    The library's patterns also match whatever is below a folder that they match. Here folders are judged on the way
    down, as git does, so a pattern counts only where it matches the path itself.
    """

    pattern: GitIgnoreSpecPattern
    by_name: bool
    below: bool
    folders_only: bool

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Whether the rule is about this path, which is relative to the rule file's folder."""
        if self.folders_only and not is_folder:
            return False
        tried = path.rpartition("/")[2] if self.by_name else path
        if is_folder and not self.below:
            tried += "/"
        found = self.pattern.match_file(tried)
        if found is None:
            return False
        folder = found.match.groupdict().get(_FOLDER_GROUP)
        return self.by_name or folder is None or found.match.end(_FOLDER_GROUP) == len(tried)


@dataclass(frozen=True, slots=True)
class _FolderRules:
    """The rules that one folder adds, for paths below it."""

    folder: str
    rules: tuple[_Rule, ...]

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """True to leave it out, False to keep it, None when no rule is about it; the last rule decides."""
        inner = path[len(self.folder) :].lstrip("/")
        for rule in reversed(self.rules):
            if rule.matches(inner, is_folder=is_folder):
                return rule.pattern.include
        return None


def _read_rule(line: str) -> _Rule | None:
    text = line.rstrip()
    folders_only = text.endswith("/**/")
    pattern = GitIgnoreSpecPattern(text[:-1] if folders_only else line)
    if pattern.include is None:
        return None  # a comment or an empty line
    inner = text.removeprefix("!").rstrip("/")
    return _Rule(pattern, by_name="/" not in inner, below=inner.endswith("/**"), folders_only=folders_only)


class IgnoreRules:
    """The rules that hold in one folder: its own and those of the folders above it, up to the work directory."""

    def __init__(self, above: tuple[_FolderRules, ...] = ()) -> None:
        self._rules = above

    def inside(self, folder: Path, path: str) -> "IgnoreRules":
        """The rules in a folder, whose path below the work directory is given ("" for the work directory itself).

        Raises:
            UsageProblem: a rule file cannot be read.
        """
        lines: list[str] = []
        for name in RULE_FILES:
            lines += _read_lines(folder / name)
        if not lines:
            return self
        try:
            rules = tuple(filter(None, map(_read_rule, lines)))
        except ValueError as error:
            raise UsageProblem(f"{folder}: {' or '.join(RULE_FILES)} holds a bad pattern: {error}") from error
        return IgnoreRules((*self._rules, _FolderRules(path, rules)))

    def leave_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path below the work directory stays behind; the deepest folder that has a rule for it decides."""
        if path.rpartition("/")[2] in NEVER_PACKED:
            return True
        for rules in reversed(self._rules):
            verdict = rules.verdict(path, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return []
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}") from error
