"""Shell lines as a script that stops at the first line that fails, names it, and hands its environment back."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence

_HEAD = """\
#!/bin/bash
set -e
"""
_LINE = """\
printf 'line {number}\\0' >&{fd}
eval {line} {fd}>&-
spotferry_status=$?
if [ "$spotferry_status" -ne 0 ]; then exit "$spotferry_status"; fi
"""
_TAIL = """\
unset spotferry_status
printf 'environment\\0' >&{fd}
command -p env -0 >&{fd}
"""
_SHELLS_OWN = ("PWD", "OLDPWD", "SHLVL", "_")


def compose(lines: Sequence[str], fd: int) -> str:
    """The script: each line in turn, in one bash, so that what one sets the next one sees.

    A line fails when its own status is not 0, also where `set -e` alone would not stop (`false && true`). What is
    written to the descriptor `fd`, which the lines themselves do not get, is read by `Trace`.
    """
    steps = (_LINE.format(number=number, fd=fd, line=shlex.quote(line)) for number, line in enumerate(lines))
    return _HEAD + "".join(steps) + _TAIL.format(fd=fd)


@dataclass(frozen=True)
class Outcome:
    """What a script's trace says.

    Attributes:
        line: number of the line that was last begun, from 0; None when none was.
        environment: exported variables at the end; None when the script did not come to its end.
    """

    line: Optional[int]
    environment: Optional[Dict[str, str]]


class Trace:
    """Memory that a script writes its progress and environment to: there are secrets among it, so no file holds it."""

    def __init__(self) -> None:
        if sys.platform == "linux":
            self.fd = os.memfd_create("spotferry-trace", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                self.fd = os.dup(file.fileno())

    def outcome(self) -> Outcome:
        """What was written so far; closes the trace."""
        try:
            content = os.pread(self.fd, os.fstat(self.fd).st_size, 0)
        finally:
            os.close(self.fd)
        records = [os.fsdecode(record) for record in content.split(b"\0")]
        end = records.index("environment") if "environment" in records else None
        begun = [int(r[5:]) for r in records[:end] if r.startswith("line ")]
        return Outcome(begun[-1] if begun else None, None if end is None else _variables(records[end + 1 :]))


def _variables(records: List[str]) -> Dict[str, str]:
    pairs = (record.partition("=") for record in records if "=" in record)
    return {name: value for name, _, value in pairs if name not in _SHELLS_OWN}
