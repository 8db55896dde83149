"""The machine under the agent: what it is, how it is kept from prying, how it is shut down."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from typing import Dict, List, Tuple

from spotferry.agent.console import say

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_SHUTDOWN_SECONDS = 20

SHUTDOWNS: Tuple[List[str], ...] = (["shutdown", "-h", "now"], ["sudo", "-n", "shutdown", "-h", "now"])
"""Tried in order until one says that it worked."""

ROOTS_SHUTDOWNS: Tuple[List[str], ...] = (["systemctl", "poweroff"], ["poweroff"])
"""Tried after those by root alone: who is not root is not on a machine of its own."""

_ARCHES = {"amd64": "x86_64", "aarch64": "arm64"}


def shield() -> None:
    """Let no other process of the same user look into the agent's memory or environment, and adopt its orphans.

    Linux only; elsewhere it does nothing.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_DUMPABLE, 0), (_PR_SET_CHILD_SUBREAPER, 1)):
        if libc.prctl(option, value, 0, 0, 0) != 0:
            say(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")


def facts() -> Dict[str, str]:
    """The machine, as hello tells it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "arch": arch(),
        "kernel": platform.release(),
        "cpus": str(os.cpu_count() or 1),
        "memory_mib": str(memory // (1024 * 1024)),
    }


def arch() -> str:
    """`x86_64` or `arm64`, whatever the system calls it."""
    machine = platform.machine().lower()
    return _ARCHES.get(machine, machine)


def shut_down() -> None:
    """Ask the machine to shut down; returns whether or not it does (the user data asks again when the agent ends)."""
    for command in SHUTDOWNS + (ROOTS_SHUTDOWNS if os.geteuid() == 0 else ()):
        try:
            done = subprocess.run(  # noqa: S603  (fixed commands; PATH is the machine's)
                command, stdin=subprocess.DEVNULL, check=False, timeout=_SHUTDOWN_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            say(f"{command[0]}: {error}")
            continue
        if done.returncode == 0:
            return
