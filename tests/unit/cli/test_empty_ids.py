"""An empty id, as an unset variable of a script makes one, is refused by every command that takes an id."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from cli import region_target
from cli.main import main

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

IDS = ("JOB", "[JOB]", "INSTANCE", "REGION")
"""What the places for ids are called."""


def _commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that lead to it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from _commands(below, (*words, name))


def _calls() -> Iterator[tuple[str, ...]]:
    """A call of each command that takes an id, with an empty one."""
    for words, command in _commands(main):
        arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
        if any(argument.metavar in IDS for argument in arguments):
            yield (*words, *("" if argument.metavar in IDS else "aws" for argument in arguments))


CALLS = list(_calls())


def test_the_commands_are_found() -> None:
    """The next test is about all of them."""
    names = {call[0] for call in CALLS}
    assert names >= {"show", "logs", "cancel", "retry", "checkpoint", "restore", "cost", "destroy", "region", "local"}


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_an_empty_id_is_wrong_input(
    run: "Run", broker: "FakeBroker", monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...]
) -> None:
    """Status 2 before anybody is asked: it is neither all of them nor none."""

    def nobody(*_: object) -> None:
        raise AssertionError("a cloud was asked")

    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(region_target, "_client", nobody)
    result = run(*call)
    assert (result.exit_code, result.stdout, broker.asked) == (2, "", [])
    assert re.match("Error: (JOB|INSTANCE|REGION): '' is not ", result.stderr)


@pytest.mark.parametrize("option", ["--idempotency-key", "--from-stack"])
def test_an_empty_key_or_name_is_wrong_input(run: "Run", broker: "FakeBroker", tmp_path: Path, option: str) -> None:
    """It is not taken for one that was left out: a second submission would be a second job."""
    (tmp_path / "job.yml").write_text("task: {run: 'true'}")
    where = ("region", "add", "aws", "us-east-1") if option == "--from-stack" else ("submit", tmp_path / "job.yml")
    result = run(*where, option, "")
    assert (result.exit_code, broker.asked) == (2, [])
    assert option in result.stderr
