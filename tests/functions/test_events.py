"""Every event that stands in the repository is one that its function understands."""

from pathlib import Path

import pytest

from tests.functions.deployment import ROOT, Deployment, event

FUNCTIONS = {path.parent.name for path in ROOT.glob("functions/*/app.py")}
ELSEWHERE = {path.parent.name for path in ROOT.glob("functions/*/main.py")}
"""What runs on other clouds, and has tests of its own."""
EVENTS = sorted(path for path in (ROOT / "events").glob("*/*.json") if path.parent.name not in ELSEWHERE)


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_every_function_has_events() -> None:
    """For each entry point there is something to invoke it with, and no folder is left over."""
    assert {path.parent.name for path in (ROOT / "events").glob("*/*.json")} == FUNCTIONS | ELSEWHERE


@pytest.mark.parametrize("path", EVENTS, ids=_name)
def test_the_event_is_understood(deployment: Deployment, path: Path) -> None:
    """Its function answers it: a call of the API by one of its routes, anything else without an error."""
    what = event(path.parent.name, path.stem)
    if "routeKey" not in what:
        said = deployment.invoke(path.parent.name, what)
        assert said is None or "batchItemFailures" not in said or said["batchItemFailures"] == []
        return
    answer = deployment.answer(path.parent.name, what)
    assert answer.status < 500
    assert f"there is no {what['requestContext']['http']['method']}" not in answer.raw
