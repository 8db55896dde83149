"""A catalogue in the making: offers are laid down on disk as they come, and the file is written in one go."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from spotferry.catalog.schema import (
    COLUMNS,
    OFFERS_TABLE,
    ORDER,
    RATE_COLUMNS,
    RATES_TABLE,
    SCHEMA,
    time_text,
    to_rate_row,
    to_row,
)
from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate

_TRIES_TABLE = """
CREATE TABLE tries (
  provider TEXT NOT NULL, region TEXT NOT NULL, tried_at TEXT NOT NULL, problem TEXT NOT NULL,
  PRIMARY KEY (provider, region)
) STRICT, WITHOUT ROWID;
"""
_INSERT = f"INSERT INTO offers VALUES ({','.join('?' * len(COLUMNS))})"  # noqa: S608 (our own column names)
_INSERT_RATE = f"INSERT INTO rates VALUES ({','.join('?' * len(RATE_COLUMNS))})"  # noqa: S608 (as above)
_COPY = "INSERT INTO main.offers SELECT * FROM previous.offers WHERE provider = ? AND region = ?"
_HAS_RATES = "SELECT count(*) FROM previous.sqlite_master WHERE type = 'table' AND name = 'rates'"
_COPY_RATES = "INSERT INTO main.rates SELECT * FROM previous.rates WHERE provider = ? AND region = ?"
_FINISH = f"""
INSERT INTO main.offers SELECT {",".join(COLUMNS)} FROM staging.offers ORDER BY {ORDER}, staging.offers.rowid;
INSERT INTO main.sources
SELECT provider, region, sum(offers), min(oldest), max(newest), max(tried_at), max(problem)
FROM (
  SELECT provider, region, count(*) AS offers, min(read_at) AS oldest, max(read_at) AS newest,
         NULL AS tried_at, '' AS problem
  FROM staging.offers GROUP BY provider, region
  UNION ALL
  SELECT provider, region, 0, NULL, NULL, tried_at, problem FROM staging.tries
)
GROUP BY provider, region ORDER BY provider, region;
INSERT INTO main.rates SELECT * FROM staging.rates ORDER BY provider, region, zone, instance_type, source, per_hour;
"""  # noqa: S608 (our own column names)


class CatalogueBuilder:
    """Gathers offers in a file of its own, so that memory stays bounded by what one call brings.

    Args:
        folder: an empty folder for as long as it works.
        previous: a catalogue file that offers may be copied from; it must be sound and of this version.
    """

    def __init__(self, folder: Path, previous: Path | None = None) -> None:
        self._folder = folder
        self._staging = folder / "staging.db"
        self._connection = sqlite3.connect(self._staging)
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(OFFERS_TABLE + RATES_TABLE + _TRIES_TABLE)
        self._has_rates = False
        if previous is not None:
            self._connection.execute("ATTACH ? AS previous", (str(previous),))
            (tables,) = self._connection.execute(_HAS_RATES).fetchone()
            self._has_rates = bool(tables)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let go of the files."""
        self._connection.close()

    def add(self, offers: Iterable[Offer]) -> None:
        """Lay down offers."""
        with self._connection:
            self._connection.executemany(_INSERT, map(to_row, offers))

    def copy(self, provider: str, region: str) -> None:
        """Lay down a region's offers of the previous catalogue, untouched."""
        with self._connection:
            self._connection.execute(_COPY, (provider, region))

    def add_rates(self, rates: Iterable[PoolRate]) -> None:
        """Lay down what a cloud tells of interruptions."""
        with self._connection:
            self._connection.executemany(_INSERT_RATE, map(to_rate_row, rates))

    def copy_rates(self, provider: str, region: str) -> None:
        """Lay down a region's rates of the previous catalogue, untouched; one without any has none to copy."""
        if self._has_rates:
            with self._connection:
                self._connection.execute(_COPY_RATES, (provider, region))

    def tried(self, provider: str, region: str, at: datetime, problem: str = "") -> None:
        """Say that the region's prices were asked for, and what came in the way."""
        with self._connection:
            self._connection.execute(
                "INSERT INTO tries VALUES (?, ?, ?, ?)", (provider, region, time_text(at), problem)
            )

    def write(self, path: Path, built_at: datetime) -> None:
        """Write the catalogue; readers of the path see the old file or the new one, never a part.

        The same offers, tries and time make the same bytes.
        """
        fresh = self._folder / "catalogue.db"
        with closing(sqlite3.connect(fresh)) as connection:
            connection.execute("ATTACH ? AS staging", (str(self._staging),))
            connection.executescript(f"{SCHEMA} BEGIN; {_FINISH}")
            connection.execute("INSERT INTO metadata VALUES ('built_at', ?)", (time_text(built_at),))
            connection.commit()
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(path)
