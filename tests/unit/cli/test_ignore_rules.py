"""The rules for what stays behind are git's."""

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from cli.errors import UsageProblem
from cli.packing import pack

FILES = [
    "a.log", "keep.log", "b.txt", "build/out", "build/keep", "src/build/x", "src/a.log", "src/gen/y", "src/gen/z.py",
    "data/big.bin", "data/small.bin", "data/deep/er/file", "logs/1", "logs/keep", "foo", "bar/foo", "#hash", "!bang",
    "sp ace", "doc/a.pdf", "doc/sub/a.pdf", "x1", "x2", "xa",
]  # fmt: skip
RULES = [
    {"": "*.log\n!keep.log\n"},
    {"": "build/\n"},
    {"": "/build\n"},
    {"": "build/\n!build/keep\n"},
    {"": "build/*\n!build/keep\n"},
    {"": "logs/**\n!logs/keep\n"},
    {"": "data/**\n!data/deep/\n!data/deep/**\n"},
    {"": "**/gen\n"},
    {"": "src/**/z.py\n"},
    {"": "/foo\n"},
    {"": "foo\n"},
    {"": "\\#hash\n\\!bang\nsp\\ ace\n"},
    {"": "# comment\n\n  \n*.pdf\n!/doc/*.pdf\n"},
    {"": "x[0-9]\n!x2\n"},
    {"": "*\n!*/\n!*.py\n"},
    {"": "*.bin\n", "data": "!small.bin\n"},
    {"src": "a.log\n/gen/y\n"},
    {"": "!a.log\n", "src": "*.log\n"},
    {"": "data\n", "data": "!big.bin\n"},
    {"": "*.txt \n"},
    {"": "foo\n!bar/foo\n"},
    {"": "src/*\n!src/gen/\nsrc/gen/*\n!src/gen/y\n"},
    {"": "a/**/b\nsrc/**/\n"},
    {"": "**\n!data/\n!data/**\n"},
    {"": "data/*/\n"},
    {"": "**/sub/a.pdf\ndoc\n!doc/a.pdf\n"},
    {"": "build\n!/build\n"},
]


def packed_names(folder: Path) -> set[str]:
    """The files that would travel."""
    archive = io.BytesIO()
    pack(folder, archive)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        return {member.name for member in tar if member.isfile()}


def make_tree(folder: Path, rules: dict[str, str], rule_file: str) -> None:
    """Files to choose from, and rules to choose by."""
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    for where, text in rules.items():
        (folder / where / rule_file).write_text(text)


@pytest.mark.parametrize("rules", RULES)
def test_what_travels_is_what_git_would_add(tmp_path: Path, rules: dict[str, str]) -> None:
    """The archive holds exactly what git sees in the same folder."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed, so there is nothing to compare with")
    make_tree(tmp_path, rules, ".gitignore")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run([git, "init", "-q", "."], cwd=tmp_path, env=environment, check=True, timeout=30)
    listing = subprocess.run(
        [git, "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path, env=environment, check=True, timeout=30, capture_output=True, text=True,
    )  # fmt: skip
    assert packed_names(tmp_path) == set(filter(None, listing.stdout.split("\0")))


@pytest.mark.parametrize("rules", RULES)
def test_our_own_rule_file_means_the_same(tmp_path: Path, rules: dict[str, str]) -> None:
    """.spotferryignore leaves out what .gitignore would."""
    make_tree(tmp_path, rules, ".gitignore")
    by_git = packed_names(tmp_path)
    for path in tmp_path.rglob(".gitignore"):
        path.rename(path.with_name(".spotferryignore"))
    ours = packed_names(tmp_path)
    assert {n.replace(".spotferryignore", ".gitignore") for n in ours} == by_git


def test_our_own_rule_file_has_the_last_word(tmp_path: Path) -> None:
    """Data that git leaves out can travel all the same."""
    make_tree(tmp_path, {"": "*.bin\n"}, ".gitignore")
    (tmp_path / ".spotferryignore").write_text("!*.bin\nlogs/\n")
    names = packed_names(tmp_path)
    assert {"data/big.bin", "data/small.bin"} <= names
    assert not {name for name in names if name.startswith("logs/")}


@pytest.mark.parametrize("name", [".git", ".spotferry"])
def test_what_tools_keep_of_themselves_never_travels(tmp_path: Path, name: str) -> None:
    """Neither git's history nor a local cloud's state, wherever they lie, and whatever a rule takes back."""
    for folder in (tmp_path, tmp_path / "below"):
        (folder / name).mkdir(parents=True)
        (folder / name / "state").write_text("x")
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / ".spotferryignore").write_text(f"!{name}/\n")
    assert packed_names(tmp_path) == {"a.txt", ".spotferryignore"}


def test_a_rule_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Rules are never skipped in silence: a secret might travel."""
    (tmp_path / ".gitignore").symlink_to(".gitignore")
    with pytest.raises(UsageProblem, match=r"\.gitignore cannot be read"):
        packed_names(tmp_path)


def test_a_rule_that_means_nothing_is_named(tmp_path: Path) -> None:
    """A rule that cannot be followed is refused, with its file."""
    (tmp_path / ".gitignore").write_text("!\n")
    with pytest.raises(UsageProblem, match="holds a bad pattern"):
        packed_names(tmp_path)
