"""Whether the demo's story is what it should be: read from the API, the bucket and the process table alone."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from local.demo_story import Story
from local.machine_processes import processes_of

ReadObject = Callable[[str], bytes | None]
"""An object of the bucket by its key; None when there is none."""


def verdict(story: Story, interrupt_at: int, read: ReadObject) -> list[str]:
    """What is not true of the story; empty when all is."""
    return [*_ending(story, interrupt_at), *_steps(story), *_checkpoints(story, read), *_machines(story)]


def clouds_verdict(story: Story, clouds: Sequence[str], steps: int) -> list[str]:
    """What is not true of a story that was to go over these clouds, one machine each, and to count so far."""
    found = []
    went = [machine["provider"] for machine in story.machines()]
    if went != list(clouds):
        found.append(f"the job went over {', '.join(clouds)} (it went over {', '.join(went) or 'none'})")
    if story.job["interruptions"] != len(clouds) - 1:
        found.append(f"each cloud but the last took a machine back once (there were {story.job['interruptions']})")
    if story.steps() != list(range(1, steps + 1)):
        found.append(f"the steps were 1 to {steps}, in this order (they were {story.steps()})")
    silent = [m["provider"] for m in story.machines() if m["epoch"] not in {epoch for epoch, _ in story.lines}]
    if silent:
        found.append(f"the job printed on each machine (it did not on {', '.join(silent)})")
    return found


def _ending(story: Story, interrupt_at: int) -> Iterator[str]:
    job = story.job
    if job["state"] != "DONE":
        yield f"the job is DONE (it is {job['state']}: {job['reason']})"
    if not story.interrupted:
        yield f"the machine was taken back at step {interrupt_at} (the job was over before)"
    if job["interruptions"] < 1:
        yield "the job counts an interruption"


def _steps(story: Story) -> Iterator[str]:
    steps = story.steps()
    if not steps:
        yield "the job printed its steps (no line begins with a number, or with a word for a step and a number)"
        return
    twice = sorted(step for step, times in Counter(steps).items() if times > 1)
    if twice:
        yield f"each step was printed once (more than once: {twice})"
    missing = sorted(set(range(min(steps), max(steps) + 1)) - set(steps))
    if missing:
        yield f"no step was left out (missing: {missing})"
    if story.interrupted and len({epoch for epoch, _ in story.lines}) < 2:  # noqa: PLR2004 (before and after)
        yield "the job printed on two machines"


def _checkpoints(story: Story, read: ReadObject) -> Iterator[str]:
    if not story.checkpoints:
        yield "a checkpoint was committed"
    for checkpoint in story.checkpoints:
        body = read(checkpoint["manifest_key"])
        if body is None:
            yield f"the manifest of checkpoint {checkpoint['number']} is in the bucket"
            continue
        for part in json.loads(body)["parts"]:
            stored = read(part["key"])
            if stored is None or len(stored) != part["size_bytes"]:
                yield f"part {part['name']} of checkpoint {checkpoint['number']} is in the bucket, whole"


def _machines(story: Story) -> Iterator[str]:
    named = {entry["instance_id"] for entry in story.entries if entry["event"] == "launch_chosen"}
    if story.interrupted and len(named) < 2:  # noqa: PLR2004 (the one taken back and its successor)
        yield f"the timeline names two machines (it names {len(named)})"
    for machine in story.job["instances"]:
        if machine["state"] != "terminated":
            yield f"machine {machine['allocated_id']} has ended (it is {machine['state']})"
        left = processes_of(machine["allocated_id"]) if machine["allocated_id"] else []
        if left:
            yield f"no process of machine {machine['allocated_id']} is left (there are {left})"
