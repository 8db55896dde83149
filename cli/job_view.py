"""Jobs as people read them."""

from collections.abc import Sequence

import click

from cli.output import Json, duration, hourly, moment, money, place, print_table, size, text
from spotferry.domain.reason_words import checkpoint_words, end_words, ends_task
from spotferry.types import HOLD_STATES


def print_jobs(jobs: Sequence[Json]) -> None:
    """One line a job."""
    if not jobs:
        click.echo("no jobs")
        return
    heads = ("JOB", "NAME", "STATE", "CREATED (UTC)", "MACHINES", "INTERRUPTIONS", "WHY")
    print_table(heads, [_job_row(job) for job in jobs])


def _job_row(job: Json) -> tuple[str, ...]:
    return (
        str(job["job_id"]),
        text(job.get("name")),
        str(job["state"]),
        moment(job.get("created_at")),
        str(job.get("attempts", len(job.get("instances") or []))),
        str(job.get("interruptions", 0)),
        text(job.get("reason")),
    )


def print_job(job: Json, entries: Sequence[Json]) -> None:
    """All about one job."""
    facts = [
        ("job", job["job_id"]),
        ("name", job.get("name")),
        ("project", job.get("project")),
        ("state", job["state"]),
        ("why", job.get("reason")),
        ("until", _until(job) if job.get("deadline") else ""),
        ("next try", moment(job.get("next_try_at")) if job.get("next_try_at") else ""),
        ("exit status", job.get("exit_code")),
        ("goes on from", _origin(job) if job.get("restored_from") else ""),
        ("repeats", "" if job.get("restored_from") else job.get("parent_job_id")),
        ("created", moment(job.get("created_at"))),
        ("interruptions", job.get("interruptions", 0)),
        ("restarts", job.get("restarts") or ""),
        ("checkpoint", job.get("checkpoint") or ""),
        ("machines cost", _cost(job)),
    ]
    for name, value in facts:
        if value not in {None, ""}:
            click.echo(f"{name + ':':<15}{value}")
    _print_attempts(job.get("instances") or [])
    _print_timeline(entries)


def _until(job: Json) -> str:
    """When a state runs out; a hold is ended by the poll after its time, and by a retry before."""
    at = moment(job["deadline"])
    if job["state"] not in HOLD_STATES:
        return at
    return f"{at}, or up to a minute later; until then `spotferry retry {job['job_id']}` tries again"


def _origin(job: Json) -> str:
    return f"checkpoint {job['restored_from']} of {job['parent_job_id']}"


def _cost(job: Json) -> str:
    cost, list_price = job.get("cost_usd"), job.get("on_demand_cost_usd")
    if isinstance(cost, int | float) and isinstance(list_price, int | float) and list_price > cost:
        return f"{money(cost)} (on demand {money(list_price)}: {1 - cost / list_price:.0%} saved)"
    return money(cost)


def _print_attempts(instances: Sequence[Json]) -> None:
    if not instances:
        return
    click.echo("\nattempts")
    heads = ("#", "INSTANCE", "MACHINE", "STATE", "TOTAL/H", "TIME", "COST", "END")
    rows = [
        (
            str(instance.get("epoch", "")),
            str(instance["instance_id"]),
            place(instance),
            text(instance.get("state") or instance.get("phase")),
            hourly(instance),
            duration(instance.get("seconds")),
            money(instance.get("cost_usd")),
            _end_text(instance),
        )
        for instance in instances
    ]
    print_table(heads, rows)


def _end_text(instance: Json) -> str:
    reason = str(instance.get("end_reason") or "")
    return text(end_words(reason))


def _print_timeline(entries: Sequence[Json]) -> None:
    if not entries:
        return
    click.echo("\nwhat happened (UTC)")
    for entry in entries:
        was, now = str(entry.get("from_state") or ""), str(entry.get("to_state") or "")
        move = f"{now}" if was in {now, ""} else f"{was} -> {now}"
        words = entry.get("message") or entry.get("event")
        click.echo(f"{moment(entry.get('at'))}  {move:<26}  {words}")


_CHECKPOINT_HEADS = (
    "#",
    "ENGINE",
    "REASON",
    "ATTEMPT",
    "SIZE",
    "TOOK",
    "STOOD STILL",
    "COMMITTED (UTC)",
    "KEPT",
    "WHY THIS ENGINE",
)


def print_checkpoints(checkpoints: Sequence[Json]) -> None:
    """One line a checkpoint."""
    if not checkpoints:
        click.echo("no checkpoints")
        return
    print_table(_CHECKPOINT_HEADS, [_checkpoint_row(point) for point in checkpoints])


def _checkpoint_row(point: Json) -> tuple[str, ...]:
    return (
        str(point["number"]),
        text(point.get("engine")),
        text(checkpoint_words(point.get("reason"), asked_for=bool(point.get("asked_for")))),
        str(point.get("epoch", "")),
        size(point.get("size_bytes")),
        duration(point.get("seconds")),
        "-" if ends_task(point.get("reason")) else duration(point.get("paused_seconds")),
        moment(point.get("committed_at")),
        "no" if point.get("pruned_at") else "yes",
        text(point.get("why")),
    )
