"""What machines left on the disk goes, whatever it is."""

import os
import sys
from pathlib import Path

from local.removal import remove_tree


def test_a_tree_deeper_than_the_stack_goes(tmp_path: Path) -> None:
    """A job that laid directories in one another does not keep its machine's folder from being deleted."""
    begun = os.open(".", os.O_RDONLY)
    (tmp_path / "machine").mkdir()
    try:
        os.chdir(tmp_path / "machine")
        for _ in range(sys.getrecursionlimit() + 100):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.fchdir(begun)
        os.close(begun)
    remove_tree(tmp_path / "machine")
    assert list(tmp_path.iterdir()) == []


def test_nothing_there_is_fine(tmp_path: Path) -> None:
    """A folder that is gone already is no fault."""
    remove_tree(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []
