"""The state machine as people see it: drawn from the table that the code runs on."""

from collections import defaultdict

from spotferry.domain.lifecycle import event_name
from spotferry.domain.transitions import NO_OPS, TRANSITIONS
from spotferry.types.job import JobState


def state_diagram() -> str:
    """A Mermaid state diagram: one arrow for each pair of states, with the events that lead along it."""
    arrows: dict[tuple[JobState, JobState], list[str]] = defaultdict(list)
    for (state, event), targets in TRANSITIONS.items():
        for target in targets:
            if target is not state:
                arrows[state, target].append(event_name(event))
    order = list(JobState)
    lines = ["stateDiagram-v2", "    [*] --> PENDING: accepted"]
    for state, target in sorted(arrows, key=lambda pair: (order.index(pair[0]), order.index(pair[1]))):
        lines.append(f"    {state} --> {target}: {', '.join(sorted(arrows[state, target]))}")
    lines += [f"    {state} --> [*]" for state in order if state.is_final]
    return "\n".join(lines)


def no_op_table() -> str:
    """A Markdown table of the events that change nothing, with the reason, by event."""
    rows: dict[tuple[str, str], list[JobState]] = defaultdict(list)
    for (state, event), reason in NO_OPS.items():
        rows[event_name(event), reason].append(state)
    lines = ["| event | in | changes nothing, because |", "|---|---|---|"]
    for (name, reason), states in sorted(rows.items()):
        lines.append(f"| `{name}` | {', '.join(state for state in JobState if state in states)} | {reason} |")
    return "\n".join(lines)
