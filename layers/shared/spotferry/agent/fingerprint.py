"""What a machine must have in common with another one for a process to go on there."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Dict, List, Mapping, Tuple

from spotferry.agent.machine import arch

_CPUINFO = Path("/proc/cpuinfo")
_FLAG_LINES = ("flags", "Features")
"""As x86 and ARM call the line with what the processor can do."""
_MODEL_LINES = ("model name", "CPU part")
_SHOWN_FLAGS = 5


def fingerprint(cpuinfo: Path = _CPUINFO) -> Dict[str, str]:
    """Architecture, kernel, the processor's model, and all that it can do, in order.

    The flags are those that the machine shows: firmware and hypervisor hide some, so that one model of processor is not
    the same everywhere.
    """
    lines = _lines(cpuinfo)
    return {
        "arch": arch(),
        "kernel": platform.release(),
        "cpu_model": next((lines[name] for name in _MODEL_LINES if name in lines), ""),
        "cpu_flags": " ".join(sorted(set(next((lines[name] for name in _FLAG_LINES if name in lines), "").split()))),
    }


def mismatch(made_on: Mapping[str, str], here: Mapping[str, str]) -> str:
    """Why a process dumped on one machine cannot go on at another; "" when it can.

    It may use whatever its processor had, so all of that has to be there; and whatever its kernel could do, so the
    kernel must not be older.
    """
    if made_on.get("arch") != here.get("arch"):
        return f"it was made on {made_on.get('arch') or 'an unknown architecture'}, this is {here.get('arch')}"
    missing = sorted(set(made_on.get("cpu_flags", "").split()) - set(here.get("cpu_flags", "").split()))
    if missing:
        more = f" and {len(missing) - _SHOWN_FLAGS} more" if len(missing) > _SHOWN_FLAGS else ""
        return f"this processor lacks {', '.join(missing[:_SHOWN_FLAGS])}{more}"
    if _version(here.get("kernel", "")) < _version(made_on.get("kernel", "")):
        return f"it was made on kernel {made_on.get('kernel')}, this one is {here.get('kernel')}"
    return ""


def _lines(cpuinfo: Path) -> Dict[str, str]:
    """The first processor's lines."""
    try:
        text = cpuinfo.read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _version(kernel: str) -> Tuple[int, ...]:
    """The first two numbers of a kernel's release."""
    numbers: List[int] = []
    for part in kernel.split(".")[:2]:
        digits = part[: next((n for n, sign in enumerate(part) if not sign.isdigit()), len(part))]
        numbers.append(int(digits or 0))
    return tuple(numbers)
