"""A second opinion on placement over several clouds: price lists in SQLite, every row looked at by one query.

It reads the lists by itself, joins Google's accelerators to their hosts by itself, and counts in whole billionths of a
dollar. It shares with the product the tables of disk and transfer prices, which are data, and nothing else.
"""

import csv
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from spotferry.catalog.disk_prices import disk_usd_gib_month
from spotferry.domain.placement import Limits
from spotferry.domain.transfer import usd_per_gb
from spotferry.types import UserInstanceSpecs
from tests.unit.domain.price_list_oracle import DEFAULT_DISK_GB, GPU_IMAGE_GB, IMAGE_GB, machine_of, price_in

Row = tuple[str, str, str, float, float, str, int, int, str, str, int | None, int | None, int, int]

NANO = 10**9
HOURS_DIGITS = 10
_VRAM_MIB = {
    "A100": 40_960,
    "A100-80GB": 81_920,
    "K80": 12_288,
    "P100": 16_384,
    "P4": 8_192,
    "T4": 16_384,
    "V100": 16_384,
}
_N1_VCPUS = {
    ("K80", 1): 8, ("K80", 2): 16, ("K80", 4): 32, ("K80", 8): 64,
    ("P4", 1): 24, ("P4", 2): 48, ("P4", 4): 96,
    ("P100", 1): 16, ("P100", 2): 32, ("P100", 4): 96,
    ("T4", 1): 48, ("T4", 2): 48, ("T4", 4): 96,
    ("V100", 1): 12, ("V100", 2): 24, ("V100", 4): 48, ("V100", 8): 96,
}  # fmt: skip
_SMALLER_HOSTS = {
    ("P100", 4): ("us-east1-c", "europe-west1-b", "europe-west1-d"),
    ("K80", 8): ("us-east1-d", "asia-east1-a"),
}
_TABLES = """
CREATE TABLE machines (machine INTEGER PRIMARY KEY, provider TEXT, kind TEXT, arch TEXT, vcpus REAL, memory REAL,
                       words TEXT, gpus INT, vram INT);
CREATE TABLE offers (machine INT, region TEXT, zone TEXT, spot INT, listed INT, disk INT, carry INT);
CREATE TABLE rows (provider TEXT, kind TEXT, arch TEXT, vcpus REAL, memory REAL, words TEXT, gpus INT, vram INT,
                   region TEXT, zone TEXT, spot INT, listed INT, disk INT, carry INT);
"""
_SPLIT = """
INSERT INTO machines SELECT NULL, *
  FROM (SELECT DISTINCT provider, kind, arch, vcpus, memory, words, gpus, vram FROM rows);
INSERT INTO offers SELECT machine, region, zone, spot, listed, disk, carry
  FROM rows JOIN machines USING (provider, kind, arch, vcpus, memory, words, gpus, vram);
DROP TABLE rows;
CREATE INDEX by_machine ON offers (machine);
ANALYZE;
"""
_INSERT = "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_QUERY = """
SELECT COUNT(*), MIN(hourly * :hours + carry * :gb * 10) FROM (
  SELECT {price} + (2000 * disk * {disk_gb} + 730) / 1460 AS hourly, carry
  FROM machines CROSS JOIN offers USING (machine)
  WHERE arch = :arch AND vcpus >= :vcpus AND memory >= :memory AND gpus >= :gpus AND vram >= :vram
    AND (:kind = '' OR kind = :kind) AND (:gpu = '' OR instr(words, :gpu))
    AND (:providers = '' OR instr(:providers, '/' || provider || '/')) AND {disk_gb} >= {image} + :room
    AND {price} > 0 AND (:regions = '' OR instr(:regions, '/' || region || '/'))
) WHERE :cap = 0 OR hourly <= :cap
"""


@dataclass(frozen=True)
class Answer:
    """How many fit, and what the cheapest run costs; None when none fits."""

    fit: int
    usd: Decimal | None


class SqlOracle:
    """The lists of a directory.

    Args:
        lists: CSV files by cloud.
        home: `provider/region` of all inputs that will be asked about.
    """

    def __init__(self, lists: Mapping[str, Path], home: str) -> None:
        self._base = sqlite3.connect(":memory:")
        self._base.executescript(_TABLES)
        readers = {"aws": _aws, "gcp": _gcp, "paperspace": _paperspace}
        for cloud, path in lists.items():
            with path.open(newline="") as file:
                rows = readers[cloud](list(csv.DictReader(file)), home)
                self._base.executemany(_INSERT, rows)
        self._base.executescript(_SPLIT)

    def close(self) -> None:
        """Let go of the base."""
        self._base.close()

    def ask(self, specs: UserInstanceSpecs, limits: Limits) -> Answer:
        """The answer of brute force, of spot machines first where on-demand ones are to stand in."""
        for spot in (True, False) if specs.spot == "fallback" else (specs.spot,):
            answer = self._ask(specs, limits, "iif(provider = 'paperspace', listed, spot)" if spot else "listed")
            if answer.fit:
                return answer
        return answer

    def _ask(self, specs: UserInstanceSpecs, limits: Limits, price: str) -> Answer:
        image = f"iif(gpus > 0, {GPU_IMAGE_GB}, {IMAGE_GB})"
        default = f"max({DEFAULT_DISK_GB}, {image}) + :room"
        query = _QUERY.format(price=price, image=image, disk_gb=specs.disk_gb or f"({default})")
        fit, total = self._base.execute(query, _values(specs, limits)).fetchone()
        return Answer(fit, None if total is None else Decimal(total) / NANO / HOURS_DIGITS)


def _values(specs: UserInstanceSpecs, limits: Limits) -> Mapping[str, str | float]:
    size_gb = sum(int(given.size_gb) for given in limits.inputs)
    word = specs.gpu.strip().lower()
    return {
        "arch": specs.arch,
        "vcpus": specs.cpu_cores,
        "memory": specs.memory_gb,
        "gpus": specs.gpu_count,
        "vram": specs.vram_gb * 1024,
        "gpu": word and f"/{word}/",
        "kind": specs.instance_type,
        "providers": "".join(f"/{name}/" for name in specs.providers),
        "regions": "".join(f"/{name}/" for name in specs.regions),
        "cap": int(specs.max_price_usd_hour * NANO),
        "hours": int((limits.expected_hours or 1) * HOURS_DIGITS),
        "gb": size_gb,
        "room": size_gb,
    }


def _place(cloud: str, region: str, home: str) -> tuple[int, int]:
    """Price of a GiB of disk for a month in millionths, of a GB carried there in billionths."""
    return int(disk_usd_gib_month(cloud, region) * 10**6), int(usd_per_gb(home, cloud, region) * NANO)


def _nano(price: Decimal | None) -> int | None:
    """In billionths, to the nearest: Google's list holds prices such as 1.1018429999999999."""
    return None if price is None else round(price * NANO)


def _aws(rows: Sequence[Mapping[str, str]], home: str) -> Iterator[Row]:
    for row in rows:
        spot, listed = _nano(price_in(row["SpotPrice"])), _nano(price_in(row["Price"]))
        if spot or listed:
            one = machine_of(row)
            words = "".join(f"/{word}/" for word in one.gpu_words)
            machine = (one.kind, one.arch, one.vcpus, one.memory, words, one.gpus, one.vram_mib)
            region = row["Region"]
            yield ("aws", *machine, region, row["AvailabilityZone"], spot, listed, *_place("aws", region, home))


def _gcp(rows: Sequence[Mapping[str, str]], home: str) -> Iterator[Row]:
    sold_alone = [row for row in rows if not row["InstanceType"] and row["AcceleratorName"] in _VRAM_MIB]
    for row in rows:
        kind, region, zone = row["InstanceType"], row["Region"], row["AvailabilityZone"]
        if not kind:
            continue
        beside = [a for a in sold_alone if a["AvailabilityZone"] == zone and _belong_together(row, a)]
        for gpu in [*([] if kind.startswith("a2-") else [None]), *beside]:
            name, count = (gpu["AcceleratorName"], int(gpu["AcceleratorCount"])) if gpu else ("", 0)
            both = [row, gpu] if gpu else [row]
            spot, listed = ([price_in(part[column]) for part in both] for column in ("SpotPrice", "Price"))
            words = f"/{name.lower()}//{name.lower().removesuffix('-80gb')}//nvidia/" if gpu else ""
            machine = (
                kind,
                "arm64" if kind.startswith("t2a-") else "x86_64",
                float(row["vCPUs"]),
                float(row["MemoryGiB"]),
            )
            gpus = (words, count, count * _VRAM_MIB.get(name, 0))
            yield ("gcp", *machine, *gpus, region, zone, _sum(spot), _sum(listed), *_place("gcp", region, home))


def _sum(prices: Sequence[Decimal | None]) -> int | None:
    return None if None in prices else _nano(sum((price for price in prices if price), Decimal(0)))


def _belong_together(host: Mapping[str, str], gpu: Mapping[str, str]) -> bool:
    kind, name, count = host["InstanceType"], gpu["AcceleratorName"], int(gpu["AcceleratorCount"])
    if kind.startswith("a2-"):
        return kind.endswith(f"-{count}g") and name == ("A100-80GB" if "ultra" in kind else "A100")
    if not kind.startswith(("n1-standard", "n1-highmem", "n1-highcpu")):
        return False
    vcpus, memory = float(host["vCPUs"]), float(host["MemoryGiB"])
    if host["AvailabilityZone"] in _SMALLER_HOSTS.get((name, count), ()):
        return vcpus <= 64 and memory <= 208
    most = _N1_VCPUS.get((name, count), 0)
    return vcpus <= most and memory <= most * 6.5


def _paperspace(rows: Sequence[Mapping[str, str]], home: str) -> Iterator[Row]:
    for row in rows:
        listed = _nano(Decimal(row["Price"].strip("$").removesuffix("/hr")))
        vram = int(float(row["vRAM"] or 0) * 1024)
        name = row["Name"].lower()
        words = f"/{name}//nvidia/" if vram else ""
        machine = (row["Name"], "x86_64", float(row["vCPUs"]), float(row["RAM (GB)"]), words, int(vram > 0), vram)
        for region in row["Regions"].split(", "):
            yield ("paperspace", *machine, region, "", None, listed, *_place("paperspace", region, home))
