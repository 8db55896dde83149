"""What the agent says on the machine's console; never a secret, never the job's own output."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import Callable

CRASHED = 70


def say(message: str) -> None:
    """One line on the console."""
    sys.stderr.write(f"spotferry: {message}\n")
    sys.stderr.flush()


def thread_or_nothing(name: str, target: Callable[[], None]) -> threading.Thread:
    """Start a thread that the agent must not go on without: should it crash, the agent ends, and so the machine."""

    def guarded() -> None:
        try:
            target()
        except BaseException:  # noqa: BLE001  (whatever it was, an agent without its thread is not to go on)
            traceback.print_exc()
            os._exit(CRASHED)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread
