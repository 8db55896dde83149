"""GPUs of a machine, as price lists tell of them."""

import ast
import json
from typing import Any

from pydantic import Field, ValidationError

from spotferry.types.base import Record


class MemoryInfo(Record):
    """How much memory one GPU has."""

    size_in_mib: int = Field(default=0, alias="SizeInMiB")


class GPU(Record):
    """One kind of GPU in a machine."""

    name: str = Field(default="", alias="Name")
    manufacturer: str = Field(default="", alias="Manufacturer")
    count: int = Field(default=0, alias="Count")
    memory_info: MemoryInfo = Field(default_factory=MemoryInfo, alias="MemoryInfo")


class GpuInfo(Record):
    """All GPUs of a machine."""

    gpus: tuple[GPU, ...] = Field(default=(), alias="Gpus")
    total_gpu_memory_in_mib: int = Field(default=0, alias="TotalGpuMemoryInMiB")


def parse_gpus(text: str) -> GpuInfo:
    """GPU text as JSON or as a Python literal with single quotes, as price lists have it.

    Empty or malformed text gives an empty GpuInfo, never an exception.
    """
    if not text.strip():
        return GpuInfo()
    # Any: the text may hold any literal; the model says what it must be.
    loaded: Any
    try:
        loaded = json.loads(text)
    except ValueError:
        try:
            loaded = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return GpuInfo()
    try:
        return GpuInfo.model_validate(loaded)
    except (ValidationError, RecursionError):
        return GpuInfo()
