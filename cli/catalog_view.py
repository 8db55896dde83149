"""A catalogue as a table: offers and age of prices by cloud and region."""

from datetime import UTC, datetime

import click

from cli.output import Json, duration, moment, print_table

_HEADS = ("PROVIDER", "REGION", "OFFERS", "OLDEST PRICE", "AGE", "PROBLEM")


def print_catalogue(document: Json, now: datetime) -> None:
    """Print what a catalogue says of itself, as the API or a file tells it."""
    click.echo(f"catalogue of version {document['version']}, built {moment(document['built_at'])}\n")
    rows = [
        (
            region["provider"],
            region["region"],
            str(region["offers"]),
            moment(region["oldest"]),
            age(region["oldest"], now),
            region["problem"] or "-",
        )
        for region in document["regions"]
    ]
    print_table(_HEADS, rows)
    total = ", ".join(f"{source['offers']} of {name}" for name, source in document["sources"].items())
    click.echo(f"\n{total or 'no offers'}")


def age(read_at: object, now: datetime) -> str:
    """How old a price is; "-" when nobody knows."""
    if not read_at:
        return "-"
    hours = (now - datetime.fromisoformat(str(read_at)).astimezone(UTC)).total_seconds() / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else duration(max(hours, 0) * 3600)  # noqa: PLR2004 (two days)


def problems(document: Json) -> list[str]:
    """Regions that gave no new prices, in words."""
    return [
        f"{region['provider']} {region['region']}: {region['problem']}"
        for region in document["regions"]
        if region["problem"]
    ]
