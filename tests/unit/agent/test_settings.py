"""Settings, places, and what hello brings."""

import json
from pathlib import Path

import pytest

from spotferry.agent.plan import Part, Saved, parse
from spotferry.agent.settings import Places, Settings

GIVEN = {"broker_url": "http://b/", "instance_id": "i-1", "epoch": 2, "token": "hidden", "provider": "aws", "new": 1}
PART = {"name": "w", "url": "u", "sha256": "s", "size_bytes": 5}


def test_settings_are_read_and_never_shown() -> None:
    """Unknown fields are ignored; the token is not in what is printed."""
    settings = Settings.parse(json.dumps(GIVEN))
    assert (settings.broker_url, settings.epoch) == ("http://b", 2)
    assert "hidden" not in repr(settings)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"broker_url": 1}'])
def test_settings_that_lack_something_are_refused(text: str) -> None:
    """The agent does not start on half a setting."""
    with pytest.raises(ValueError, match=r".+"):
        Settings.parse(text)


def test_places_by_who_the_agent_is() -> None:
    """Root has a machine of its own, unless it was given a directory; others stay in their home."""
    assert Places.of({}, 0) == Places(Path("/var/lib/spotferry"), privileged=True)
    assert Places.of({"SPOTFERRY_BASE": "/x"}, 0) == Places(Path("/x"), privileged=False)
    assert Places.of({"HOME": "/home/me"}, 1000) == Places(Path("/home/me/.spotferry"), privileged=False)


def test_spool_and_log_are_the_agents_alone(tmp_path: Path) -> None:
    """Nobody else reads archives on their way, or the log."""
    places = Places(tmp_path / "base", privileged=False)
    places.make()
    places.make()
    assert [p.stat().st_mode & 0o777 for p in (places.spool, places.log.parent)] == [0o700, 0o700]


def test_plan_is_read_with_defaults_for_what_is_missing() -> None:
    """A broker that does not know a field yet, or no longer, is understood."""
    plan = parse({"epoch": 1, "job_id": "j-1", "plan": {"mode": "fresh", "env": {"A": "1"}, "secrets": {"B": "2"}}})
    assert (plan.work_dir, plan.work_dir_name, plan.task, plan.exit_code) == (None, "work", (), 0)
    assert dict(plan.variables) == {"A": "1", "B": "2"}
    assert plan.grace_seconds == 30


def test_go_brings_newer_checkpoints_and_mode() -> None:
    """What the go does not say stays as the plan had it."""
    plan = parse({"epoch": 1, "plan": {"mode": "fresh", "work_dir": PART, "checkpoints": []}})
    assert plan.changed_by({"directive": {"kind": "go"}}) == plan
    saved = {"number": 3, "engine": "workdir", "parts": [PART]}
    changed = plan.changed_by({"directive": {"kind": "go", "mode": "finalize", "checkpoints": [saved], "exit_code": 4}})
    assert (changed.mode, changed.exit_code) == ("finalize", 4)
    assert changed.checkpoints == (Saved(3, "workdir", (Part("w", "u", "s", 5),)),)


@pytest.mark.parametrize("answer", [{}, {"epoch": 1}, {"epoch": 1, "plan": {}}, {"epoch": 1, "plan": None}])
def test_plan_that_is_none_is_refused(answer: dict[str, object]) -> None:
    """An answer without a plan is not followed."""
    with pytest.raises(ValueError, match="lacks"):
        parse(answer)
