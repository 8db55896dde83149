"""Loads ahead of the first call what it would otherwise load, where nobody waits for the start of a function."""

from collections.abc import Mapping
from importlib import import_module

MODULES = (
    "botocore.session",
    "spotferry.catalog.drafts",
    "spotferry.runtime.bucket",
    "spotferry.store.dynamo",
    "spotferry.types.yaml_reader",
)
"""What is loaded when it is first asked for: SDK, database, SQLite, YAML."""

_UNHURRIED = frozenset({"snap-start", "provisioned-concurrency"})
"""Values of AWS_LAMBDA_INITIALIZATION_TYPE: the function starts before there is a call."""


def load_ahead(environment: Mapping[str, str]) -> None:
    """Load them now if the function starts for a snapshot, or to wait for calls; else leave them to the first call.

    Nothing is made of them here, so that functions restored from one snapshot share nothing but code.
    """
    if environment.get("AWS_LAMBDA_INITIALIZATION_TYPE") in _UNHURRIED:
        for name in MODULES:
            import_module(name)
