"""How the real agent ends, as a real process: killed, told to stop, terminated, or with its lease over."""

import random
import signal
import time
from pathlib import Path

from spotferry.agent.workdir import WORKDIR_PART
from tests.e2e import machine as m

TASK_SECRET = "a-value-that-nobody-may-see"


def test_kill_in_the_middle_of_an_upload_commits_nothing(tmp_path: Path) -> None:
    """The agent dies at a random byte of a checkpoint: nothing counts, and the machine ends itself."""
    cut = random.Random(7).randrange(60_000)  # noqa: S311  (a seed, so that a failure repeats)
    fake = m.broker(task=["head -c 300000 /dev/urandom > state; echo ready; sleep 60"])
    fake.cut_put_after = cut
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"ready" in fake.log)
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: fake.puts_begun)
        m.kill(machine.agent_pid())
        assert machine.over()[0] == "shutdown -h now"
    assert fake.commits == []


def test_chunks_are_sent_again_when_the_bucket_falters(tmp_path: Path) -> None:
    """Failing PUTs are repeated; the commit holds every chunk."""
    fake = m.broker(task=["head -c 200000 /dev/urandom > state; sleep 60"])
    fake.refuse_puts = 2
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: fake.reported("task_started"))
        time.sleep(0.2)
        fake.directive = {"kind": "release", "reason": "job_termination"}
        machine.over()
    (commit,) = fake.commits
    assert (commit["reason"], len(commit["parts"][0]["etags"])) == ("job_termination", 4)
    assert fake.problems == []


def test_lease_over_kills_the_task_and_the_machine(tmp_path: Path) -> None:
    """Without the broker the job ends with its lease, even a task that ignores SIGTERM."""
    fake = m.broker(task=["trap '' TERM; echo up; while true; do sleep 1; done"])
    fake.lease_seconds = 1.5
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        fake.away_until = time.monotonic() + 100
        began_at = time.monotonic()
        assert machine.over()[0] == "shutdown -h now"
        assert 1 < time.monotonic() - began_at < 6
        assert machine.strays() == []
    assert "lease" in machine.console


def test_broker_away_for_seconds_loses_nothing(tmp_path: Path) -> None:
    """The job runs on; the log and the reports come later, in order and whole."""
    fake = m.broker(task=["python3 count.py 12"])
    m.with_upload(fake, m.count_upload())
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"step 1\n" in fake.log)
        fake.away_until = time.monotonic() + 3
        machine.over()
    assert fake.problems == []
    assert fake.log.decode().splitlines() == [f"step {number}" for number in range(1, 13)]
    assert fake.reported("task_exited") == [{"exit_code": 0, "outputs": False}]


def test_attempt_that_lost_the_job_stops_and_shuts_down(tmp_path: Path) -> None:
    """410: the task is ended, nothing more is sent, the machine ends."""
    fake = m.broker(task=["echo up; sleep 60"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        fake.gone = True
        assert machine.over()[0] == "shutdown -h now"
        assert machine.strays() == []
    assert fake.reported("released") == []


def test_stop_kills_what_outlives_its_grace(tmp_path: Path) -> None:
    """A cancelled task gets SIGTERM, its grace, then SIGKILL; its daemons too; nothing is kept but the log."""
    daemon = "(setsid bash -c \"trap '' TERM; cd /; sleep 31313\" &); exec 2>/dev/null"
    fake = m.broker(task=[daemon, "trap 'echo told' TERM; echo up; while :; do sleep .1; done"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        daemons = fake.until(lambda: [pid for pid in m.pids() if b"sleep\x0031313" in m.command_line(pid)])
        fake.directive = {"kind": "stop", "reason": "cancelled"}
        machine.over()
        assert set(daemons).isdisjoint(m.pids())
    assert fake.log == b"up\ntold\n"
    assert fake.commits == []
    assert fake.reported("released") == [{"checkpoint": None, "reason": "cancelled"}]


def test_wait_then_go_brings_the_newest_checkpoint(tmp_path: Path) -> None:
    """A successor sets up, waits, and starts from the checkpoint that comes with the go."""
    fake = m.broker(task=["cat state"])
    fake.hold_go = True
    fake.directive = {"kind": "wait", "reason": "owned elsewhere"}
    stored = fake.store(m.tar_gz({"state": "newest\n"}))
    part = {"name": WORKDIR_PART, **stored}
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: fake.phase() == "waiting")
        assert fake.reported("task_started") == []
        saved = {"number": 9, "engine": "workdir", "parts": [part]}
        fake.directive = {"kind": "go", "reason": "", "mode": "restore", "checkpoints": [saved], "exit_code": None}
        machine.over()
    assert fake.reported("task_started") == [{"restored_from": 9, "why_not": ""}]
    assert fake.log == b"newest\n"


def test_log_offsets_are_exact_over_many_chunks(tmp_path: Path) -> None:
    """Text of several bytes a letter, broken bytes and more than one call's worth arrive whole and in place."""
    script = (
        "import sys; out = sys.stdout.buffer\n"
        "for n in range(32000): out.write(f'{n} grüße 漢字 🚢\\n'.encode())\n"
        "out.write(b'broken \\xff\\xfe half \\xf0\\x9f'); out.flush()\n"
    )
    fake = m.broker(task=["python3 talk.py"])
    m.with_upload(fake, m.tar_gz({"talk.py": script}))
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        machine.over()
    expected = "".join(f"{n} grüße 漢字 🚢\n" for n in range(32000)) + "broken \ufffd\ufffd half \ufffd"
    assert fake.problems == []
    assert fake.log == expected.encode()
    assert len(fake.log) > 3 * 256 * 1024


def test_no_credential_is_found_on_the_machine(tmp_path: Path) -> None:
    """Neither token, agent key nor a secret's value is in the agent's files, environment or arguments."""
    fake = m.broker(setup=["true"], task=["echo up; sleep 60"], secrets={"HIDDEN": TASK_SECRET})
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        pid = machine.agent_pid()
        hidden = [m.TOKEN.encode(), fake.key.encode(), TASK_SECRET.encode()]
        shown = [path.read_bytes() for path in machine.base.rglob("*") if path.is_file()]
        shown += [m.command_line(other) for other in machine.processes()]
        shown += [Path(f"/proc/{pid}/environ").read_bytes(), machine.console.encode()]
        assert len(shown) > 5
        assert not [value for value in hidden if any(value in content for content in shown)]


def test_terminated_agent_releases_the_job(tmp_path: Path) -> None:
    """The system's own SIGTERM, as a machine goes down, is a notice: the last checkpoint is made."""
    fake = m.broker(task=["echo up; sleep 60"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        m.send(machine.agent_pid(), signal.SIGTERM)
        machine.over()
    assert fake.reported("released") == [{"checkpoint": 1, "reason": "instance_termination"}]


def test_task_killed_with_its_machine_has_no_result(tmp_path: Path) -> None:
    """A task that dies of a signal just before a notice was ended with the machine: it goes on elsewhere."""
    fake = m.broker(task=["echo up; kill -TERM $$"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        fake.directive = {"kind": "release", "reason": "instance_termination"}
        machine.over()
    assert fake.reported("task_exited") == []
    assert fake.reported("released") == [{"checkpoint": 1, "reason": "instance_termination"}]


def test_task_ended_by_its_own_signal_has_that_status(tmp_path: Path) -> None:
    """128 + n, where nothing says that the machine is going."""
    fake = m.broker(task=["kill -SEGV $$"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        machine.over()
    assert fake.reported("task_exited") == [{"exit_code": 128 + signal.SIGSEGV, "outputs": False}]


def test_agent_that_cannot_be_fetched_is_refused(tmp_path: Path) -> None:
    """An agent with another digest never runs."""
    fake = m.broker()
    fake.agent += b"tampered"
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        time.sleep(1)
        assert not (machine.base / "agent.pyz").exists()
    assert fake.calls == []
