"""What commands print: results on stdout, all else on stderr."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

Json = Mapping[str, Any]
"""An object of the broker's answers. Any: JSON, which is printed as it came."""


def print_json(document: object) -> None:
    """One JSON document, the whole of stdout."""
    click.echo(_printable(json.dumps(document, indent=2, ensure_ascii=False)))


def say(message: str) -> None:
    """A word to the person, on stderr."""
    click.echo(_printable(message), err=True)


def _printable(text: str) -> str:
    """The text, and where a file's name is no text its bytes as escapes, which JSON has as well."""
    return text.encode("utf-8", "backslashreplace").decode()


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under heads, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    for row in [heads, *rows]:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def money(value: object, digits: int = 4) -> str:
    """US dollars; "-" when unknown."""
    return f"${value:.{digits}f}" if isinstance(value, int | float) else "-"


def hourly(machine: Json) -> str:
    """What a machine that was bought costs an hour with its disk; "-" when unknown."""
    price = machine.get("price_usd_hour")
    return money(price + (machine.get("disk_usd_hour") or 0)) if isinstance(price, int | float) else "-"


def moment(value: object) -> str:
    """A time to the second, in UTC; "-" when there is none."""
    text = str(value or "")
    return f"{text[:10]} {text[11:19]}" if len(text) >= len("2024-01-02T03:04:05") else text or "-"


def duration(seconds: object) -> str:
    """Seconds as a person says them; "-" when unknown."""
    if not isinstance(seconds, int | float):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def size(count: object) -> str:
    """A number of bytes as a person says it; "-" when unknown."""
    if not isinstance(count, int | float):
        return "-"
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:  # noqa: PLR2004 (bytes in a KiB)
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def text(value: object) -> str:
    """A cell of a table; "-" for nothing."""
    return "-" if value in {None, ""} else str(value)


def place(machine: Json) -> str:
    """Where a machine is and what it is, in one cell."""
    region, zone = str(machine.get("region") or "?"), str(machine.get("zone") or "")
    zone = zone if zone.startswith(region) else f"{region}/{zone}".rstrip("/")
    return (
        f"{machine.get('provider', '?')} {zone} {machine.get('instance_type', '?')} {machine.get('market', '')}".strip()
    )
