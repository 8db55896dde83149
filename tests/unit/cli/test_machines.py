"""`spotferry instances` and `destroy`."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli import machines

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run


def test_machines_are_listed(run: "Run", broker: "FakeBroker", job: dict[str, Any]) -> None:  # Any: JSON
    """Each machine with its job, what it is and what it costs."""
    broker.on("GET /instances", {"instances": [{**job["instances"][1], "job_id": "j-1"}]})
    line = run("instances").stdout.splitlines()[1].split()
    assert " ".join(line) == "i-2 j-1 i-0b aws us-east-1b m5.large spot running $0.0350 1m30s $0.0009"
    assert json.loads(run("instances", "--json").stdout)["instances"][0]["instance_id"] == "i-2"


def test_no_machines_is_said(run: "Run", broker: "FakeBroker") -> None:
    """An empty list is a word."""
    broker.on("GET /instances", {"instances": []})
    assert run("instances").stdout == "no machines\n"


def test_destroy_ends_a_machine(run: "Run", broker: "FakeBroker") -> None:
    """--yes asks nothing; the answer says what becomes of it."""
    broker.on("POST /instances/i-2/destroy", {"instance": {"instance_id": "i-2", "state": "shutting-down"}})
    assert run("destroy", "i-2", "--yes").stdout == "i-2 is on its way out (shutting-down)\n"
    assert json.loads(run("destroy", "i-2", "--yes", "--json").stdout)["instance"]["instance_id"] == "i-2"


def test_destroy_asks_nobody_who_cannot_answer(run: "Run", broker: "FakeBroker") -> None:
    """A script must say --yes."""
    result = run("destroy", "i-2")
    assert (result.exit_code, broker.asked) == (2, [])
    assert "--yes" in result.stderr


@pytest.mark.parametrize(("typed", "asked"), [("y\n", 1), ("n\n", 0), ("\n", 0)])
def test_destroy_asks_a_person(
    run: "Run", broker: "FakeBroker", monkeypatch: pytest.MonkeyPatch, typed: str, asked: int
) -> None:
    """Only a yes ends the machine."""

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    class System:
        stdin = Terminal()

    monkeypatch.setattr(machines, "sys", System())
    broker.on("POST /instances/i-2/destroy", {"instance": {"instance_id": "i-2"}})
    assert run("destroy", "i-2", input=typed).exit_code == 0
    assert len(broker.asked) == asked
