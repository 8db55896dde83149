"""`spotferry plan`: which machine a job would get, and why."""

from pathlib import Path
from typing import Any

import click

from cli.api import broker
from cli.errors import NoBroker, UsageProblem
from cli.output import Json, money, place, print_json, print_table, say
from spotferry.catalog.catalogue_file import read_contents
from spotferry.catalog.starter import starter_offers
from spotferry.domain.interruption_rates import told_by
from spotferry.domain.placement import Limits, OfferIndex, refuse_impossible
from spotferry.domain.placement import plan as decide
from spotferry.types import ImpossibleSpecs, InvalidInput, InvalidJobFile, JobFile, init_job_file

Answer = tuple[dict[str, Any], ImpossibleSpecs | None]
"""The plan as JSON (Any: it is printed as it came), and the refusal of a specification that nothing can meet."""

MOST_NEXT = 10
_COLUMNS = ("MACHINE", "VCPUS", "MEMORY", "GPU", "PRICE/H", "DISK/H", "TOTAL/H")
_RUN_COLUMNS = ("TRANSFER", "RUN")
"""For jobs whose whole runs are compared or were asked for: what copying the inputs costs, and all of it."""

_CONDITIONS = {
    "not_a_machine": "no machine by itself",
    "no_price": "no price is known",
    "market": "spot (sold in the other market)",
    "region_not_set_up": "region is not set up",
    "checkpoint_processor": "not the processor of the checkpoint",
    "banned": "left alone after refused launches",
    "avoided": "just taken back from there",
}
"""The conditions that are no keys of a job file, for its reader."""


@click.command()
@click.argument("job_file", metavar="JOB.yml", type=click.Path(path_type=Path))
@click.option(
    "--catalog",
    "catalogue",
    metavar="FILE.db",
    type=click.Path(path_type=Path),
    help="Decide here, over this catalogue, with every region set up; without it the broker is asked.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--limit",
    type=click.IntRange(0, MOST_NEXT),
    default=MOST_NEXT,
    show_default=True,
    help="How many of the next cheapest to print.",
)
def plan(job_file: Path, catalogue: Path | None, limit: int, *, as_json: bool) -> None:
    """Show which machine a job would get, and why: the cheapest that fits, and what excluded the others.

    Nothing is started. Exit status 2, with the reason on stderr, when no machine can ever fit.
    """
    job = _read(job_file)
    if catalogue is not None:
        document, refusal = _decide(_index(catalogue), job)
    else:
        document, refusal = _ask(job_file, job)
    document["next"] = document["next"][:limit]
    if as_json:
        print_json(document)
    else:
        _print(document)
    if refusal is not None:
        raise UsageProblem(f"{job_file}: {refusal}")


def _read(path: Path) -> JobFile:
    try:
        spec = init_job_file(path)
    except InvalidJobFile as error:
        raise UsageProblem(str(error)) from error
    if spec.work_dir and not (path.parent / spec.work_dir).is_dir():
        say(f"{path}: work_dir: {spec.work_dir} is not beside the job file; submit will ask for it")
    return spec


def _index(path: Path) -> OfferIndex:
    try:
        offers, rates = read_contents(path)
    except InvalidInput as error:
        raise UsageProblem(str(error)) from error
    return OfferIndex(offers, told=told_by(rates))


def _decide(index: OfferIndex, job: JobFile) -> Answer:
    """The plan over an index, and the refusal of a specification that nothing can meet."""
    found = decide(index, job.instance_specs, Limits.of_job(job))
    try:
        refuse_impossible(found, job.instance_specs)
    except ImpossibleSpecs as error:
        return found.to_json(), error
    return found.to_json(), None


def _ask(path: Path, job: JobFile) -> Answer:
    """The broker's plan; where there is no broker, one over the starter offers."""
    try:
        api = broker()
    except NoBroker:
        say(
            "no broker to ask: planning over the starter offers, whose prices are examples; --catalog names a real list"
        )
        return _decide(OfferIndex(starter_offers()), job)
    body = {"job_file": path.read_text(encoding="utf-8-sig")}
    answer = api.request("POST", "/plan", json=body, repeatable=True)
    return dict(answer.get("plan", answer)), None


def _print(document: Json) -> None:
    chosen = document["chosen"]
    click.echo(document["why"])
    click.echo()
    if chosen is not None:
        read_at = chosen["price_read_at"]
        columns = (*_COLUMNS, *(_RUN_COLUMNS if "run_usd" in chosen else ()))
        print_table(("", *columns), [("chosen", *_cells(chosen)), *(("next", *_cells(c)) for c in document["next"])])
        click.echo(f"\nprices read at {read_at}\n" if read_at else "")
    removed = [(_CONDITIONS.get(name, name), str(count)) for name, count in document["excluded"].items() if count]
    if removed:
        print_table(("CONDITION", "EXCLUDED"), removed)
        click.echo()
    click.echo(f"{document['fit']} of {document['considered']} considered fit")


def _cells(machine: Json) -> tuple[str, ...]:
    gpu = f"{machine['gpu_count']} x {machine['gpu_name']}" if machine["gpu_count"] else "-"
    return (
        place(machine),
        f"{machine['vcpus']:g}",
        f"{machine['memory_gib']:g} GiB",
        gpu,
        money(machine["price_usd_hour"]),
        money(machine["disk_usd_hour"]),
        money(machine["total_usd_hour"]),
        *((money(machine["run_transfer_usd"]), money(machine["run_usd"])) if "run_usd" in machine else ()),
    )
