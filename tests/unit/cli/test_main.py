"""The front of the command: quick help, version, exit statuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import cli.jobs
import spotferry
from cli.main import COMMANDS, main

ROOT = Path(__file__).parents[3]
HEAVY = [
    "boto3",
    "botocore",
    "httpx",
    "pydantic",
    "ruamel",
    "pathspec",
    "spotferry.types",
    "local",
    "sqlite3",
    "asyncio",
]


def test_help_imports_nothing_that_it_does_not_need() -> None:
    """`spotferry --help` and `--version` answer before any library of a subcommand is imported."""
    code = (
        "import json, sys; sys.path[:0] = ['layers/shared', '.']\n"
        "from click.testing import CliRunner; from cli.main import main\n"
        "before = set(sys.modules)\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "assert CliRunner().invoke(main, ['--version']).exit_code == 0\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(answer.stdout))
    assert loaded.isdisjoint(HEAVY)


def test_help_names_every_command() -> None:
    """Each subcommand is in the help with its line."""
    text = CliRunner().invoke(main, ["--help"]).output
    for name, (_, line) in COMMANDS.items():
        assert f"  {name} " in text
        assert line in text


@pytest.mark.parametrize(
    "name", [n for n, (module, _) in COMMANDS.items() if (ROOT / f"{module.replace('.', '/')}.py").exists()]
)
def test_every_command_explains_itself(name: str) -> None:
    """`spotferry NAME --help` works for each."""
    result = CliRunner().invoke(main, [name, "--help"], catch_exceptions=False)
    assert result.exit_code == 0
    assert f"main {name} [OPTIONS]" in result.output


def test_version() -> None:
    """`--version` prints the product's version."""
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.output) == (0, f"spotferry, version {spotferry.__version__}\n")


@pytest.mark.parametrize(
    "args", [["lst"], ["list", "--bogus"], ["show"], ["--auth", "magic", "list"], ["list", "--limit", "0"]]
)
def test_a_wrong_call_is_status_2(args: list[str]) -> None:
    """What the command does not understand is bad input."""
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error: " in result.stderr


def test_ctrl_c_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script can tell an interrupted command from one that failed."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.jobs, "broker", interrupted)
    result = CliRunner().invoke(main, ["list"])
    assert result.exit_code == 130
    assert result.stdout == ""
