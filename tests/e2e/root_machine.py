"""Run by test_agent_as_root in namespaces of its own: a machine on which the agent is root; prints what happened."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.e2e import machine as m

TASK = [
    "id -un; pwd; echo kept > file",
    "for what in environ mem; do head -c 1 /proc/$PPID/$what > /dev/null 2>&1 && echo can read $what; done; true",
    "ls /var/lib/spotferry/log /var/lib/spotferry/spool 2> /dev/null && echo can list || true",
    "(setsid sleep 31314 &); echo up; sleep 60",
]


class RootMachine(m.Machine):
    """A machine of the agent's own, with nothing said about where to keep things."""

    @property
    def environment(self) -> dict[str, str]:
        """Without a directory for the agent."""
        given = {**super().environment, "HOME": "/root"}
        del given["SPOTFERRY_BASE"]
        return given


def main() -> None:
    """Boot, let the task run, release it, tell."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    fake = m.broker(task=TASK)
    m.with_upload(fake, m.tar_gz({"data/model": "weights"}))
    machine = RootMachine(directory, fake)
    machine.base = Path("/var/lib/spotferry")
    try:
        with fake, machine:
            fake.until(lambda: b"up" in fake.log)
            fake.directive = {"kind": "release", "reason": "instance_termination"}
            machine.over()
            told = {
                "log": fake.log.decode(),
                "reports": fake.reports,
                "problems": fake.problems,
                "owner": (Path("/home/spotferry/count/data/model")).owner(),
                "left": [pid for pid in m.pids() if b"31314" in m.command_line(pid)],
                "sudo": Path("/etc/sudoers.d/spotferry").read_text(),
            }
    finally:
        shutil.rmtree(directory)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    assert os.getpid() == 1, "only in namespaces of its own: it makes a user"
    main()
