"""Finds the clouds by their folders; imports one only when it is asked for."""

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from spotferry.ports.cloud import CloudProvider
from spotferry.providers.context import ProviderContext
from spotferry.types.errors import Misconfigured
from spotferry.types.events import Notice

__all__ = ["Factory", "ProviderContext", "load", "names", "parse_notice"]

Factory = Callable[[ProviderContext], CloudProvider]
"""What `provider.py` of each folder exports as `build`."""

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """The clouds there are: every folder here that holds a `provider.py`."""
    return tuple(sorted(entry.parent.name for entry in _FOLDER.glob("*/provider.py")))


def load(name: str) -> Factory:
    """The factory of one cloud; imports its SDK, and no other's.

    Raises:
        Misconfigured: there is no such cloud, or its SDK is not installed.
    """
    if name not in names():
        raise Misconfigured(f"there is no provider {name!r} in this deployment; there are: {', '.join(names())}")
    factory: Factory = _module(name, "provider").build
    return factory


def parse_notice(envelope: Mapping[str, object]) -> tuple[Notice, ...] | None:
    """What clouds announce in an event from the bus, by the first cloud that knows its kind; loads no SDK.

    Returns:
        The notices in it, possibly none; None when the event is of no cloud's kind.

    Raises:
        InvalidInput: the kind is known, the content is not what it promises.
    """
    for name in names():
        if (_FOLDER / name / "notices.py").exists():
            notices: tuple[Notice, ...] | None = _module(name, "notices").parse(envelope)
            if notices is not None:
                return notices
    return None


def _module(name: str, part: str) -> ModuleType:
    try:
        return importlib.import_module(f"{__package__}.{name}.{part}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(__package__):
            raise
        raise Misconfigured(
            f"the provider {name} needs the module {error.name}, which is not installed: "
            f"install providers/{name}/requirements.txt"
        ) from error
