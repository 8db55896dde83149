"""The catalogue's file: one SQLite database of offers, written whole and read whole."""

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.instance import Offer

SCHEMA_VERSION = 1
"""Kept in the file's `user_version`; a file of another version is refused."""

_COLUMNS = tuple(Offer.model_fields)
_BARE = (
    ("__pydantic_fields_set__", set(_COLUMNS)),
    ("__pydantic_extra__", None),
    ("__pydantic_private__", None),
)
"""What pydantic keeps beside the fields; shared by all offers, which are frozen and copied before they are changed."""
_MONEY = ("spot_usd_hour", "on_demand_usd_hour", "disk_usd_gib_month")
_SCHEMA = f"""
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sources (
  provider TEXT PRIMARY KEY, offers INTEGER NOT NULL, oldest TEXT, newest TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE offers (
  provider TEXT NOT NULL, region TEXT NOT NULL, zone TEXT NOT NULL, instance_type TEXT NOT NULL, arch TEXT NOT NULL,
  vcpus REAL NOT NULL, memory_gib REAL NOT NULL,
  gpu_name TEXT NOT NULL, gpu_maker TEXT NOT NULL, gpu_count INTEGER NOT NULL, vram_mib INTEGER NOT NULL,
  spot_usd_hour TEXT, on_demand_usd_hour TEXT, disk_usd_gib_month TEXT NOT NULL, read_at TEXT
) STRICT;
PRAGMA user_version = {SCHEMA_VERSION};
"""
_SUMMARY = "INSERT INTO sources SELECT provider, count(*), min(read_at), max(read_at) FROM offers GROUP BY provider"


@dataclass(frozen=True, slots=True)
class Source:
    """One cloud's share of a catalogue: how many offers, and when its oldest and newest price was read."""

    offers: int
    oldest: datetime | None
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class CatalogueInfo:
    """What a catalogue says of itself: its schema's version, when it was built, its sources by provider."""

    version: int
    built_at: datetime
    sources: Mapping[str, Source]


def write_catalogue(path: Path, offers: Iterable[Offer], built_at: datetime) -> None:
    """Write a catalogue of these offers; readers see the old file or the new one, never a part.

    The file's directory must exist. A repeat with the same offers and time writes the same bytes.
    """
    rows = sorted((_to_row(offer) for offer in offers), key=lambda row: row[:5])
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as directory:
        fresh = Path(directory, "catalogue.db")
        with closing(sqlite3.connect(fresh)) as connection, connection:
            connection.executescript(_SCHEMA)
            connection.execute("INSERT INTO metadata VALUES ('built_at', ?)", (built_at.isoformat(),))
            connection.executemany(f"INSERT INTO offers VALUES ({','.join('?' * len(_COLUMNS))})", rows)  # noqa: S608
            connection.execute(_SUMMARY)
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(path)


def read_catalogue(path: Path) -> list[Offer]:
    """All offers of a catalogue file.

    Raises:
        InvalidInput: there is no such file, it is corrupt, or of another version.
    """
    return offers_in(_bytes_of(path), str(path))


def offers_in(data: bytes, source: str) -> list[Offer]:
    """All offers of a catalogue given as bytes; `source` names it in messages.

    Raises:
        InvalidInput: it is corrupt, or of another version.
    """
    try:
        with closing(_open(data, source)) as connection:
            rows = connection.execute(f"SELECT {','.join(_COLUMNS)} FROM offers")  # noqa: S608 (our own column names)
            return [_to_offer(row) for row in rows]
    except (sqlite3.Error, ValueError, TypeError, InvalidOperation) as error:
        raise _invalid(source, f"is a corrupt catalogue ({error}): import or refresh it again") from error


def describe_catalogue(path: Path) -> CatalogueInfo:
    """What a catalogue file says of itself.

    Raises:
        InvalidInput: there is no such file, it is corrupt, or of another version.
    """
    try:
        with closing(_open(_bytes_of(path), str(path))) as connection:
            (built_at,) = connection.execute("SELECT value FROM metadata WHERE key = 'built_at'").fetchone()
            sources = connection.execute("SELECT provider, offers, oldest, newest FROM sources ORDER BY provider")
            return CatalogueInfo(
                SCHEMA_VERSION,
                datetime.fromisoformat(built_at),
                {name: Source(count, _time(oldest), _time(newest)) for name, count, oldest, newest in sources},
            )
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise _invalid(str(path), f"is a corrupt catalogue ({error}): import or refresh it again") from error


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _invalid(str(path), f"cannot be read: {error.strerror}") from error


def _open(data: bytes, source: str) -> sqlite3.Connection:
    if not data.startswith(b"SQLite format 3\0"):
        raise _invalid(source, "is not a catalogue: it is no SQLite file")
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
        raise _invalid(source, f"is a catalogue of version {version}; this program reads version {SCHEMA_VERSION}")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def _to_row(offer: Offer) -> tuple[object, ...]:
    values = {**offer.__dict__, "read_at": offer.read_at.isoformat() if offer.read_at else None}
    for name in _MONEY:
        values[name] = None if values[name] is None else str(values[name])
    return tuple(values[name] for name in _COLUMNS)


def _to_offer(row: tuple[Any, ...]) -> Offer:  # Any: cells; STRICT tables hold what the schema says
    """An offer as pydantic lays it out, without its validation and without `model_construct`.

    The file is ours and its tables are strict; a cold start that builds thirty thousand offers the usual way takes
    three times as long. A test holds what comes out against validated offers.
    """
    values = dict(zip(_COLUMNS, row, strict=True))
    for name in _MONEY:
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


def _invalid(source: str, message: str) -> InvalidInput:
    return InvalidInput([Problem(source, message)])
