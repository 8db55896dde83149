"""What patterns name in a work directory."""

import io
import tempfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotferry.agent.archive import pack
from spotferry.agent.archive import tree as walked
from spotferry.agent.outputs import Matched, matching
from spotferry.agent.pieces import inside
from spotferry.agent.unpack import unpack
from spotferry.types.job_file_words import check_output
from tests.unit.agent.grown_trees import PATTERNS, TREES, grown


def filled(root: Path, *paths: str) -> Path:
    """A directory with these files."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def test_outputs_by_pattern(tmp_path: Path) -> None:
    """Globs, whole directories, `**`; each entry once, in order; what is not there adds nothing."""
    root = filled(tmp_path / "w", "a.txt", "b.bin", "out/1/x", "out/2", ".hidden")
    assert matching(root, ["*.txt", "out/", "out/2", "missing"]).paths == ["a.txt", "out", "out/1", "out/1/x", "out/2"]
    assert matching(root, ["**/x"]).paths == ["out/1/x"]
    assert matching(root, ["./b.*"]).paths == ["b.bin"]
    assert set(matching(root, ["."]).paths) >= {".hidden", "a.txt", "out/1/x"}


def test_outputs_stay_in_the_work_directory(tmp_path: Path) -> None:
    """Neither a pattern nor a link leads out of it."""
    root = filled(tmp_path / "w", "in")
    filled(tmp_path / "elsewhere", "secret")
    (root / "link").symlink_to("../elsewhere")
    assert matching(root, ["link/*", "link"]).paths == ["link"]
    outside = ["../elsewhere/*", "/etc/passwd", "a/../../b"]
    assert matching(root, [*outside, "in"]) == Matched(["in"], outside)


def test_what_is_named_through_a_link_comes_under_its_own_path(tmp_path: Path) -> None:
    """The link comes with it, so that the name leads there; archives follow no link, and say nothing twice."""
    root = filled(tmp_path / "w", "runs/7/model", "runs/7/log/x", "other")
    (root / "latest").symlink_to("runs/7")
    (root / "runs" / "7" / "logs").symlink_to("log")
    (root / "around").symlink_to(f"../{root.name}/runs")
    assert matching(root, ["latest/model"]).paths == ["latest", "runs/7/model"]
    assert matching(root, ["latest/logs/*"]).paths == ["latest", "runs/7/log/x", "runs/7/logs"]
    (root / "w").symlink_to(".")
    assert matching(root, ["w/other"]).paths == ["other", "w"]
    assert matching(root, ["around/7/log"]).paths == ["around", "runs/7/log", "runs/7/log/x"]


def test_each_entry_is_named_once(tmp_path: Path) -> None:
    """Also by the pattern that names the work directory itself."""
    root = filled(tmp_path / "w", "a", "d/x")
    for patterns in (["**"], ["./**"], ["**/"], ["**/**"], ["**/*"], ["."], ["**", "d", "d/x"], ["d/**", "*"]):
        assert matching(root, patterns).paths == ["a", "d", "d/x"]


def test_a_directory_comes_right_before_what_it_holds(tmp_path: Path) -> None:
    """Also beside names that sort between the two by their characters."""
    root = filled(tmp_path / "w", "d/x", "d!", "d-/y")
    assert matching(root, ["."]).paths == ["d", "d/x", "d!", "d-", "d-/y"]


def test_all_below_a_directory_is_all_of_it(tmp_path: Path) -> None:
    """`dir/**` brings files on every Python; named through a link too, and never a plain file that has the name."""
    root = filled(tmp_path / "w", "runs/7/model", "runs/7/log/x", "runs/note", "file")
    (root / "latest").symlink_to("runs/7")
    whole = ["runs/7/log", "runs/7/log/x", "runs/7/model"]
    assert matching(root, ["latest/**"]).paths == ["latest", *whole]
    assert matching(root, ["runs/7/**/**"]).paths == ["runs/7", *whole]
    assert "file" not in matching(root, ["*/**"]).paths
    assert matching(root, ["file/**"]) == Matched([], ["file/**"])


@pytest.mark.parametrize("bad", ["***", "a/**b", "**x", "logs/**.txt", "a" * 300, "*/" * 2000 + "x", "\0"])
def test_a_bad_pattern_loses_nothing_of_the_others(tmp_path: Path, bad: str) -> None:
    """It is one that names nothing."""
    root = filled(tmp_path / "w", "logs/a.txt", "b")
    assert matching(root, [bad, "logs", "nope", "b"]) == Matched(["b", "logs", "logs/a.txt"], [bad, "nope"])


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab*?[]!./-\\ {}\n~é"), max_size=12))
def test_what_a_job_file_may_say_the_agent_can_match(pattern: str) -> None:
    """One grammar on both sides: what is accepted never fails at the end, and what is refused matches nothing."""
    with tempfile.TemporaryDirectory() as directory:
        root = filled(Path(directory), "a/b", "b")
        paths, missed = matching(root, [pattern])
    assert paths == [] or missed == []
    if "**" in pattern and "beside" in check_output(pattern):
        assert missed == [pattern]


@settings(max_examples=150, deadline=None)
@given(tree=TREES, patterns=PATTERNS)
def test_whatever_patterns_name_can_be_packed_and_restored(tree: dict[str, str], patterns: list[str]) -> None:
    """Each entry once, by a path that an index takes, no one below what is no directory; unpacking refuses nothing."""
    with tempfile.TemporaryDirectory() as directory:
        root = grown(Path(directory) / "w", tree)
        (root / "w").symlink_to(".")
        paths = matching(root, patterns).paths
        assert len(set(paths)) == len(paths)
        for path in paths:
            assert inside(path) == path
            above = [str(parent) for parent in PurePosixPath(path).parents][:-1]
            assert not any((root / parent).is_symlink() for parent in above)
        content, back = bytearray(), Path(directory) / "back"
        back.mkdir()
        pack(root, paths, content.extend, lambda: None)
        unpack(io.BytesIO(content), back, None, lambda: None)
        assert set(paths) <= set(walked(back))
