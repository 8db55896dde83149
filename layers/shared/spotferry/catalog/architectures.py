"""Which processor an instance type has, where a price list does not say."""

import re

_AWS_ARM_FAMILIES = ("a1", "mac2", "mac-m", "p6e-gb200")
_AWS_SUFFIX = re.compile(r"[a-z]+\d+([a-z]*)")
_GCP_ARM_FAMILIES = ("t2a-", "c4a-", "n4a-", "a4x-")
_AZURE_ARM = re.compile(r"standard_[a-z]+\d+(?:-\d+)?[a-z]*p[a-z]*_", re.IGNORECASE)


def arch_of(provider: str, instance_type: str) -> str:
    """The architecture by the type's name; x86_64 where a name says nothing."""
    if provider == "aws":
        is_arm = _is_graviton(instance_type)
    elif provider == "gcp":
        is_arm = instance_type.startswith(_GCP_ARM_FAMILIES)
    else:
        is_arm = provider == "azure" and _AZURE_ARM.match(instance_type) is not None
    return "arm64" if is_arm else "x86_64"


def _is_graviton(instance_type: str) -> bool:
    """Families with a `g` behind the generation's number: `m6g`, `x2gd`, `im4gn`, `g5g`; not `g4dn`, `g5`, `gr6`."""
    family = instance_type.partition(".")[0]
    if family.startswith(_AWS_ARM_FAMILIES):
        return True
    named = _AWS_SUFFIX.match(family)
    return named is not None and "g" in named.group(1)
