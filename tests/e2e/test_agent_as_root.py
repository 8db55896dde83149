"""The agent as root on a machine of its own: in namespaces, so that no account of this machine is touched."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]
PRIVATE = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
cp -a /etc "$1/etc"
mkdir -p "$1/etc/sudoers.d" "$1/lib"
mount --bind "$1/etc" /etc
mount -t tmpfs tmpfs /home
mount --bind "$1/lib" /var/lib
exec "$2" -m tests.e2e.root_machine
"""


def can_have_namespaces() -> bool:
    """Whether this machine lets us have mounts and processes of our own, and can make users."""
    if os.geteuid() != 0 or str(ROOT).startswith(("/home/", "/var/lib/")) or not Path("/usr/sbin/useradd").exists():
        return False
    try:
        return (
            subprocess.run([*NAMESPACES, "mount", "--make-rprivate", "/"], capture_output=True, check=False).returncode
            == 0
        )
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_have_namespaces(), reason="needs root, unshare and useradd, outside of /home")
def test_task_is_another_user_and_cannot_look_into_the_agent(tmp_path: Path) -> None:
    """The agent makes the task's user; its memory, environment, log and spool are closed to it; its daemons end."""
    search = os.pathsep.join([str(ROOT), str(ROOT / "layers" / "shared")])
    done = subprocess.run(
        [*NAMESPACES, "bash", "-c", PRIVATE, "bash", str(tmp_path), sys.executable],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["problems"] == []
    assert told["log"] == "spotferry\n/home/spotferry/count\nup\n"
    assert [event for event, _ in told["reports"]] == ["setup_finished", "task_started", "released"]
    assert (told["owner"], told["left"]) == ("spotferry", [])
    assert told["sudo"] == "spotferry ALL=(ALL) NOPASSWD:ALL\n"
