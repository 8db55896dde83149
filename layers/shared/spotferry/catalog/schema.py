"""How a catalogue lies in its file: one SQLite database, its tables, and offers as rows of them."""

from datetime import UTC, datetime
from functools import lru_cache

from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate

SCHEMA_VERSION = 2
"""Kept in the file's `user_version`; a file of another version is refused."""

COLUMNS = tuple(Offer.model_fields)
MONEY = ("spot_usd_hour", "on_demand_usd_hour", "disk_usd_gib_month")

OFFERS_TABLE = """
CREATE TABLE offers (
  provider TEXT NOT NULL, region TEXT NOT NULL, zone TEXT NOT NULL, instance_type TEXT NOT NULL, arch TEXT NOT NULL,
  vcpus REAL NOT NULL, memory_gib REAL NOT NULL,
  gpu_name TEXT NOT NULL, gpu_maker TEXT NOT NULL, gpu_count INTEGER NOT NULL, vram_mib INTEGER NOT NULL,
  spot_usd_hour TEXT, on_demand_usd_hour TEXT, disk_usd_gib_month TEXT NOT NULL, read_at TEXT
) STRICT;
"""
ORDER = "provider, region, zone, instance_type, arch, gpu_name, gpu_count"
RATE_COLUMNS = ("provider", "region", "zone", "instance_type", "per_hour", "source", "read_at")
RATES_TABLE = """
CREATE TABLE rates (
  provider TEXT NOT NULL, region TEXT NOT NULL, zone TEXT NOT NULL, instance_type TEXT NOT NULL,
  per_hour TEXT NOT NULL, source TEXT NOT NULL, read_at TEXT NOT NULL
) STRICT;
"""
"""What clouds tell of interruptions. Optional: files without it are of the same version, and so may readers be."""
SCHEMA = f"""
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sources (
  provider TEXT NOT NULL, region TEXT NOT NULL, offers INTEGER NOT NULL, oldest TEXT, newest TEXT,
  tried_at TEXT, problem TEXT NOT NULL, PRIMARY KEY (provider, region)
) STRICT, WITHOUT ROWID;
{OFFERS_TABLE}
{RATES_TABLE}
PRAGMA user_version = {SCHEMA_VERSION};
"""


def to_row(offer: Offer) -> tuple[object, ...]:
    """The offer's cells in the order of `COLUMNS`."""
    values = {**offer.__dict__, "read_at": time_text(offer.read_at)}
    for name in MONEY:
        values[name] = None if values[name] is None else str(values[name])
    return tuple(values[name] for name in COLUMNS)


def to_rate_row(rate: PoolRate) -> tuple[str | None, ...]:
    """The rate's cells in the order of `RATE_COLUMNS`."""
    place = rate.provider, rate.region, rate.zone, rate.instance_type
    return (*place, str(rate.per_hour), rate.source, time_text(rate.read_at))


@lru_cache(maxsize=1024)
def time_text(time: datetime | None) -> str | None:
    """A time as it stands in the file: in UTC, so that the texts sort as the times do."""
    return None if time is None else time.astimezone(UTC).isoformat()
