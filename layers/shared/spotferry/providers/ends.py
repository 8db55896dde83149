"""Who ended a machine, whatever words its cloud has for it. No SDK."""

from collections.abc import Mapping
from enum import StrEnum

from spotferry.types.instance import EndedBy


class Cause(StrEnum):
    """Who ended a machine."""

    TAKEN_BACK = "taken_back"
    """The cloud wanted its capacity back."""
    NEVER_STARTED = "never_started"
    """The cloud accepted the launch and could not carry it out."""
    MAINTAINED = "maintained"
    """The hardware failed, was retired, or was maintained without a move."""
    ORDERED = "ordered"
    """Somebody with rights to the account ended it, the broker most likely."""
    SHUT_DOWN = "shut_down"
    """The machine switched itself off."""


ENDED_BY: Mapping[Cause, EndedBy] = {
    Cause.TAKEN_BACK: "cloud",
    Cause.MAINTAINED: "cloud",
    Cause.NEVER_STARTED: "launch",
    Cause.ORDERED: "us",
    Cause.SHUT_DOWN: "us",
}
"""Who ended a machine, as the ledger asks."""


def ended_by(cause: Cause | None) -> EndedBy:
    """Who ended a machine; "" where the cause is not known."""
    return ENDED_BY[cause] if cause else ""


def is_the_clouds_doing(cause: Cause | None) -> bool:
    """The cloud ended the machine, or never had it run."""
    return ended_by(cause) in {"cloud", "launch"}


def reason_code(cloud_reason: str) -> str:
    """The code at the head of a reason written as "code: words"."""
    return cloud_reason.partition(":")[0].strip()
