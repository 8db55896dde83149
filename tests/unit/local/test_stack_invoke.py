"""Finding what `make invoke` is to run."""

import json
from pathlib import Path

import pytest

from local.invoke import InvokeError, invocation
from local.packaging import ROOT

EVENTS = sorted((ROOT / "events").glob("*/*.json"))


def test_a_function_and_a_case_name_an_event() -> None:
    """The folder of an event names the function of the template."""
    found = invocation("create_instance", "placement")
    assert found.logical_id == "CreateInstanceFunction"
    assert json.loads(found.event.read_text(encoding="utf-8"))["Records"]


UNKNOWN = [("create_instance", "nope"), ("nope", "placement"), ("", ""), ("relay_gcp_preemption", "preempted")]


@pytest.mark.parametrize(("function", "case"), UNKNOWN)
def test_an_unknown_event_is_answered_with_those_there_are(function: str, case: str) -> None:
    """Who asks for an event that is not there learns the words for those that are."""
    with pytest.raises(InvokeError, match="FN=create_instance CASE=placement"):
        invocation(function, case)


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_event_is_json_for_a_function(path: Path) -> None:
    """Each sample event can be handed to the function whose folder it lies in."""
    assert isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    assert any((ROOT / "functions" / path.parent.name / entry).is_file() for entry in ("app.py", "main.py"))
