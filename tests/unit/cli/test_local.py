"""`spotferry local`: starting, ending and steering the cloud on a laptop."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from cli import local_cloud
from local.services import StartError
from local.stack import Options, Stack

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

CLOUD = "http://cloud.example"


class FakeStack:
    """Stands for the processes: records what was asked, and leaves the record that the real one leaves."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Path, Options | None]] = []

    def up(self, folder: Path, options: Options) -> Stack:
        """Start."""
        self.calls.append(("up", folder, options))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stack.json").write_text(json.dumps({"api_url": "http://api.example", "cloud_url": CLOUD}))
        return Stack(folder, "http://api.example", "http://emulator.example", CLOUD, "us-east-1", "bucket", {})

    def down(self, folder: Path) -> None:
        """End."""
        self.calls.append(("down", folder, None))
        (folder / "stack.json").unlink(missing_ok=True)


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    """No process is started."""
    fake = FakeStack()
    monkeypatch.setattr(local_cloud, "start_stack", fake.up)
    monkeypatch.setattr(local_cloud, "end_stack", fake.down)
    return fake


def test_up_prints_the_address(run: "Run", stack: FakeStack, tmp_path: Path) -> None:
    """Options reach the stack, the address is all of stdout, and the state is in this folder."""
    result = run("local", "up", "--seed", "3", "--speed-up", "20", "--enforce-iam")
    assert (result.exit_code, result.stdout) == (0, "http://api.example\n")
    assert stack.calls == [("up", tmp_path / ".spotferry", Options(seed=3, speed_up=20.0, auth=True))]
    assert json.loads(run("local", "up", "--json").stdout)["cloud_url"] == CLOUD


def test_up_opens_the_clouds_that_are_named(run: "Run", stack: FakeStack) -> None:
    """AWS alone unless others are named; a name that is none starts nothing."""
    assert run("local", "up", "--clouds", "aws, paperspace,aws").exit_code == 0
    [(_, _, options)] = stack.calls
    assert options == Options(clouds=("aws", "paperspace"))
    for wrong in ("ibm", "aws,ibm", ""):
        result = run("local", "up", "--clouds", wrong)
        assert (result.exit_code, len(stack.calls)) == (2, 1)
        assert "known are aws, gcp, azure, paperspace" in result.stderr


def test_up_from_a_folder_below_finds_the_one_above(
    run: "Run", stack: FakeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second cloud is not started by accident."""
    run("local", "up")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    run("local", "up")
    assert stack.calls[1][1] == tmp_path / ".spotferry"


def test_a_start_that_fails_says_why(run: "Run", stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of the process that did not start is passed on."""

    def fail(folder: Path, options: Options) -> Stack:
        stack.up(folder, options)
        raise StartError("port 1 is taken")

    monkeypatch.setattr(local_cloud, "start_stack", fail)
    result = run("local", "up")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did not start: port 1 is taken" in result.stderr


def test_foreground_ends_it_on_ctrl_c(run: "Run", stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the foreground leaves nothing behind."""

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.local_cloud.time.sleep", interrupted)
    assert run("local", "up", "--foreground").exit_code == 130
    assert [name for name, _, _ in stack.calls] == ["up", "down"]
    options = stack.calls[0][2]
    assert options is not None
    assert options.tied


def test_down_says_whether_there_was_one(run: "Run", stack: FakeStack) -> None:
    """Ending what is not there is no failure, and is said; a damaged record does not hinder."""
    assert "No local cloud was up here." in run("local", "down").stderr
    run("local", "up")
    Path(".spotferry/stack.json").write_text("{")
    result = run("local", "down")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "is down" in result.stderr
    assert [name for name, _, _ in stack.calls] == ["down", "up", "down"]


def test_status_without_a_cloud_is_status_1(run: "Run") -> None:
    """A script can ask whether it runs."""
    assert (run("local", "status").exit_code, run("local", "status").stdout) == (1, "not up\n")
    assert json.loads(run("local", "status", "--json").stdout)["up"] is False


@pytest.mark.parametrize(("alive", "status"), [(True, 0), (False, 1)])
def test_status_tells_living_from_dead(
    run: "Run", stack: FakeStack, monkeypatch: pytest.MonkeyPatch, *, alive: bool, status: int
) -> None:
    """A record that outlived its processes is not taken for a cloud."""
    run("local", "up")
    made = stack.up(Path(".spotferry"), Options())
    monkeypatch.setattr(local_cloud, "read_stack", lambda _: made)
    monkeypatch.setattr(Stack, "is_alive", lambda _: alive)
    result = run("local", "status")
    assert result.exit_code == status
    assert result.stdout == f"{'up' if alive else 'dead'}  http://api.example\n"
    assert json.loads(run("local", "status", "--json").stdout)["up"] is alive


def test_interrupt_takes_the_jobs_machine(
    run: "Run", stack: FakeStack, broker: "FakeBroker", job: dict[str, object]
) -> None:
    """The market hears the cloud's id of the machine that the job runs on now."""
    stack.up(Path(".spotferry"), Options())
    broker.on("GET /jobs/j-1", job)
    broker.on("POST /_market/interrupt", {"action": "terminate"})
    result = run("local", "interrupt", "j-1", "--notice", "30")
    assert (result.exit_code, result.stdout) == (0, "i-0b (aws us-east-1b m5.large spot) gets its notice now\n")
    assert json.loads(broker.bodies[-1]) == {"allocated_id": "i-0b", "notice_seconds": 30}
    assert str(broker.asked[-1].url) == f"{CLOUD}/_market/interrupt"
    document = json.loads(run("local", "interrupt", "j-1", "--json").stdout)
    assert document == {"allocated_id": "i-0b", "market": {"action": "terminate"}}
    assert json.loads(broker.bodies[-1]) == {"allocated_id": "i-0b"}


def test_a_job_without_a_machine_cannot_be_interrupted(
    run: "Run", stack: FakeStack, broker: "FakeBroker", job: dict[str, object]
) -> None:
    """What is not there is not taken: bad input, and the market hears nothing."""
    stack.up(Path(".spotferry"), Options())
    broker.on("GET /jobs/j-1", {**job, "state": "PENDING", "machine": None})
    result = run("local", "interrupt", "j-1")
    assert result.exit_code == 2
    assert "j-1 is PENDING and has no machine" in result.stderr
    assert broker.calls() == ["GET /jobs/j-1"]


def test_without_a_local_cloud_there_is_nothing_to_interrupt(run: "Run", broker: "FakeBroker") -> None:
    """A broker elsewhere has no market here."""
    result = run("local", "interrupt", "j-1")
    assert (result.exit_code, broker.asked) == (2, [])
    assert "spotferry local up" in result.stderr


@pytest.mark.parametrize(
    ("answer", "status"),
    [(httpx.Response(409, text="gone"), 2), (httpx.Response(500), 1), (httpx.ConnectError("refused"), 1)],
)
def test_a_market_that_says_no(
    run: "Run",
    stack: FakeStack,
    broker: "FakeBroker",
    job: dict[str, object],
    answer: httpx.Response | Exception | Callable[..., Any],  # Any: an answer may be made by the request
    status: int,
) -> None:
    """A refusal is bad input; trouble is a failure."""
    stack.up(Path(".spotferry"), Options())
    broker.on("GET /jobs/j-1", job)
    broker.on("POST /_market/interrupt", answer)
    result = run("local", "interrupt", "j-1")
    assert (result.exit_code, result.stdout) == (status, "")
