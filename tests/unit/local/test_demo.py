"""The demo's verdict: it finds what is not true of a story."""

import json
from dataclasses import replace
from typing import Any

import pytest

from local.demo_story import Story, step_of
from local.demo_verdict import clouds_verdict, verdict

MACHINE = {"state": "terminated", "allocated_id": "i-never"}
MANIFEST = json.dumps({"parts": [{"name": "workdir.tar.gz", "key": "part", "size_bytes": 4}]}).encode()
BUCKET = {"manifest": MANIFEST, "part": b"four"}
JOB: dict[str, Any] = {"state": "DONE", "reason": "", "interruptions": 1, "instances": [MACHINE, MACHINE]}  # Any: JSON
STORY = Story(
    job=JOB,
    entries=[{"event": "launch_chosen", "instance_id": "i-1"}, {"event": "launch_chosen", "instance_id": "i-2"}],
    lines=[(1, "setting up"), (1, "step 1 of 3"), (1, "step 2 of 3"), (2, "step 3 of 3")],
    checkpoints=[{"number": 1, "manifest_key": "manifest"}],
    interrupted=True,
)


def _verdict(story: Story, bucket: dict[str, bytes] | None = None) -> str:
    return "\n".join(verdict(story, 2, (BUCKET if bucket is None else bucket).get))


@pytest.mark.parametrize(
    ("line", "step"),
    [("7", 7), ("step 7 of 12", 7), ("Step: 07", 7), ("count=3", 3), ("[4/10] loss 0.3", 4), ("i = 5", 5)],
)
def test_a_step_is_read_from_its_line(line: str, step: int) -> None:
    """Jobs print their steps in many ways."""
    assert step_of(line) == step


@pytest.mark.parametrize("line", ["Python 3.11.2", "setting up", "3.5 seconds", "Collecting 4 packages", "", "v1.2"])
def test_other_lines_are_no_steps(line: str) -> None:
    """Versions, figures and prose are not counted."""
    assert step_of(line) is None


def test_a_story_without_a_fault() -> None:
    """All is true of it."""
    assert _verdict(STORY) == ""


@pytest.mark.parametrize(
    ("story", "fault"),
    [
        (replace(STORY, job={**JOB, "state": "FAILED", "reason": "why"}), "it is FAILED: why"),
        (replace(STORY, interrupted=False), "taken back at step 2"),
        (replace(STORY, job={**JOB, "interruptions": 0}), "counts an interruption"),
        (replace(STORY, lines=[*STORY.lines, (2, "step 2 of 3")]), "more than once: [2]"),
        (replace(STORY, lines=[STORY.lines[1], STORY.lines[3]]), "missing: [2]"),
        (replace(STORY, lines=[(1, line) for _, line in STORY.lines]), "printed on two machines"),
        (replace(STORY, lines=[(1, "hello")]), "printed its steps"),
        (replace(STORY, checkpoints=[]), "a checkpoint was committed"),
        (replace(STORY, entries=STORY.entries[:1]), "names two machines"),
        (replace(STORY, job={**JOB, "instances": [{**MACHINE, "state": "running"}]}), "has ended (it is running)"),
    ],
)
def test_each_fault_is_found(story: Story, fault: str) -> None:
    """Whatever is not as claimed is named."""
    assert fault in _verdict(story)


def test_the_bucket_is_looked_at() -> None:
    """A manifest or a part that is not there, or not whole, is a fault."""
    assert "manifest of checkpoint 1" in _verdict(STORY, {})
    assert "part workdir.tar.gz of checkpoint 1" in _verdict(STORY, {**BUCKET, "part": b"fou"})


CLOUDS = ("aws", "gcp", "paperspace")
MADE: list[dict[str, Any]] = [  # Any: JSON
    {**MACHINE, "epoch": epoch, "provider": provider} for epoch, provider in ((1, "aws"), (3, "gcp"), (4, "paperspace"))
]
REFUSED = {"allocated_id": "", "state": "", "epoch": 2, "provider": "aws"}
JOURNEY = replace(
    STORY,
    job={**JOB, "interruptions": 2, "instances": [MADE[0], REFUSED, *MADE[1:]]},
    lines=[(1, "step 1 of 3"), (3, "step 2 of 3"), (4, "step 3 of 3")],
)


def test_a_journey_without_a_fault() -> None:
    """One machine on each cloud, in order; an attempt that was refused is no machine."""
    assert clouds_verdict(JOURNEY, CLOUDS, 3) == []


@pytest.mark.parametrize(
    ("story", "fault"),
    [
        (replace(JOURNEY, job={**JOURNEY.job, "instances": MADE[:2]}), "it went over aws, gcp"),
        (replace(JOURNEY, job={**JOURNEY.job, "instances": [MADE[1], MADE[0], MADE[2]]}), "it went over gcp, aws"),
        (replace(JOURNEY, job={**JOURNEY.job, "instances": []}), "it went over none"),
        (replace(JOURNEY, job={**JOURNEY.job, "interruptions": 3}), "there were 3"),
        (replace(JOURNEY, lines=[*JOURNEY.lines, (4, "step 3 of 3")]), "they were [1, 2, 3, 3]"),
        (replace(JOURNEY, lines=JOURNEY.lines[:2]), "it did not on paperspace"),
    ],
)
def test_each_fault_of_a_journey_is_found(story: Story, fault: str) -> None:
    """Another way, a machine more or less, a step twice."""
    assert fault in "\n".join(clouds_verdict(story, CLOUDS, 3))
