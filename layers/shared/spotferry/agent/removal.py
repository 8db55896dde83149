"""Deleting trees, however deep."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import List, Optional

_SECONDS = 600
"""A disk that needs longer for one tree does not answer any more."""

_SHOWN = 200


def remove(path: Path) -> None:
    """Delete whatever is there, also directories that forbid it; nothing there is fine, and no link is followed.

    By `rm`: directories may lie deeper in one another than Python's stack, which ends `shutil.rmtree` before 3.13.

    Raises:
        OSError: something would not go.
    """
    left = _told(["rm", "-rf", "--", str(path)])
    if left is not None and path.is_dir() and not path.is_symlink():
        _told(["chmod", "-R", "u+rwx", "--", str(path)])
        left = _told(["rm", "-rf", "--", str(path)])
    if left is not None:
        raise OSError(f"{path} could not be deleted: {left}")


def _told(command: List[str]) -> Optional[str]:
    """What a command had to complain of; None if it went well."""
    try:
        ended = subprocess.run(  # noqa: S603  (a fixed command)
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} was not done after {_SECONDS} seconds"
    return _end_of(ended.stderr) if ended.returncode else None


def _end_of(text: str) -> str:
    """The last words."""
    words = " ".join(text.split())
    if len(words) <= _SHOWN:
        return words
    end = words[-_SHOWN:]
    return f"... {end.partition(' ')[2] or end}"
