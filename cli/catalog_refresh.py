"""`spotferry catalog refresh`: have the broker read the clouds' prices anew."""

from datetime import UTC, datetime
from typing import Any

import click

from cli.api import Api, broker
from cli.catalog_view import print_catalogue, problems
from cli.errors import Failed
from cli.output import print_json
from cli.settings import settings

LOOK_SECONDS = 3.0
MOST_SECONDS = 900


@click.command()
@click.option("--wait", is_flag=True, help="Return when the new prices are in force, and show them.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.IntRange(1, 3600),
    default=MOST_SECONDS,
    show_default=True,
    help="How long to wait at most.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def refresh(timeout: int, *, wait: bool, as_json: bool) -> None:
    """Have the broker read the prices of its launch regions now instead of at their next time.

    With --wait, exit status 1 when a region gave no new prices; it keeps those it had.
    """
    api = broker()
    ordered = dict(api.request("POST", "/catalog/refresh", repeatable=True))
    if not wait:
        if as_json:
            print_json(ordered)
        else:
            click.echo("prices are being read; `spotferry catalog show` tells when they are in force")
        return
    document = _wait(api, str(ordered["asked_at"]), timeout)
    if as_json:
        print_json(document)
    else:
        print_catalogue(document, datetime.now(UTC))
    if failed := problems(document):
        raise Failed("no new prices: " + "; ".join(failed))


def _wait(api: Api, asked_at: str, timeout: int) -> dict[str, Any]:  # Any: JSON
    """The catalogue, once it was built after the order."""
    asked = datetime.fromisoformat(asked_at)
    for _ in range(max(1, round(timeout / LOOK_SECONDS))):
        document: dict[str, Any] = api.request("GET", "/catalog")
        if datetime.fromisoformat(document["built_at"]) >= asked:
            return document
        settings().sleep(LOOK_SECONDS)
    raise Failed(f"there were no new prices within {timeout} seconds; the log of refresh_prices says why")
