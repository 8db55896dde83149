"""The importer takes price lists as they are, and says what it left out and why."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from spotferry.catalog import importer
from spotferry.catalog.importer import ImportReport, import_price_list
from spotferry.types import InvalidInput, Offer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
LATEST = f"{OLD},Generation,Arch,LocalDiskType,LocalDiskSize,LocalDiskCount"
NEW = (
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,Arch,LocalDiskType,Price,SpotPrice,Region,Generation"
)
PAPERSPACE = "Name,vRAM,vCPUs,RAM (GB),Price,Regions"
T4 = (
    "\"{'Gpus': [{'Name': 'T4', 'Manufacturer': 'NVIDIA', 'Count': 4, 'MemoryInfo': {'SizeInMiB': 16384}}],"
    " 'TotalGpuMemoryInMiB': 65536}\""
)
SHARED_LISTS = Path(__file__).parents[4] / "shared" / "catalog"


def take(header: str, *rows: str, provider: str = "aws") -> tuple[list[Offer], ImportReport]:
    """Import a list of these rows."""
    return import_price_list("\n".join([header, *rows]).encode(), provider, NOW)


def test_row_becomes_an_offer_with_its_disk_priced() -> None:
    """A row is one offer, its prices exact, the disk at the region's price."""
    (offer,), report = take(OLD, f"g4dn.12xlarge,T4,4.0,48.0,192.0,{T4},3.912,1.234567,us-west-1,usw1-az1")
    assert offer == Offer(
        provider="aws",
        region="us-west-1",
        zone="usw1-az1",
        instance_type="g4dn.12xlarge",
        arch="x86_64",
        vcpus=48,
        memory_gib=192,
        gpu_name="T4",
        gpu_maker="NVIDIA",
        gpu_count=4,
        vram_mib=65_536,
        spot_usd_hour=Decimal("1.234567"),
        on_demand_usd_hour=Decimal("3.912"),
        disk_usd_gib_month=Decimal("0.096"),
        read_at=NOW,
    )
    assert report == ImportReport(rows=1, taken=1, offers=1, left_out={})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (",Inferentia,8,,,,9.1,3.2,us-east-1,use1-az1", importer.ACCELERATOR_ALONE),
        (",,,4.0,16.0,,0.1,0.05,us-east-1,use1-az1", importer.NOT_A_MACHINE),
        ("m5.large,,,,8.0,,0.096,0.03,us-east-1,use1-az1", importer.NOT_A_MACHINE),
        ("m5.large,,,2.0,0,,0.096,0.03,us-east-1,use1-az1", importer.NOT_A_MACHINE),
        ("m5.large,,,2.0,8.0,,,,us-east-1,use1-az1", importer.NO_PRICE),
        ("m5.large,,,2.0,8.0,,0,0.0000,us-east-1,use1-az1", importer.NO_PRICE),
        ("m5.large,,,2.0,8.0,,0.096,0.03,,use1-az1", importer.NO_REGION),
        ("m5.large,,,2.0,8.0,,-0.1,0.03,us-east-1,use1-az1", importer.MALFORMED),
        ("m5.large,,,2.0,8.0,,0.096,free,us-east-1,use1-az1", importer.MALFORMED),
        ("m5.large,,,2.0,8.0,,NaN,0.03,us-east-1,use1-az1", importer.MALFORMED),
        ("m5.large,,,2.0,8.0,,Infinity,0.03,us-east-1,use1-az1", importer.MALFORMED),
        ("m5.large,,,two,8.0,,0.096,0.03,us-east-1,use1-az1", importer.MALFORMED),
        ("m5.large,,,2.0,8.0,,0.096,0.03,us-east-1,use1-az1,and,more", importer.MALFORMED),
        ("m5.large,,,2.0", importer.NOT_A_MACHINE),
        ("t3.nano,,,2.0,0.5,,0.0052,0.0016,us-east-1,use1-az1", importer.DUPLICATE),
    ],
)
def test_row_that_cannot_be_taken_is_counted_by_its_reason(row: str, reason: str) -> None:
    """What is no machine, has no price, or cannot be read is left out with its reason; the rest is taken."""
    offers, report = take(OLD, "t3.nano,,,2.0,0.5,,0.0052,0.0016,us-east-1,use1-az1", row)
    assert [offer.instance_type for offer in offers] == ["t3.nano"]
    assert report == ImportReport(rows=2, taken=1, offers=1, left_out={reason: 1})


def test_host_that_is_priced_without_its_accelerators_is_left_out() -> None:
    """An a2 host comes with GPUs that its row does not price, so its price is not what it costs."""
    row = "a2-highgpu-1g,,,12.0,85.0,,0.8,0.24,us-central1,us-central1-a"
    assert take(OLD, row, provider="gcp")[1].left_out == {importer.HOST_ALONE: 1}


def test_price_in_one_market_is_enough() -> None:
    """A row with one price is taken; the market without one has none, also where the list says zero."""
    offers, _ = take(
        OLD,
        "m5.large,,,2.0,8.0,,0.096,,us-east-1,use1-az1",
        "m5.large,,,2.0,8.0,,0.096,0,us-east-1,use1-az2",
        "m5.large,,,2.0,8.0,,,0.03,us-east-1,use1-az3",
    )
    prices = [(offer.spot_usd_hour, offer.on_demand_usd_hour) for offer in offers]
    assert prices == [(None, Decimal("0.096")), (None, Decimal("0.096")), (Decimal("0.03"), None)]


def test_newer_list_is_read_by_its_own_columns() -> None:
    """Columns in another order, an architecture, none for the zone, and columns that nobody knows."""
    offers, report = take(
        NEW,
        "m6g.large,2,8,,,arm64,ssd,0.077,0.03,us-east-1,6",
        "t2.micro,1,1,,,i386,,0.0116,0.0035,us-east-1,2",
        "L4s,8,32,L4,1,x86_64,,0.8,0.3,us-east-1,2",
    )
    assert [(o.instance_type, o.arch, o.zone, o.gpu_name, o.vram_mib) for o in offers] == [
        ("m6g.large", "arm64", "", "", 0),
        ("L4s", "x86_64", "", "L4", 24_576),
    ]
    assert report.left_out == {importer.OTHER_ARCH: 1}


def test_paperspace_list_names_several_regions_in_one_cell() -> None:
    """Another header, prices with their unit, several regions a row, GPUs named by the machine; no spot market."""
    offers, report = take(
        PAPERSPACE,
        'C1,,1,0.5,$0.0045/hr,"AMS1, NY2, CA1"',
        "A100-80G,80,12,90,$3.19/hr,NY2",
        provider="paperspace",
    )
    assert [(o.instance_type, o.region, o.gpu_count, o.vram_mib) for o in offers] == [
        ("C1", "AMS1", 0, 0),
        ("C1", "NY2", 0, 0),
        ("C1", "CA1", 0, 0),
        ("A100-80G", "NY2", 1, 81_920),
    ]
    assert {offer.spot_usd_hour for offer in offers} == {None}
    assert offers[0].on_demand_usd_hour == Decimal("0.0045")
    assert (report.taken, report.offers) == (2, 4)


def test_columns_of_local_disks_and_generations_do_no_harm() -> None:
    """The newest lists say more than the importer takes; what it takes is read all the same."""
    (offer,), report = take(LATEST, "m7gd.large,,,2,8,,0.1068,0.04,us-east-1,use1-az4,7,arm64,ssd,118,1")
    assert (offer.instance_type, offer.arch, offer.zone, offer.vcpus) == ("m7gd.large", "arm64", "use1-az4", 2)
    assert report.left_out == {}


@pytest.mark.parametrize(
    ("name", "count", "info", "expected"),
    [
        ("Inferentia", "1.0", "", ("", "", 0, 0)),
        ("Virtex UltraScale (VU9P)", "2.0", "", ("", "", 0, 0)),
        ("A100-80GB", "8.0", "A100-80GB", ("A100-80GB", "NVIDIA", 8, 655_360)),
        ("T4", "0.125", "", ("", "", 0, 0)),
        (
            "V100-32GB",
            "8.0",
            (
                '"{""Gpus"": [{""Name"": ""V100"", ""Manufacturer"": ""NVIDIA"", ""Count"": 8,'
                ' ""MemoryInfo"": {""SizeInMiB"": 32768}}], ""TotalGpuMemoryInMiB"": 262144}"'
            ),
            ("V100-32GB", "NVIDIA", 8, 262_144),
        ),
        ("", "", "{'Gpus': broken", ("", "", 0, 0)),
    ],
)
def test_gpus_are_read_from_text_or_known_by_name(
    name: str, count: str, info: str, expected: tuple[str, str, int, int]
) -> None:
    """GPU text may be JSON, a Python literal or broken; what is no GPU, or a part of one, is none."""
    (offer,), _ = take(OLD, f"x1.large,{name},{count},2.0,8.0,{info},0.5,0.2,us-east-1,use1-az1")
    assert (offer.gpu_name, offer.gpu_maker, offer.gpu_count, offer.vram_mib) == expected


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "names no column InstanceType, vCPUs, MemoryGiB, Price, Region"),
        (b"hello\nworld\n", "is not a price list"),
        (b"InstanceType,vCPUs,MemoryGiB,Price\n", "names no column Region"),
        (b"\x89PNG\r\n\x1a\n\xff", "is not text in UTF-8"),
        (b"InstanceType\0,vCPUs", "binary"),
        (OLD.encode() + b'\n"m5.large,,,2', "is not a CSV"),
    ],
)
def test_file_that_is_no_price_list_is_refused(data: bytes, says: str) -> None:
    """Another kind of file is refused by name, with what it lacks."""
    with pytest.raises(InvalidInput, match=r"prices\.txt: ") as refused:
        import_price_list(data, "aws", NOW, source="prices.txt")
    assert says in str(refused.value)


def test_byte_order_mark_and_blank_lines_do_no_harm() -> None:
    """Lists saved by a spreadsheet are read too."""
    data = f"\ufeff{OLD}\r\n\r\nm5.large,,,2.0,8.0,,0.096,0.03,us-east-1,use1-az1\r\n".encode()
    assert import_price_list(data, "aws", NOW)[1].taken == 1


def test_progress_is_told_every_thousand_rows() -> None:
    """Long lists report how far they are."""
    told: list[int] = []
    rows = "\n".join(f"m5.large,,,2,8,,0.1,0.05,us-east-1,z{number}" for number in range(2500))
    import_price_list(f"{OLD}\n{rows}".encode(), "aws", NOW, progress=told.append)
    assert told == [1000, 2000]


@pytest.mark.parametrize(
    ("provider", "left_out", "offers"),
    [
        ("aws", {importer.NO_PRICE: 60}, 26_114),
        ("gcp", {importer.ACCELERATOR_ALONE: 31}, 5_038),
        ("paperspace", {}, 53),
    ],
)
def test_public_lists_are_taken_as_they_are(provider: str, left_out: Mapping[str, int], offers: int) -> None:
    """The real lists import whole, but for rows that are no machine or have no true price."""
    path = SHARED_LISTS / f"{provider}.csv"
    if not path.is_file():
        pytest.skip("the public price lists are not beside this repository")
    taken, report = import_price_list(path.read_bytes(), provider, NOW)
    assert (report.left_out, report.offers, len(taken)) == (left_out, offers, offers)
