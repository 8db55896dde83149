"""Azure's rules for names and tags, and what of ours becomes of them. No SDK."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from spotferry.types.errors import LaunchRefused
from spotferry.types.instance import Attempt, Instance

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?")
"""Of a Linux machine: at most 64 letters, digits and hyphens."""
_NOT_IN_TAG_NAMES = re.compile(r"[<>%&\\?/\x00-\x1f]")
_TAG_NAME_LIMIT, _TAG_VALUE_LIMIT, _TAGS_LIMIT = 512, 256, 50
_VM_ID = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/Microsoft\.Compute/virtualMachines/(?P<name>[^/]+)",
    re.IGNORECASE,
)


class VmId(NamedTuple):
    """Where a machine is, out of its resource id; Azure does not heed case, so both are in small letters."""

    group: str
    name: str


def vm_id(resource_id: str) -> VmId | None:
    """The machine that a resource id names, or the one that it is a part of; None when it names none."""
    found = _VM_ID.match(resource_id)
    return VmId(found["group"].lower(), found["name"].lower()) if found else None


def vm_name(instance: Instance) -> str:
    """The machine's name: what it is known by, else our own id, so that a repeated launch hits the same name."""
    return instance.allocated_id or instance.cedana_id


def checked_name(attempt: Attempt) -> str:
    """The name that the attempt's machine gets.

    Raises:
        LaunchRefused: Azure would not take it.
    """
    name = vm_name(attempt)
    if not _NAME.fullmatch(name):
        message = f"{name!r} cannot be a machine's name: letters, digits and hyphens are, 64 at most"
        raise LaunchRefused("InvalidResourceName", message, attempt.region, scope="none")
    return name


def tags(wanted: Mapping[str, str]) -> dict[str, str]:
    """The tags as Azure takes them: forbidden characters become "_", what is too long is cut, case does not tell two
    names apart; ours come first where there are too many.
    """
    kept: dict[str, str] = {}
    known: set[str] = set()
    for key in sorted(wanted, key=lambda name: (name.startswith("spotferry:label:"), name)):
        name = _NOT_IN_TAG_NAMES.sub("_", key)[:_TAG_NAME_LIMIT]
        if name and name.casefold() not in known and len(kept) < _TAGS_LIMIT:
            known.add(name.casefold())
            kept[name] = wanted[key][:_TAG_VALUE_LIMIT]
    return kept


def carries(seen: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """The machine's tags hold all that are wanted; Azure may have changed the case of their names."""
    folded = {name.casefold(): value for name, value in seen.items()}
    return all(folded.get(name.casefold()) == value for name, value in wanted.items())
