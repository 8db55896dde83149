"""The real agent copies inputs before setup, and fails once where it cannot."""

from pathlib import Path

from tests.e2e import machine as m
from tests.unit.agent.fake_broker import FakeBroker, Json

CONTENT = bytes(range(256)) * 4096


def an_input(fake: FakeBroker, path: str, name: str = "", content: bytes = CONTENT) -> Json:
    """An input of the fake's bucket, or of that name in it, as the plan has it."""
    url = f"{fake.url}/bucket/{name}" if name else fake.store(content)["url"]
    where = {"uri": f"s3://bucket/inputs/{path}", "region": "us-east-1", "access": "broker"}
    return {"path": path, "url": url, "size_gb": 0.002, **where}


def test_inputs_are_there_for_setup_and_task_and_in_no_checkpoint(tmp_path: Path) -> None:
    """Setup and task read them by the variable; the work directory, which checkpoints hold, does not grow by them."""
    fake = m.broker(
        setup=['wc -c < "$SPOTFERRY_INPUTS_DIR/deep/set.bin"'],
        task=[
            'cmp "$SPOTFERRY_INPUTS_DIR/deep/set.bin" "$HOME/spotferry-inputs/two.bin" || ls -A; echo ready; sleep 60'
        ],
    )
    fake.plan["inputs"] = [an_input(fake, "deep/set.bin"), an_input(fake, "two.bin", content=CONTENT + b"!")]
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"ready" in fake.log)
        fake.directive = {"kind": "release", "reason": "job_termination"}
        machine.over()
    assert str(len(CONTENT)).encode() in fake.log
    assert b"EOF" in fake.log
    (commit,) = fake.commits
    assert commit["parts"][0]["size_bytes"] < 1000
    assert fake.problems == []


def test_input_that_is_not_there_fails_once_and_a_retry_finds_it(tmp_path: Path) -> None:
    """One report with its address as the author wrote it, no setup; when it is there at last a retry goes on."""
    fake = m.broker(setup=["echo set up"], task=['cat "$SPOTFERRY_INPUTS_DIR/x"'])
    fake.plan["inputs"] = [an_input(fake, "x", "late")]
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: fake.phase() == "held")
        (failed,) = fake.reported("startup_failed")
        assert failed["reason"].startswith("the input s3://bucket/inputs/x cannot be had: HTTP 404")
        assert b"set up" not in fake.log
        fake.bucket.objects["late"] = b"at last"
        fake.directive = {"kind": "retry", "reason": ""}
        fake.until(lambda: fake.reported("task_exited"))
        fake.directive = {"kind": "shut_down", "reason": ""}
        machine.over()
    assert b"at last" in fake.log
    assert len(fake.reported("startup_failed")) == 1
    assert fake.problems == []
