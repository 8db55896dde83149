"""The agent as the file that machines fetch."""

import hashlib
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

from spotferry.runtime.agent_bundle import agent_bundle


def test_the_same_source_gives_the_same_bytes() -> None:
    """A digest stored with an attempt stays the digest of what a machine fetches."""
    first = agent_bundle()
    agent_bundle.cache_clear()
    assert agent_bundle() == first
    assert hashlib.sha256(first.content).hexdigest() == first.sha256


def test_it_holds_the_agent_and_nothing_else_of_ours() -> None:
    """The package's own files, a main and no time stamps."""
    entries = zipfile.ZipFile(BytesIO(agent_bundle().content)).infolist()
    names = {entry.filename for entry in entries}
    assert {"__main__.py", "spotferry/__init__.py", "spotferry/agent/__main__.py"} <= names
    assert all(n in {"__main__.py", "spotferry/__init__.py"} or n.startswith("spotferry/agent/") for n in names)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_it_starts_without_anything_installed(tmp_path: Path) -> None:
    """Python alone runs it, isolated, and without settings on its input it refuses to go on."""
    path = tmp_path / "agent.pyz"
    path.write_bytes(agent_bundle().content)
    command = [sys.executable, "-I", "-S", "-X", "utf8", str(path)]
    ran = subprocess.run(command, input=b"", capture_output=True, cwd=tmp_path, timeout=30, check=False)
    assert ran.returncode != 0
    assert b"ModuleNotFoundError" not in ran.stderr
    assert b"ImportError" not in ran.stderr
