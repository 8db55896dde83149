"""Finds the clouds by their folders; imports one only when it is asked for."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from spotferry.ports.cloud import CloudProvider
from spotferry.providers.context import PricingContext, ProviderContext
from spotferry.types.errors import Misconfigured
from spotferry.types.events import Notice
from spotferry.types.provider import PricingModel

__all__ = [
    "Factory",
    "PricingContext",
    "PricingFactory",
    "ProviderContext",
    "load",
    "load_pricing",
    "module_of",
    "names",
    "parse_notice",
    "pricing_names",
    "with_part",
]

Factory = Callable[[ProviderContext], CloudProvider]
"""What `provider.py` of each folder exports as `build`."""
PricingFactory = Callable[[PricingContext], PricingModel]
"""What `pricing.py` of each folder exports as `build_pricing`."""

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """The clouds there are: every folder here that holds a `provider.py`."""
    return with_part("provider")


def pricing_names() -> tuple[str, ...]:
    """The clouds whose prices can be read: every folder here that holds a `pricing.py`."""
    return with_part("pricing")


def load(name: str) -> Factory:
    """The factory of one cloud; imports its SDK, and no other's.

    Raises:
        Misconfigured: there is no such cloud, or its SDK is not installed.
    """
    if name not in names():
        raise Misconfigured(f"there is no provider {name!r} in this deployment; there are: {', '.join(names())}")
    factory: Factory = module_of(name, "provider").build
    return factory


def load_pricing(name: str) -> PricingFactory:
    """The factory of one cloud's pricing model; imports its SDK, and no other's.

    Raises:
        Misconfigured: there is no such cloud, or its SDK is not installed.
    """
    if name not in pricing_names():
        known = ", ".join(pricing_names())
        raise Misconfigured(f"there are no prices of {name!r} in this deployment; there are those of: {known}")
    factory: PricingFactory = module_of(name, "pricing").build_pricing
    return factory


def parse_notice(envelope: Mapping[str, object], cloud: str = "") -> tuple[Notice, ...] | None:
    """What clouds announce in an event, by the first cloud that knows its kind; loads no SDK.

    Args:
        envelope: one event, as the cloud sent it.
        cloud: who speaks, where that is known: nobody else's kinds count; "" for any.

    Returns:
        The notices in it, possibly none; None when the event is of no cloud's kind.

    Raises:
        InvalidInput: the kind is known, the content is not what it promises.
    """
    for name in names():
        if cloud in ("", name) and (_FOLDER / name / "notices.py").exists():
            notices: tuple[Notice, ...] | None = module_of(name, "notices").parse(envelope)
            if notices is not None:
                return notices
    return None


def with_part(part: str) -> tuple[str, ...]:
    """The clouds whose folders hold this module."""
    return tuple(sorted(entry.parent.name for entry in _FOLDER.glob(f"*/{part}.py")))


def module_of(name: str, part: str) -> ModuleType:
    """One module of a cloud's folder, imported now.

    Raises:
        Misconfigured: it needs an SDK that is not installed.
    """
    try:
        return importlib.import_module(f"{__package__}.{name}.{part}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(__package__):
            raise
        raise Misconfigured(
            f"the provider {name} needs the module {error.name}, which is not installed: "
            f"install providers/{name}/requirements.txt"
        ) from error
