"""The CRIU that tests run with: `make criu` puts one under .criu, or the system has one."""

import os
import shutil
from pathlib import Path

import pytest

from spotferry.agent.criu import Criu

_ROOT = Path(__file__).parents[1]


def criu_here() -> Criu | None:
    """The program, if there is one and it works for who we are."""
    found = shutil.which("criu", path=f"{_ROOT / '.criu' / 'bin'}:{os.environ.get('PATH', '')}")
    criu = Criu(found) if found else None
    return criu if criu and not criu.refusal() else None


needs_criu = pytest.mark.skipif(
    criu_here() is None, reason="no CRIU that works here: `.ci/run` prepares one where it is root on Debian"
)
