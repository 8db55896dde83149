"""The keys of a job file about checkpoints, restarts and limits."""

from decimal import Decimal

import pytest

from spotferry.types import JobFile, read_job_file
from spotferry.types.job_file_recovery import SIGNALS
from tests.unit.types.test_job_file_refusals import TASK, only_problem


def test_all_of_it_is_read() -> None:
    """Every key ends in the field of its name, and is read back from what is stored."""
    job_file = read_job_file(
        TASK
        + """
post_setup: {run: nvidia-smi}
pre_checkpoint: {run: [sync, ls]}
post_checkpoint: {run: df}
pre_restore: {run: mkdir -p out}
post_restore: {run: ls out}
checkpoint:
  engine: paths
  paths: [checkpoints/*, state.json]
  signal: SIGUSR1
  interval_seconds: 600
  keep: 3
  on_rebalance: true
retry:
  max_restarts: 5
  on_exit_codes: [1, 137]
max_duration_hours: 36.5
max_cost_usd: 12.50
"""
    )
    assert job_file.pre_checkpoint.run == ("sync", "ls")
    assert job_file.checkpoint.model_dump() == {
        "engine": "paths",
        "paths": ("checkpoints/*", "state.json"),
        "signal": "SIGUSR1",
        "interval_seconds": 600,
        "keep": 3,
        "on_rebalance": True,
    }
    assert job_file.retry.model_dump() == {"max_restarts": 5, "on_exit_codes": (1, 137)}
    assert (job_file.max_duration_hours, job_file.max_cost_usd) == (Decimal("36.5"), Decimal("12.50"))
    assert read_job_file(job_file.model_dump_json()) == job_file


def test_what_is_left_out_is_chosen_for_the_job() -> None:
    """No restarts, no limits, an interval and an engine that the broker and the machine choose."""
    job_file = read_job_file(TASK)
    assert job_file == JobFile.model_validate({"task": {"run": "ls"}})
    assert (job_file.checkpoint.engine, job_file.checkpoint.interval_seconds) == ("auto", None)
    assert not job_file.retry.max_restarts
    assert not job_file.max_cost_usd
    assert not job_file.max_duration_hours


def test_periodic_checkpoints_can_be_turned_off() -> None:
    """An interval of 0 is none, where one of 9 seconds is refused."""
    assert read_job_file(TASK + "checkpoint: {interval_seconds: 0}").checkpoint.interval_seconds == 0


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_that_is_named_is_taken(name: str) -> None:
    """What the refusal lists is what the key takes."""
    text = f"checkpoint: {{paths: [state], signal: {name}}}\n"
    assert read_job_file(TASK + text).checkpoint.signal == name


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("post_setup: ls\n", "post_setup", "mapping with `run:`"),
        ("pre_restore: {run: [' ']}\n", "pre_restore.run.0", "blank"),
        ("checkpoint: workdir\n", "checkpoint", "must be a mapping"),
        ("checkpoint: {engin: criu}\n", "checkpoint.engin", "did you mean engine?"),
        ("checkpoint: {engine: work_dir}\n", "checkpoint.engine", "did you mean workdir?"),
        ("checkpoint: {engine: paths}\n", "checkpoint.engine", "needs checkpoint.paths"),
        ("checkpoint: {engine: criu, paths: [a]}\n", "checkpoint.paths", "not used by engine criu"),
        ("checkpoint: {paths: [/etc]}\n", "checkpoint.paths.0", "checkpoints are made of paths below"),
        ("checkpoint: {paths: a/../../b}\n", "checkpoint.paths", "leaves the work directory"),
        ("checkpoint: {paths: [a/b**]}\n", "checkpoint.paths.0", "** stands for any directories"),
        ("checkpoint: {paths: [a, a]}\n", "checkpoint.paths.1", "twice"),
        ("checkpoint: {signal: SIGUSR1}\n", "checkpoint.signal", "say which they are"),
        ("checkpoint: {paths: [a], signal: SIGKILL}\n", "checkpoint.signal", "must be SIGUSR1"),
        ("checkpoint: {paths: [a], signal: usr1}\n", "checkpoint.signal", "did you mean SIGUSR1?"),
        ("checkpoint: {paths: [a], signal: 12}\n", "checkpoint.signal", "did you mean SIGUSR2?"),
        ("checkpoint: {interval_seconds: 9}\n", "checkpoint.interval_seconds", "from 10 to 604800"),
        ("checkpoint: {interval_seconds: -1}\n", "checkpoint.interval_seconds", "from 10 to 604800"),
        ("checkpoint: {interval_seconds: 1.5}\n", "checkpoint.interval_seconds", "whole number"),
        ("checkpoint: {interval_seconds: 10m}\n", "checkpoint.interval_seconds", "whole number"),
        ("checkpoint: {keep: 0}\n", "checkpoint.keep", "from 1 to 100"),
        ("checkpoint: {on_rebalance: maybe}\n", "checkpoint.on_rebalance", "true or false"),
        ("retry: 3\n", "retry", "must be a mapping"),
        ("retry: {max_restart: 3}\n", "retry.max_restart", "did you mean max_restarts?"),
        ("retry: {max_restarts: 1001}\n", "retry.max_restarts", "from 0 to 1000"),
        ("retry: {on_exit_codes: [3]}\n", "retry.on_exit_codes", "without retry.max_restarts"),
        ("retry: {max_restarts: 1, on_exit_codes: [1, 0]}\n", "retry.on_exit_codes.1", "from 1 to 255"),
        ("retry: {max_restarts: 1, on_exit_codes: 256}\n", "retry.on_exit_codes", "from 1 to 255"),
        ("retry: {max_restarts: 1, on_exit_codes: {a: 1}}\n", "retry.on_exit_codes", "a list of exit codes"),
        ("max_restarts: 3\n", "max_restarts", "did you mean retry.max_restarts?"),
        ("interval_seconds: 3\n", "interval_seconds", "did you mean checkpoint.interval_seconds?"),
        ("max_duration_hours: 9000\n", "max_duration_hours", "from 0 to 8760"),
        ("max_cost_usd: $3\n", "max_cost_usd", "a number"),
        ("max_cost_usd: 0.00\n", "max_cost_usd", "above 0"),
        ("max_duration_hours: 0\n", "max_duration_hours", "above 0"),
        ("max_cost_usd: \u0663\n", "max_cost_usd", "a number"),
    ],
)
def test_what_is_wrong_is_named_with_key_and_line(text: str, field: str, words: str) -> None:
    """One fault is one problem, in the line where it stands; a key that would have no effect is one."""
    found = only_problem(TASK + text)
    assert found[:2] == (field, 3)
    assert words in found[2]
