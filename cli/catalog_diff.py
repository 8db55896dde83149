"""`spotferry catalog diff`: what became cheaper, dearer, new or gone between two catalogues."""

from pathlib import Path

import click

from cli.errors import UsageProblem
from cli.output import print_json, print_table, text
from spotferry.catalog.catalogue_file import read_catalogue
from spotferry.catalog.comparison import KINDS, Change, Comparison, compare
from spotferry.types import InvalidInput, Offer

SHOWN = 20


@click.command()
@click.argument("before", metavar="BEFORE.db", type=click.Path(path_type=Path))
@click.argument("after", metavar="AFTER.db", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, with every change.")
@click.option(
    "--limit", type=click.IntRange(0), default=SHOWN, show_default=True, help="How many changes to print as text."
)
def diff(before: Path, after: Path, limit: int, *, as_json: bool) -> None:
    """Show what changed from one catalogue file to another: the largest moves first."""
    found = compare(_offers(before), _offers(after))
    if as_json:
        print_json(
            {
                "version": 1,
                "before": str(before),
                "after": str(after),
                "summary": found.counts(),
                "changes": [_as_json(change) for change in found.changes],
            }
        )
    else:
        _print(found, limit)


def _offers(path: Path) -> list[Offer]:
    try:
        return read_catalogue(path)
    except InvalidInput as error:
        raise UsageProblem(str(error)) from error


def _print(found: Comparison, limit: int) -> None:
    counts = found.counts()
    rows = [(name, *(str(counted[kind]) for kind in (*KINDS, "same"))) for name, counted in counts.items()]
    print_table(("PROVIDER", *(kind.upper() for kind in KINDS), "SAME"), rows)
    if found.changes[:limit]:
        click.echo()
        print_table(("CHANGE", "MACHINE", "MARKET", "BEFORE", "AFTER"), [_row(c) for c in found.changes[:limit]])
    if len(found.changes) > limit:
        click.echo(f"\n{len(found.changes) - limit} more changes; --limit {len(found.changes)} prints all")


def _row(change: Change) -> tuple[str, ...]:
    by = f" {(change.factor - 1) * 100:+.1f}%" if change.before and change.after else ""
    gpus = f" with {change.gpu_count} x {change.gpu_name}" if change.gpu_count else ""
    machine = f"{change.provider} {change.zone or change.region} {change.instance_type}{gpus}"
    return change.kind + by, machine, change.market, text(change.before), text(change.after)


def _as_json(change: Change) -> dict[str, object]:
    return {
        "change": change.kind,
        "provider": change.provider,
        "region": change.region,
        "zone": change.zone,
        "instance_type": change.instance_type,
        "arch": change.arch,
        "gpu_name": change.gpu_name,
        "gpu_count": change.gpu_count,
        "market": change.market,
        "before_usd_hour": None if change.before is None else float(change.before),
        "after_usd_hour": None if change.after is None else float(change.after),
    }
