"""Counts to COUNT_TO, one step a second; keeps the count in the file `count` of its directory.

On SIGTERM it finishes the step that it is in, keeps it, and ends: no step is lost, none is done twice.
"""

import os
import signal
import time
from pathlib import Path
from types import FrameType

STEP_SECONDS = 1.0
COUNT = Path(__file__).resolve().with_name("count")


class Told:
    """Whether somebody asked for the end."""

    def __init__(self) -> None:
        self.to_stop = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, _number: int, _frame: "FrameType | None") -> None:
        self.to_stop = True


def steps_done() -> int:
    """Where the count stands; 0 at the very beginning."""
    return int(COUNT.read_text()) if COUNT.exists() else 0


def keep(step: int) -> None:
    """Replace the count in one stroke: the file is whole whenever somebody copies it."""
    fresh = COUNT.with_name("count.new")
    fresh.write_text(f"{step}\n")
    fresh.replace(COUNT)


def main() -> None:
    """Count on from where the file says."""
    told = Told()
    last = int(os.environ.get("COUNT_TO", "20"))
    for step in range(steps_done() + 1, last + 1):
        until = time.monotonic() + STEP_SECONDS
        while (left := until - time.monotonic()) > 0:
            time.sleep(left)
        keep(step)
        print(f"step {step} of {last}", flush=True)
        if told.to_stop:
            return


if __name__ == "__main__":
    main()
