"""Loading what a command needs only once it is needed, so that `spotferry --help` answers at once."""

import importlib
from typing import Any


def load(module: str, attribute: str) -> Any:  # Any: whatever the module holds under that name
    """The attribute of the module, which is imported now."""
    return getattr(importlib.import_module(module), attribute)
