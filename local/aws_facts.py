"""What EC2 sells where: sizes of instance types, offerings of zones, zone names and ids, from the data moto ships."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from local.market_model import Shape

_FAMILIES = (
    (re.compile(r"^(u-|u\d)"), "HighMemory"),
    (re.compile(r"^(dl)\d"), "DL"),
    (re.compile(r"^(inf)\d"), "Inf"),
    (re.compile(r"^(trn)\d"), "Trn"),
    (re.compile(r"^(hpc)\d"), "HPC"),
    (re.compile(r"^(g|gr|vt)\d"), "G and VT"),
    (re.compile(r"^p\d"), "P"),
    (re.compile(r"^f\d"), "F"),
    (re.compile(r"^x\d"), "X"),
)
_STANDARD = "Standard"
_DIGEST_DIGITS = 12
_CHECK_DIGITS = 4
_AMI_ID = re.compile(r"^ami-([0-9a-f]{8}|[0-9a-f]{17})$")
_GPU_BIT, _ARM_BIT = 1, 2
_GPU_WORDS = ("gpu", "nvidia", "cuda", "neuron", "deeplearning")
_ARM_WORDS = ("arm64", "aarch64")
_ARM_TYPE = re.compile(r"^(a1|[a-z]+\d+g[a-z]*)\.")
_TAUGHT: dict[str, Shape] = {}


@dataclass(frozen=True, slots=True)
class PublicImage:
    """An image the public parameters of its vendor lead to."""

    image_id: str
    snapshot_id: str
    snapshot_gib: int
    arch: str
    gpu: bool
    root_device: str = "/dev/sda1"


def public_image_id(region: str, parameter_name: str) -> str:
    """The image id that a vendor's public parameter has in a region: always the same, and recognisable later.

    Its first digit says what the parameter's name tells of GPU and architecture, its last four digits prove where it
    comes from, so that nobody has to remember which ids were handed out.
    """
    name = parameter_name.lower()
    kind = _GPU_BIT * any(word in name for word in _GPU_WORDS) + _ARM_BIT * any(word in name for word in _ARM_WORDS)
    body = f"{kind:x}{_digest(region, parameter_name)[:_DIGEST_DIGITS]}"
    return f"ami-{body}{_digest(region, body)[:_CHECK_DIGITS]}"


def public_image(region: str, image_id: str) -> PublicImage | None:
    """What is behind an id from `public_image_id` of this region; None for any other id."""
    if not well_formed_image_id(image_id):
        return None
    digits = image_id.removeprefix("ami-")
    body, check = digits[:-_CHECK_DIGITS], digits[-_CHECK_DIGITS:]
    if len(digits) != 1 + _DIGEST_DIGITS + _CHECK_DIGITS or _digest(region, body)[:_CHECK_DIGITS] != check:
        return None
    kind = int(body[0], 16)
    return PublicImage(
        image_id=image_id,
        snapshot_id=f"snap-0{_digest(region, image_id)[:16]}",
        snapshot_gib=35 if kind & _GPU_BIT else 8,
        arch="arm64" if kind & _ARM_BIT else "x86_64",
        gpu=bool(kind & _GPU_BIT),
    )


def well_formed_image_id(image_id: str) -> bool:
    """Tell whether it looks like an image id at all."""
    return _AMI_ID.match(image_id) is not None


@cache
def shape_of(instance_type: str) -> Shape | None:
    """The size of a type; None when EC2 has no such type and nobody taught it."""
    fact = _instance_types().get(instance_type)
    if fact is None:
        return _TAUGHT.get(instance_type)
    gpus = fact.get("GpuInfo", {}).get("Gpus", [])
    return _shape(
        instance_type,
        fact["VCpuInfo"]["DefaultVCpus"],
        fact["MemoryInfo"]["SizeInMiB"],
        sum(int(gpu.get("Count", 0)) for gpu in gpus),
        "arm64" if "arm64" in fact["ProcessorInfo"]["SupportedArchitectures"] else "x86_64",
    )


def teach_shape(instance_type: str, vcpus: int, memory_mib: int, gpus: int) -> None:
    """Make a type known that the data lacks, such as one EC2 has retired from it; known types stay as they are."""
    arch = "arm64" if _ARM_TYPE.match(instance_type) else "x86_64"
    _TAUGHT[instance_type] = _shape(instance_type, vcpus, memory_mib, gpus, arch)
    shape_of.cache_clear()


def _shape(instance_type: str, vcpus: int, memory_mib: int, gpus: int, arch: str) -> Shape:
    family = next((family for pattern, family in _FAMILIES if pattern.match(instance_type)), _STANDARD)
    return Shape(vcpus=vcpus, memory_mib=memory_mib, gpus=gpus, quota_family=family, arch=arch)


@cache
def offered_types(region: str) -> dict[str, frozenset[str]]:
    """The types each zone of the region offers, by zone name; empty for a region nothing is known of."""
    path = _moto_file(f"ec2/resources/instance_type_offerings/availability-zone/{region}.json.gz")
    if not path.exists():
        return {}
    offered: dict[str, set[str]] = {}
    for row in json.loads(gzip.decompress(path.read_bytes())):
        offered.setdefault(row["Location"], set()).add(row["InstanceType"])
    return {zone: frozenset(types) for zone, types in sorted(offered.items())}


# The rows are moto's own JSON, which has no declared type.
@cache
def _instance_types() -> dict[str, Any]:
    raw = gzip.decompress(_moto_file("ec2/resources/instance_types.json.gz").read_bytes())
    types: dict[str, Any] = json.loads(raw)
    return types


def _moto_file(relative: str) -> Path:
    spec = importlib.util.find_spec("moto")
    assert spec is not None, "moto is not installed: run `make setup`"
    assert spec.submodule_search_locations is not None, "moto is not a package"
    return Path(spec.submodule_search_locations[0]) / relative


def _digest(*parts: str) -> str:
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
