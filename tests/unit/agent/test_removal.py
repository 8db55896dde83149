"""What is to be deleted goes, whatever it is, and nothing else does."""

import os
import subprocess
from pathlib import Path

import pytest

from spotferry.agent.removal import remove


def test_a_tree_deeper_than_the_stack_goes(deep_tree: Path) -> None:
    """A job that laid directories in one another does not keep its machine's folder from being deleted."""
    remove(deep_tree)
    assert not deep_tree.exists()


def test_whatever_is_there_goes(tmp_path: Path) -> None:
    """A directory that forbids it, a link, nothing; what a link points to stays."""
    closed = tmp_path / "d" / "closed"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    closed.chmod(0o500)
    (tmp_path / "link").symlink_to("d")
    for name in ("link", "nothing"):
        remove(tmp_path / name)
    assert (closed / "file").exists()
    remove(tmp_path / "d")
    assert not any(tmp_path.iterdir())


def answering(monkeypatch: pytest.MonkeyPatch, said: str) -> list[str]:
    """The commands that were run; each of them fails, and says this."""
    commands: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command[0])
        return subprocess.CompletedProcess(command, 1, "", said)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_what_a_link_leads_to_keeps_its_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`chmod -R` follows a link that it is given: for one that will not go it is not tried."""
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    commands = answering(monkeypatch, "no")
    with pytest.raises(OSError, match="link could not be deleted: no"):
        remove(tmp_path / "link")
    assert commands == ["rm"]
    with pytest.raises(OSError, match="d could not be deleted"):
        remove(tmp_path / "d")
    assert commands == ["rm", "rm", "chmod", "rm"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("rm: a\nrm: b\n", "rm: a rm: b"),
        ("word " * 100, "... " + "word " * 39 + "word"),
        ("x" * 300, "... " + "x" * 200),
    ],
    ids=["short", "long", "one word"],
)
def test_a_complaint_is_cut_between_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, shown: str
) -> None:
    """Its end is told, in one line."""
    answering(monkeypatch, said)
    with pytest.raises(OSError, match="could not be deleted") as failed:
        remove(tmp_path / "x")
    assert str(failed.value).partition("deleted: ")[2] == shown


def test_a_disk_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever waits for it hears of it, and of what to look at."""
    real = os.environ["PATH"]
    (tmp_path / "rm").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "rm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{real}")
    monkeypatch.setattr("spotferry.agent.removal._SECONDS", 0.2)
    with pytest.raises(OSError, match=r"x could not be deleted: rm was not done after 0\.2 seconds"):
        remove(tmp_path / "x")
