"""The catalogue's file: one SQLite database of offers, written whole and read whole."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from spotferry.catalog.builder import CatalogueBuilder
from spotferry.catalog.schema import COLUMNS, MONEY, RATE_COLUMNS, SCHEMA_VERSION
from spotferry.ports.prices import CatalogueInfo, RegionSource, Source
from spotferry.types.errors import wrong
from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate

__all__ = [
    "SCHEMA_VERSION",
    "CatalogueInfo",
    "Contents",
    "RegionSource",
    "Source",
    "contents_of",
    "describe",
    "describe_catalogue",
    "offers_in",
    "read_catalogue",
    "read_contents",
    "write_catalogue",
]

_BARE = (
    ("__pydantic_fields_set__", set(COLUMNS)),
    ("__pydantic_extra__", None),
    ("__pydantic_private__", None),
)
"""What pydantic keeps beside the fields; shared by all offers, which are frozen and copied before they are changed."""


class Contents(NamedTuple):
    """All that placement goes by: offers, and what clouds tell of interruptions."""

    offers: list[Offer]
    rates: list[PoolRate]


def write_catalogue(path: Path, offers: Iterable[Offer], built_at: datetime, rates: Iterable[PoolRate] = ()) -> None:
    """Write a catalogue of these offers and rates; readers see the old file or the new one, never a part.

    The file's directory must exist. A repeat with the same offers and time writes the same bytes.
    """
    with (
        TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder,
        CatalogueBuilder(Path(folder)) as builder,
    ):
        builder.add(offers)
        builder.add_rates(rates)
        builder.write(path, built_at)


def read_catalogue(path: Path) -> list[Offer]:
    """All offers of a catalogue file; raises as `read_contents`."""
    return read_contents(path).offers


def read_contents(path: Path) -> Contents:
    """All offers of a catalogue file, and what clouds tell of interruptions.

    Raises:
        InvalidInput: there is no such file, it is corrupt, or of another version.
    """
    return contents_of(_bytes_of(path), str(path))


def offers_in(data: bytes, source: str) -> list[Offer]:
    """All offers of a catalogue given as bytes; raises as `contents_of`."""
    return contents_of(data, source).offers


def contents_of(data: bytes, source: str) -> Contents:
    """All offers and rates of a catalogue given as bytes; `source` names it in messages.

    Raises:
        InvalidInput: it is corrupt, or of another version.
    """
    try:
        with closing(_open(data, source)) as connection:
            rows = connection.execute(f"SELECT {','.join(COLUMNS)} FROM offers")  # noqa: S608 (our own column names)
            return Contents([_to_offer(row) for row in rows], _rates_in(connection))
    except (sqlite3.Error, ValueError, TypeError, InvalidOperation) as error:
        raise wrong(source, f"is a corrupt catalogue ({error}): import or refresh it again") from error


def describe_catalogue(path: Path) -> CatalogueInfo:
    """What a catalogue file says of itself.

    Raises:
        InvalidInput: there is no such file, it is corrupt, or of another version.
    """
    return describe(_bytes_of(path), str(path))


def describe(data: bytes, source: str) -> CatalogueInfo:
    """What a catalogue given as bytes says of itself; `source` names it in messages.

    Raises:
        InvalidInput: it is corrupt, or of another version.
    """
    try:
        with closing(_open(data, source)) as connection:
            (built_at,) = connection.execute("SELECT value FROM metadata WHERE key = 'built_at'").fetchone()
            rows = connection.execute(
                "SELECT provider, region, offers, oldest, newest, tried_at, problem FROM sources"
                " ORDER BY provider, region"
            )
            regions = {
                (provider, region): RegionSource(count, _time(oldest), _time(newest), _time(tried_at), problem)
                for provider, region, count, oldest, newest, tried_at, problem in rows
            }
            return CatalogueInfo(SCHEMA_VERSION, datetime.fromisoformat(built_at), regions)
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise wrong(source, f"is a corrupt catalogue ({error}): import or refresh it again") from error


def _rates_in(connection: sqlite3.Connection) -> list[PoolRate]:
    """What clouds tell; a file that was written before there was a table for it tells nothing."""
    (tables,) = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'rates'"
    ).fetchone()
    if not tables:
        return []
    rows = connection.execute(f"SELECT {','.join(RATE_COLUMNS)} FROM rates")  # noqa: S608 (our own column names)
    return [PoolRate.model_validate(dict(zip(RATE_COLUMNS, row, strict=True))) for row in rows]


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise wrong(str(path), f"cannot be read: {error.strerror}") from error


def _open(data: bytes, source: str) -> sqlite3.Connection:
    if not data.startswith(b"SQLite format 3\0"):
        raise wrong(source, "is not a catalogue: it is no SQLite file")
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        _check(connection, source)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, source: str) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != SCHEMA_VERSION:
        raise wrong(source, f"is a catalogue of version {version}; this program reads version {SCHEMA_VERSION}")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def _to_offer(row: tuple[Any, ...]) -> Offer:  # Any: cells; STRICT tables hold what the schema says
    """An offer as pydantic lays it out, without its validation and without `model_construct`.

    The file is ours and its tables are strict; a cold start that builds thirty thousand offers the usual way takes
    three times as long. A test holds what comes out against validated offers.
    """
    values = dict(zip(COLUMNS, row, strict=True))
    for name in MONEY:
        values[name] = _money(values[name])
    values["read_at"] = _time(values["read_at"])
    offer = Offer.__new__(Offer)
    for name, value in (("__dict__", values), *_BARE):
        object.__setattr__(offer, name, value)
    return offer


@lru_cache(maxsize=65_536)
def _money(text: str | None) -> Decimal | None:
    if text is None:
        return None
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(f"{text} is no price")
    return value


@lru_cache(maxsize=1024)
def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
