"""What machines left on the disk goes, whatever it is."""

from pathlib import Path

from local.removal import remove_tree


def test_a_tree_deeper_than_the_stack_goes(deep_tree: Path) -> None:
    """A job that laid directories in one another does not keep its machine's folder from being deleted."""
    remove_tree(deep_tree)
    assert not deep_tree.exists()


def test_nothing_there_is_fine(tmp_path: Path) -> None:
    """A folder that is gone already is no fault."""
    remove_tree(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []
