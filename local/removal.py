"""Deleting what machines left on the disk."""

import subprocess
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Delete a folder and what is in it, as far as it can be; nothing there is fine.

    By `rm`: directories may lie deeper in one another than Python's stack, which ends `shutil.rmtree` before 3.13.
    """
    subprocess.run(["rm", "-rf", "--", str(folder)], check=False, stderr=subprocess.DEVNULL)  # noqa: S603, S607  (a folder of our own)
