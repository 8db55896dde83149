"""Waiting for what another process does."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Ask until the condition holds; fail when it does not within that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to be within {seconds} s"
        time.sleep(0.05)
