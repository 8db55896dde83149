"""The real agent as a real process: checkpoints from time to time, on order, with commands, by the paths engine."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import machine as m
from tests.unit.agent.fake_broker import FakeBroker

PATHS = {"engine": "auto", "paths": ["state"], "signal": "SIGUSR1", "grace_seconds": 10}
SAVES_ITSELF = """\
import os, pathlib, signal, sys, time
state = pathlib.Path("state")
state.mkdir(exist_ok=True)
step = max((int(f.name) for f in state.iterdir()), default=0)
print("from", step, flush=True)
def save(*_):
    said = dict(line.split("=", 1) for line in open(os.environ["SPOTFERRY_CHECKPOINT_ENV"]).read().split())
    (state / str(step)).write_text(said["SPOTFERRY_REASON"])
    print("saved", step, said["SPOTFERRY_DEADLINE"][:2], flush=True)
    pathlib.Path(os.environ["SPOTFERRY_CHECKPOINT_READY"]).touch()
signal.signal(signal.SIGUSR1, save)
while step < int(sys.argv[1]):
    time.sleep(0.05)
    step += 1
"""


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    """Fresh directories for machines."""
    return iter(tmp_path / f"machine-{number}" for number in range(10))


def command_ends(fake: FakeBroker) -> list[tuple[str, int]]:
    """The commands that were reported, and how they ended."""
    return [(str(data["command"]), int(data["exit_code"])) for data in fake.reported("command_ended")]


def test_checkpoints_are_made_from_time_to_time(tmp_path: Path) -> None:
    """At the interval of the word, with the reason heartbeat, while the task goes on; none before the broker asks."""
    fake = m.broker(task=["python3 count.py 60"])
    m.with_upload(fake, m.count_upload())
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"step 5\n" in fake.log)
        assert fake.commits == []
        fake.checkpoint_seconds = 1.0
        fake.until(lambda: len(fake.commits) == 2)
        fake.checkpoint_seconds = None
        machine.over()
    assert fake.problems == []
    assert {commit["reason"] for commit in fake.commits} == {"heartbeat"}
    first, second = fake.commits[:2]
    assert (first["engine"], first["why"]) == ("workdir", "workdir: criu is not installed")
    assert first["seconds"] >= first["paused_seconds"] > 0
    assert len(fake.commits) <= 3
    assert fake.log.decode().splitlines() == [f"step {number}" for number in range(1, 61)]
    assert second["content"] != first["content"]


def test_the_task_stands_still_for_the_reading_and_not_for_the_network(tmp_path: Path) -> None:
    """Chunks that the network is too slow for wait on the disk, where nothing of them stays."""
    fake = m.broker(task=["head -c 3000000 /dev/urandom > state; echo up; sleep 60"])
    fake.put_seconds = 0.5
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        (commit,) = fake.until(lambda: fake.commits)
        assert 0 < commit["paused_seconds"] < commit["seconds"] / 3
        assert fake.until(lambda: not list((machine.base / "spool").iterdir()))
    assert len(commit["parts"][0]["etags"]) > 20


def test_commands_run_at_their_places(places: Iterator[Path]) -> None:
    """After setup, before and after each checkpoint, before and after a restore; each is reported."""
    points = ("post_setup", "pre_checkpoint", "post_checkpoint", "pre_restore", "post_restore")
    commands = {point: [f'echo "{point} $(cat step 2>/dev/null)" >> $HOME/points'] for point in points}
    fake = m.broker(task=["echo 7 > step; echo up; sleep 60"], commands=commands)
    with fake, m.Machine(next(places), fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: ("post_checkpoint", 0) in command_ends(fake))
        fake.directive = {"kind": "release", "reason": "job_termination"}
        machine.over()
        seen = (machine.base / "home" / "points").read_text().splitlines()
    around = ["pre_checkpoint 7", "post_checkpoint 7"]
    assert seen == ["post_setup ", *around, *around]
    assert [name for name, _ in command_ends(fake)] == [line.split()[0] for line in seen]
    assert [commit["reason"] for commit in fake.commits] == ["heartbeat", "job_termination"]
    assert fake.reported("released") == [{"checkpoint": 2, "reason": "job_termination"}]
    assert fake.problems == []

    other = m.broker(**{**fake.plan, "mode": "restore", "task": ["true"]})
    other.bucket.objects.update(fake.bucket.objects)
    for saved in other.plan["checkpoints"]:
        saved["parts"][0]["url"] = saved["parts"][0]["url"].replace(fake.url, other.url)
    with other, m.Machine(next(places), other) as machine:
        machine.over()
        seen = (machine.base / "home" / "points").read_text().splitlines()
    assert seen == ["post_setup ", "pre_restore ", "post_restore 7"]
    assert other.reported("task_started") == [{"restored_from": 2, "why_not": ""}]


@pytest.mark.parametrize(
    ("point", "event"),
    [("post_setup", "setup_failed"), ("pre_checkpoint", "checkpoint_failed"), ("post_checkpoint", "")],
)
def test_a_command_that_fails_has_its_consequence(tmp_path: Path, point: str, event: str) -> None:
    """Of post_setup the setup fails, of pre_checkpoint that checkpoint, of post_checkpoint nothing; it is reported."""
    fake = m.broker(task=["echo up; sleep 60"], commands={point: ["true", "exit 3"]})
    with fake, m.Machine(tmp_path / "m", fake):
        if point != "post_setup":
            fake.until(lambda: b"up" in fake.log)
            fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: command_ends(fake))
        if event:
            (data,) = fake.until(lambda: fake.reported(event))
            assert "exit 3" in str(data)
            assert fake.commits == []
        else:
            assert len(fake.commits) == 1
    assert command_ends(fake)[0] == (point, 3)


def test_the_task_saves_itself_and_its_files_travel(places: Iterator[Path]) -> None:
    """It is signalled with its deadline, says that it is ready, and goes on elsewhere from what it wrote."""
    fake = m.broker(task=["python3 saves.py 400"], checkpoint=PATHS)
    m.with_upload(fake, m.tar_gz({"saves.py": SAVES_ITSELF}))
    with fake, m.Machine(next(places), fake) as machine:
        fake.until(lambda: b"from 0" in fake.log)
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: fake.commits)
        assert (fake.commits[0]["engine"], fake.commits[0]["why"]) == ("paths", "paths: they are named")
        fake.imds["spot/instance-action"] = {"action": "terminate", "time": "2030-01-01T00:02:00Z"}
        machine.over()
    assert [commit["reason"] for commit in fake.commits] == ["heartbeat", "instance_termination"]
    saves = [line.split() for line in fake.log.decode().splitlines() if line.startswith("saved")]
    assert [(kind, century) for kind, _, century in saves] == [("saved", "20")] * 2
    kept = {part["name"] for part in fake.commits[1]["parts"] if "same_as" in part}
    assert kept == {part["name"] for part in fake.commits[0]["parts"] if part["name"].startswith("pack")}
    assert fake.problems == []

    other = m.broker(**{**fake.plan, "mode": "restore", "task": ["python3 saves.py 1; ls state | wc -l"]})
    other.bucket.objects.update(fake.bucket.objects)
    for part in [other.plan["work_dir"], *(p for saved in other.plan["checkpoints"] for p in saved["parts"])]:
        part["url"] = part["url"].replace(fake.url, other.url)
    with other, m.Machine(next(places), other) as machine:
        machine.over()
    assert other.log.decode().splitlines() == [f"from {saves[1][1]}", "2"]


def test_a_task_without_a_handler_is_not_killed_by_the_signal(tmp_path: Path) -> None:
    """Nor is the shell around it: a signal goes to those who asked for it."""
    fake = m.broker(task=["mkdir state; echo 1 > state/a; echo up; sleep 60"], checkpoint=PATHS)
    with fake, m.Machine(tmp_path / "m", fake):
        fake.until(lambda: b"up" in fake.log)
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: fake.commits)
        fake.until(lambda: fake.phase() == "running")
        assert fake.reported("task_exited") == []


def test_a_failed_task_is_started_again_where_it_failed(tmp_path: Path) -> None:
    """The broker answers its end with `retry`: it runs in the work directory as it left it; no outputs are sent."""
    fake = m.broker(task=["echo run >> runs; cat runs; test $(wc -l < runs) -ge 3"], outputs=["runs"])
    fake.retry_exits = 2
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        machine.over()
    assert [data["exit_code"] for data in fake.reported("task_exited")] == [1, 1, 0]
    assert fake.log.decode().split() == ["run"] * 6
    assert [commit["kind"] for commit in fake.commits] == ["checkpoint", "checkpoint", "checkpoint", "outputs"]
    assert fake.problems == []


def test_a_machine_that_is_lost_in_the_pause_loses_nothing_of_the_failed_run(tmp_path: Path) -> None:
    """The order to start again says to wait; a release meanwhile is heeded at once, and keeps what the run left."""
    fake = m.broker(task=["echo run >> runs; exit 3"])
    fake.retry_exits, fake.pause_seconds = 1, 300
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: fake.phase() == "waiting" and fake.reported("task_exited"))
        fake.directive = {"kind": "release", "reason": "instance_termination"}
        machine.over()
    assert fake.reported("released") == [{"checkpoint": 1, "reason": "instance_termination"}]
    (commit,) = fake.commits
    assert (commit["task_over"], commit["exit_code"], commit["engine"]) == (False, None, "workdir")
    assert len(fake.reported("task_started")) == 1
    assert fake.problems == []


@pytest.mark.parametrize("bytes_through", [0, 17, 60_000, 100_000])
def test_an_agent_that_is_killed_in_a_checkpoint_leaves_the_last_one(tmp_path: Path, bytes_through: int) -> None:
    """SIGKILL while a chunk is under way: what counts is what was committed before."""
    fake = m.broker(task=["head -c 300000 /dev/urandom > state; echo up; sleep 60"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"up" in fake.log)
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: fake.commits)
        fake.cut_put_after = bytes_through
        begun = fake.puts_begun
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: fake.puts_begun > begun)
        m.send(machine.agent_pid(), signal.SIGKILL)
        machine.over()
    assert len(fake.commits) == 1
    assert [saved["number"] for saved in fake.plan["checkpoints"]] == [1]


def test_a_training_script_goes_on_elsewhere_as_it_is(places: Iterator[Path]) -> None:
    """The example: signalled, archived while it trains, resumed by itself on the next machine; the same in the end."""
    script = (Path(__file__).parents[2] / "examples" / "torch-style" / "work" / "train.py").read_text()
    options = {"engine": "auto", "paths": ["checkpoints"], "signal": "SIGUSR1", "grace_seconds": 1}
    fake = m.broker(task=["python3 train.py --steps 100000 --save-every 100000"], checkpoint=options)
    m.with_upload(fake, m.tar_gz({"train.py": script}))
    with fake, m.Machine(next(places), fake) as machine:
        fake.until(lambda: b"from step 0" in fake.log)
        fake.checkpoint_seconds = 1.0
        fake.until(lambda: len(fake.commits) == 2)
        m.send(machine.boot.pid, signal.SIGKILL)
        m.kill(machine.agent_pid())
    saved = [int(line.split()[1].rstrip(":")) for line in fake.log.decode().splitlines() if "saved" in line]
    assert len(saved) >= 2

    other = m.broker(**{**fake.plan, "mode": "restore", "task": [f"python3 train.py --steps {saved[-1] + 50}"]})
    other.bucket.objects.update(fake.bucket.objects)
    for part in [other.plan["work_dir"], *(p for c in other.plan["checkpoints"] for p in c["parts"])]:
        part["url"] = part["url"].replace(fake.url, other.url)
    with other, m.Machine(next(places), other) as machine:
        machine.over()
    lines = other.log.decode().splitlines()
    assert lines[0] == f"from step {saved[1]}"
    assert lines[-1].startswith("weights ")
    assert other.reported("task_started") == [{"restored_from": 2, "why_not": ""}]
