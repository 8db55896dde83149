"""Price lists, as the public catalogues of this field publish them, become offers."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from spotferry.catalog.accelerators import Gpus, gpus_of
from spotferry.catalog.architectures import arch_of
from spotferry.catalog.disk_prices import disk_usd_gib_month
from spotferry.catalog.price_list import Row, rows_of
from spotferry.types.instance import Offer

ACCELERATOR_ALONE = "accelerator without a machine"
NOT_A_MACHINE = "no processors or no memory"
OTHER_ARCH = "architecture other than x86_64 and arm64"
HOST_ALONE = "host priced without its accelerators"
NO_PRICE = "no price in any market"
NO_REGION = "no region"
MALFORMED = "malformed row or number"
DUPLICATE = "duplicate of another row"

_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}
_HOSTS_WITH_ACCELERATORS = ("a2-", "a3-", "a4-", "ct", "g2-")
_MIB_PER_GIB = 1024
_ABSURD = Decimal(10_000_000)

_Identity = tuple[str, str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What came of a list's rows: each became offers (`taken`) or was left out, by reason.

    Attributes:
        rows: rows read.
        taken: rows that became offers.
        offers: offers made of them; a row for several regions makes several.
        left_out: rows left out, by reason.
    """

    rows: int
    taken: int
    offers: int
    left_out: Mapping[str, int]


class _LeftOut(Exception):
    """The row becomes no offer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def import_price_list(
    data: bytes,
    provider: str,
    read_at: datetime,
    source: str = "price list",
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[list[Offer], ImportReport]:
    """Take what can be taken of a CSV list; what cannot is counted by reason.

    Args:
        data: the file, as it is.
        provider: whose prices they are; the list does not say.
        read_at: when the prices were read.
        source: name for messages.
        progress: told the number of rows done, every thousand.

    Raises:
        InvalidInput: it is not a price list at all.
    """
    offers: dict[_Identity, Offer] = {}
    left_out: Counter[str] = Counter()
    number = 0
    for number, row in enumerate(rows_of(data, source), start=1):
        try:
            _add(offers, _offers(row, provider, read_at))
        except _LeftOut as outcome:
            left_out[outcome.reason] += 1
        if number % 1000 == 0:
            progress(number)
    report = ImportReport(number, number - left_out.total(), len(offers), dict(left_out.most_common()))
    return list(offers.values()), report


def _add(offers: dict[_Identity, Offer], made: Iterator[Offer]) -> None:
    before = len(offers)
    for offer in made:
        offers.setdefault(_identity(offer), offer)
    if len(offers) == before:
        raise _LeftOut(DUPLICATE)


def _identity(offer: Offer) -> _Identity:
    return offer.region, offer.zone, offer.instance_type, offer.arch, offer.gpu_name, offer.gpu_count


def _offers(row: Row | None, provider: str, read_at: datetime) -> Iterator[Offer]:
    if row is None:
        raise _LeftOut(MALFORMED)
    instance_type, vcpus, memory = row.get("type", ""), _size(row, "vcpus"), _size(row, "memory_gib")
    _refuse_no_machine(row, provider, instance_type, vcpus, memory)
    spot, on_demand = _price(row, "spot_price"), _price(row, "price")
    if spot is None and on_demand is None:
        raise _LeftOut(NO_PRICE)
    gpus, arch = _gpus(row, instance_type), _arch(row, provider, instance_type)
    for region in _regions(row):
        yield Offer(
            provider=provider,
            region=region,
            zone=row.get("zone", ""),
            instance_type=instance_type,
            arch=arch,
            vcpus=vcpus,
            memory_gib=memory,
            gpu_name=gpus.name,
            gpu_maker=gpus.maker,
            gpu_count=gpus.count,
            vram_mib=gpus.vram_mib,
            spot_usd_hour=spot,
            on_demand_usd_hour=on_demand,
            disk_usd_gib_month=disk_usd_gib_month(provider, region),
            read_at=read_at,
        )


def _refuse_no_machine(row: Row, provider: str, instance_type: str, vcpus: float, memory: float) -> None:
    if not instance_type:
        raise _LeftOut(ACCELERATOR_ALONE if row.get("accelerator") else NOT_A_MACHINE)
    if not vcpus or not memory:
        raise _LeftOut(NOT_A_MACHINE)
    if provider == "gcp" and instance_type.startswith(_HOSTS_WITH_ACCELERATORS) and not row.get("accelerator"):
        raise _LeftOut(HOST_ALONE)


def _regions(row: Row) -> list[str]:
    regions = [name.strip() for name in (row.get("region") or row.get("regions", "")).split(",")]
    named = [name for name in regions if name]
    if not named:
        raise _LeftOut(NO_REGION)
    return named


def _arch(row: Row, provider: str, instance_type: str) -> str:
    said = row.get("arch", "").casefold()
    if not said:
        return arch_of(provider, instance_type)
    if said not in _ARCHITECTURES:
        raise _LeftOut(OTHER_ARCH)
    return _ARCHITECTURES[said]


def _gpus(row: Row, instance_type: str) -> Gpus:
    if vram_gb := _size(row, "vram_gb"):
        return Gpus(instance_type, "NVIDIA", 1, int(vram_gb * _MIB_PER_GIB))
    return gpus_of(row.get("accelerator", ""), _size(row, "accelerator_count"), row.get("gpu_info", ""))


def _size(row: Row, name: str) -> float:
    return float(_number(row.get(name, "")) or 0)


def _price(row: Row, name: str) -> Decimal | None:
    """A price of zero says that nobody knew the price."""
    return _number(row.get(name, "").removeprefix("$").removesuffix("/hr")) or None


@lru_cache(maxsize=65_536)
def _number(text: str) -> Decimal | None:
    if not text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _LeftOut(MALFORMED) from None
    if not value.is_finite() or not 0 <= value < _ABSURD:
        raise _LeftOut(MALFORMED)
    return value
