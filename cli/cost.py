"""`spotferry cost`: the ledger of one job, or of all by job, project or label."""

from collections.abc import Mapping
from typing import Any

import click

from cli.api import Api, broker
from cli.errors import UsageProblem
from cli.given import ID
from cli.output import Json, duration, money, place, print_json, print_table, text

PAGE = 100
_PARTS = (
    ("machines", "machine_usd"),
    ("disks", "disk_usd"),
    ("checkpoint storage", "storage_usd"),
    ("transfer", "transfer_usd"),
    ("broker's requests", "broker_usd"),
    ("total", "total_usd"),
    ("on demand", "on_demand_usd"),
    ("saved", "saved_usd"),
    ("not billed", "waived_usd"),
)
"""What one job's figures are called, and where they are in the answer."""
_MACHINE_HEADS = ("#", "MACHINE", "PRICE/H", "DISK/H", "LIST/H", "TIME", "COST", "ENDED BY")
_DIGITS = 6
"""Of a dollar: a minute of a small machine is a tenth of a cent."""


@click.command()
@click.argument("job_id", metavar="[JOB]", type=ID, required=False)
@click.option("--by", default="", help="Add up by `project` or by `label=KEY`; without it, job by job.")
@click.option("--since", default="", help="Only jobs submitted then or later: a date or a time (RFC 3339).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def cost(job_id: str | None, by: str, since: str, *, as_json: bool) -> None:
    """Show what jobs have cost: machines, disks, storage, transfer and the broker's own requests.

    With JOB: that job, machine by machine. The prices are those read when each machine was launched.
    """
    if job_id is not None and (by or since):
        raise UsageProblem(f"{'--by' if by else '--since'}: makes no sense for one job")
    answer = _of_all(broker(), by, since) if job_id is None else _of_job(broker(), job_id)
    if as_json:
        print_json(answer)
    elif job_id is None:
        _print_groups(answer)
    else:
        _print_job(answer)


def _of_job(api: Api, job_id: str) -> Json:
    answer: Json = api.request("GET", "/costs", params={"job": job_id})
    return {name: value for name, value in answer.items() if name != "cursor"}


def _of_all(api: Api, by: str, since: str) -> Json:
    """All pages, added up."""
    params: dict[str, str | int] = {"limit": PAGE}
    params.update({name: value for name, value in (("by", by), ("since", since)) if value})
    groups: dict[str, Json] = {}
    total: Json = {}
    while True:
        page = api.request("GET", "/costs", params=params)
        for row in page["groups"]:
            groups[row["key"]] = _sum(groups.get(row["key"], {}), row)
        total = _sum(total, page["total"])
        if not page["cursor"]:
            return {"by": page["by"], "groups": list(groups.values()), "total": total}
        params["cursor"] = page["cursor"]


def _sum(one: Json, other: Json) -> dict[str, Any]:  # Any: JSON
    """Two ledgers added up, figure by figure; what is not a figure (the key) is kept."""
    figures: Mapping[str, Any] = {  # Any: JSON
        name: round(one.get(name, 0) + value, 9) for name, value in other.items() if isinstance(value, int | float)
    }
    return {**other, **figures}


def _print_groups(answer: Json) -> None:
    if not answer["groups"]:
        click.echo("no jobs")
        return
    heads = (str(answer["by"]).upper(), "JOBS", "MACHINES", "TIME", "MACHINES $", "DISKS", "STORAGE", "TRANSFER",
             "BROKER", "TOTAL", "ON DEMAND")  # fmt: skip
    ranked = sorted(answer["groups"], key=lambda row: -row["total_usd"])
    rows = [_row(text(row["key"]), row) for row in ranked]
    print_table(heads, [*rows, _row("all", answer["total"])] if len(rows) > 1 else rows)


def _row(name: str, ledger: Json) -> tuple[str, ...]:
    counts = (str(ledger["jobs"]), str(ledger["instances"]), duration(ledger["seconds"]))
    parts = ("machine_usd", "disk_usd", "storage_usd", "transfer_usd", "broker_usd", "total_usd", "on_demand_usd")
    return (name, *counts, *(_dollars(ledger[part]) for part in parts))


def _print_job(answer: Json) -> None:
    for name, part in _PARTS:
        click.echo(f"{name + ':':<20}{_dollars(answer['total'][part])}")
    if answer["instances"]:
        click.echo()
        print_table(_MACHINE_HEADS, [_machine_row(machine) for machine in answer["instances"]])


def _machine_row(machine: Json) -> tuple[str, ...]:
    return (
        str(machine["epoch"]),
        place(machine),
        _dollars(machine["price_usd_hour"]),
        _dollars(machine["disk_usd_hour"]),
        _dollars(machine["on_demand_usd_hour"]),
        duration(machine["seconds"]),
        _dollars(machine["cost_usd"]),
        _end(machine),
    )


def _end(machine: Json) -> str:
    """Who ended it; one that gave its job back at a notice is ended by us, before the cloud does."""
    told = text(machine["ended_by"])
    return f"{told}, at its notice" if told == "us" and machine.get("taken_back") else told


def _dollars(value: object) -> str:
    return money(value, _DIGITS)
