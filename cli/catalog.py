"""`spotferry catalog`: the price catalogue, and the price lists that one can be made of."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from cli.api import broker
from cli.catalog_diff import diff
from cli.catalog_refresh import refresh
from cli.catalog_view import print_catalogue
from cli.errors import Failed, UsageProblem
from cli.output import print_json, say
from cli.progress import QUIET_SECONDS, SECONDS_BETWEEN_LINES
from spotferry.catalog.catalogue_file import Contents, describe_catalogue, read_contents, write_catalogue
from spotferry.catalog.importer import ImportReport, import_price_list
from spotferry.types import PROVIDER_NAMES, InvalidInput


@click.group()
def catalog() -> None:
    """The price catalogue: refresh the broker's, show it, import price lists, compare files."""


@catalog.command("import")
@click.argument("price_list", metavar="LIST.csv", type=click.Path(path_type=Path))
@click.option("--provider", type=click.Choice(PROVIDER_NAMES), required=True, help="Whose prices they are.")
@click.option(
    "--into",
    metavar="FILE.db",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The catalogue: made if it is not there; other clouds' offers in it stay, this cloud's are replaced.",
)
@click.option(
    "--read-at",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"]),
    help="When the prices were read (UTC); else the time that the file was last changed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def import_list(price_list: Path, provider: str, into: Path, read_at: datetime | None, *, as_json: bool) -> None:
    """Take what can be taken of a CSV price list, and say what was left out and why."""
    try:
        data, when = _read(price_list, read_at)
        offers, report = import_price_list(data, provider, when, str(price_list), _tell(price_list))
        if not offers:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in report.left_out.items())
            raise UsageProblem(f"{price_list}: no row of {report.rows} can be taken ({reasons or 'it is empty'})")
        before = read_contents(into) if into.exists() else Contents([], [])
        kept = [offer for offer in before.offers if offer.provider != provider]
        write_catalogue(into, [*kept, *offers], datetime.now(UTC), before.rates)
    except InvalidInput as error:
        raise UsageProblem(str(error)) from error
    except OSError as error:
        raise Failed(f"{into}: cannot be written: {error.strerror or error}") from error
    by_provider = dict(sorted(Counter(offer.provider for offer in [*kept, *offers]).items()))
    if as_json:
        print_json(_as_json(report, provider, into, by_provider))
    else:
        _print_report(report, provider, into, by_provider)


@catalog.command()
@click.argument("file", metavar="[FILE.db]", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(file: Path | None, *, as_json: bool) -> None:
    """Show what a catalogue holds: offers and age of prices by cloud and region.

    Without a file it is the broker's catalogue, the one that jobs are placed by.
    """
    document = broker().request("GET", "/catalog") if file is None else _describe(file)
    if as_json:
        print_json(document)
    else:
        print_catalogue(document, datetime.now(UTC))


catalog.add_command(refresh)
catalog.add_command(diff)


def _describe(file: Path) -> dict[str, object]:
    try:
        return describe_catalogue(file).to_json()
    except InvalidInput as error:
        raise UsageProblem(str(error)) from error


def _read(path: Path, read_at: datetime | None) -> tuple[bytes, datetime]:
    try:
        data, changed = path.read_bytes(), path.stat().st_mtime
    except OSError as error:
        raise UsageProblem(f"{path}: cannot be read: {error.strerror or error}") from error
    return data, read_at.replace(tzinfo=UTC) if read_at else datetime.fromtimestamp(int(changed), UTC)


def _tell(path: Path) -> Callable[[int], None]:
    """Says how far it is: nothing in the first two seconds, then a line now and then."""
    next_at = time.monotonic() + QUIET_SECONDS

    def rows_done(count: int) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            next_at = time.monotonic() + SECONDS_BETWEEN_LINES
            say(f"importing {path}: {count} rows")

    return rows_done


def _as_json(report: ImportReport, provider: str, into: Path, by_provider: dict[str, int]) -> dict[str, object]:
    return {
        "version": 1,
        "provider": provider,
        "into": str(into),
        "rows": report.rows,
        "taken": report.taken,
        "offers": report.offers,
        "left_out": dict(report.left_out),
        "catalogue": by_provider,
    }


def _print_report(report: ImportReport, provider: str, into: Path, by_provider: dict[str, int]) -> None:
    click.echo(f"{report.rows} rows: {report.taken} taken, {report.rows - report.taken} left out")
    for reason, count in report.left_out.items():
        click.echo(f"  {count:>6}  {reason}")
    if report.offers != report.taken:
        click.echo(f"{report.offers} offers of {provider}: a row for several regions makes several")
    holds = ", ".join(f"{count} of {name}" for name, count in by_provider.items())
    click.echo(f"{into} now holds {holds}")
