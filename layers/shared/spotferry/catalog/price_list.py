"""Reading price lists: which columns a CSV has, and what stands in a row, whatever its year and cloud."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from spotferry.types.errors import wrong

Row = Mapping[str, str]
"""One row by our names of its columns; a column that the list lacks is missing, an empty cell is ""."""

_NAMES: Mapping[str, Sequence[str]] = {
    "type": ("InstanceType", "Name"),
    "accelerator": ("AcceleratorName",),
    "accelerator_count": ("AcceleratorCount",),
    "vcpus": ("vCPUs",),
    "memory_gib": ("MemoryGiB", "RAM (GB)"),
    "gpu_info": ("GpuInfo",),
    "vram_gb": ("vRAM",),
    "price": ("Price",),
    "spot_price": ("SpotPrice",),
    "region": ("Region",),
    "regions": ("Regions",),
    "zone": ("AvailabilityZone",),
    "arch": ("Arch",),
}
_NEEDED = ("type", "vcpus", "memory_gib", "price")
_OURS = {theirs.casefold(): ours for ours, names in _NAMES.items() for theirs in names}


def rows_of(data: bytes, source: str) -> Iterator[Row | None]:
    """The list's rows in order; None for a row that has more cells than the header, which nobody can read.

    Raises:
        InvalidInput: it is not a CSV, or not a price list; `source` names it.
    """
    reader = csv.reader(io.StringIO(_text(data, source)), strict=True)
    try:
        columns = _columns(next(reader, []), source)
        for cells in reader:
            if cells:
                yield _row(columns, cells)
    except csv.Error as error:
        raise wrong(source, f"is not a CSV: line {reader.line_num}: {error}") from error


def _text(data: bytes, source: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong(source, "is not a CSV: it is not text in UTF-8") from error
    if "\0" in text:
        raise wrong(source, "is not a CSV: it holds binary data")
    return text


def _columns(header: Sequence[str], source: str) -> list[str | None]:
    columns = [_OURS.get(name.strip().casefold()) for name in header]
    missing = [_NAMES[name][0] for name in _NEEDED if name not in columns]
    if "region" not in columns and "regions" not in columns:
        missing += _NAMES["region"]
    if missing:
        raise wrong(source, f"is not a price list: its first line names no column {', '.join(missing)}")
    return columns


def _row(columns: Sequence[str | None], cells: Sequence[str]) -> Row | None:
    if len(cells) > len(columns):
        return None
    return {name: cell.strip() for name, cell in zip(columns, cells, strict=False) if name is not None}
