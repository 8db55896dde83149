"""Runs the contract against a real account: `python -m tests.contract.live aws`. It costs money, so it wants a word."""

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
SWITCH = "SPOTFERRY_LIVE"


def providers() -> Sequence[str]:
    """The clouds whose contract can be run against an account: those with a `live_<name>.py` here."""
    found = (path.stem.removeprefix("live_") for path in _HERE.glob("live_*.py"))
    return sorted(name for name in found if name != "cloud")


def bound(name: str) -> str:
    """What a run costs at most, in words."""
    module = importlib.import_module(f"tests.contract.live_{name}")
    machines, minutes = int(module.MOST_MACHINES), int(module.MOST_MINUTES)
    usd_hour: Decimal = module.USD_HOUR
    usd = usd_hour * machines * minutes / 60
    return (
        f"at most {machines} machines of type {module.INSTANCE_TYPE}, each for at most {minutes} minutes at up to"
        f" ${usd_hour} an hour: no more than ${usd:.2f}"
    )


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Run one cloud's contract; pytest's status, or 2 when nothing was started."""
    parser = argparse.ArgumentParser(prog="make contract-live", description=__doc__)
    parser.add_argument("provider", choices=providers())
    name = parser.parse_args(arguments).provider
    sys.stderr.write(f"The contract for {name}, against the account of your credentials: {bound(name)}.\n")
    if environ.get(SWITCH) != "yes":
        sys.stderr.write(f"Nothing was started. If you want it: {SWITCH}=yes make contract-live PROVIDER={name}\n")
        return 2
    return int(pytest.main([str(_HERE / f"live_{name}.py"), "-v", "-rs", "-p", "no:xdist", "-p", "no:cacheprovider"]))


if __name__ == "__main__":
    sys.exit(main())
