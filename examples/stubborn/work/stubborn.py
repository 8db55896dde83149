"""Prints a line a second and ignores every signal that can be ignored, in a child that leaves its group as well."""

import os
import signal
import sys
import time

SECONDS = 600


def ignore_all() -> None:
    """Neither hang-up, interrupt nor termination ends this process."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def main() -> int:
    """Hold out for ten minutes, twice over."""
    ignore_all()
    name = "parent"
    if os.fork() == 0:
        os.setsid()
        name = "child"
    for second in range(SECONDS):
        print(f"{name} still here after {second} s", flush=True)
        time.sleep(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
