"""The file that machines fetch."""

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

from spotferry.runtime.agent_bundle import agent_bundle


def test_bundle_is_the_same_every_time() -> None:
    """Digest and bytes depend on the source alone: no times, no order of a file system, nothing compressed."""
    first = agent_bundle()
    agent_bundle.cache_clear()
    assert agent_bundle() == first
    assert first.sha256 == hashlib.sha256(first.content).hexdigest()
    with zipfile.ZipFile(io.BytesIO(first.content)) as bundle:
        entries = bundle.infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)


def test_bundle_runs_by_itself_and_needs_settings(tmp_path: Path) -> None:
    """It imports nothing but itself and the standard library; without settings it ends at once."""
    path = tmp_path / "agent.pyz"
    path.write_bytes(agent_bundle().content)
    done = subprocess.run(
        [sys.executable, "-I", str(path)], input=b"{}", capture_output=True, check=False, cwd=tmp_path, timeout=20
    )
    assert done.returncode == 64
    assert b"the settings lack" in done.stderr
