"""What patterns name in a work directory."""

from pathlib import Path

import pytest

from spotferry.agent.outputs import matching


def filled(root: Path, *paths: str) -> Path:
    """A directory with these files."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def test_outputs_by_pattern(tmp_path: Path) -> None:
    """Globs, whole directories, `**`; each entry once, in order; what is not there adds nothing."""
    root = filled(tmp_path / "w", "a.txt", "b.bin", "out/1/x", "out/2", ".hidden")
    assert matching(root, ["*.txt", "out/", "out/2", "missing"]) == ["a.txt", "out", "out/1", "out/1/x", "out/2"]
    assert matching(root, ["**/x"]) == ["out/1/x"]
    assert matching(root, ["./b.*"]) == ["b.bin"]
    assert set(matching(root, ["."])) >= {".hidden", "a.txt", "out/1/x"}


def test_outputs_stay_in_the_work_directory(tmp_path: Path) -> None:
    """Neither a pattern nor a link leads out of it."""
    root = filled(tmp_path / "w", "in")
    filled(tmp_path / "elsewhere", "secret")
    (root / "link").symlink_to("../elsewhere")
    assert matching(root, ["link/*", "link"]) == ["link"]
    for pattern in ("../elsewhere/*", "/etc/passwd", "a/../../b"):
        with pytest.raises(ValueError, match="leaves"):
            matching(root, [pattern])


def test_what_is_named_through_a_link_comes_under_its_own_path(tmp_path: Path) -> None:
    """The link comes with it, so that the name leads there; archives follow no link, and say nothing twice."""
    root = filled(tmp_path / "w", "runs/7/model", "runs/7/log/x", "other")
    (root / "latest").symlink_to("runs/7")
    (root / "runs" / "7" / "logs").symlink_to("log")
    (root / "around").symlink_to(f"../{root.name}/runs")
    assert matching(root, ["latest/model"]) == ["latest", "runs/7/model"]
    assert matching(root, ["latest/logs/*"]) == ["latest", "runs/7/log/x", "runs/7/logs"]
    (root / "w").symlink_to(".")
    assert matching(root, ["w/other"]) == ["other", "w"]
    assert matching(root, ["around/7/log"]) == ["around", "runs/7/log", "runs/7/log/x"]


def test_each_entry_is_named_once(tmp_path: Path) -> None:
    """Also by the pattern that names the work directory itself."""
    root = filled(tmp_path / "w", "a", "d/x")
    for patterns in (["**"], ["."], ["**", "d", "d/x"]):
        assert matching(root, patterns) == ["a", "d", "d/x"]
