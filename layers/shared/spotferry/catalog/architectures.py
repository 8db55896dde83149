"""Which processor an instance type has, where a price list does not say."""

import re

from spotferry.domain.azure_types import azure_type

_AWS_ARM_FAMILIES = ("a1", "mac2", "mac-m", "p6e-gb200")
_AWS_SUFFIX = re.compile(r"[a-z]+\d+([a-z]*)")
_GCP_ARM_FAMILIES = ("t2a-", "c4a-", "n4a-", "a4x-")


def arch_of(provider: str, instance_type: str) -> str:
    """The architecture by the type's name; x86_64 where a name says nothing."""
    if provider == "aws":
        is_arm = _is_graviton(instance_type)
    elif provider == "gcp":
        is_arm = instance_type.startswith(_GCP_ARM_FAMILIES)
    else:
        named = azure_type(instance_type) if provider == "azure" else None
        is_arm = named is not None and "p" in named.features.lower()
    return "arm64" if is_arm else "x86_64"


def _is_graviton(instance_type: str) -> bool:
    """Families with a `g` behind the generation's number: `m6g`, `x2gd`, `im4gn`, `g5g`; not `g4dn`, `g5`, `gr6`."""
    family = instance_type.partition(".")[0]
    if family.startswith(_AWS_ARM_FAMILIES):
        return True
    named = _AWS_SUFFIX.match(family)
    return named is not None and "g" in named.group(1)
