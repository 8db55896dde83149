"""What a cold start loads: the API never loads a cloud's SDK, nor anything it does not use."""

import json
import os
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks.imports import AS_DEPLOYED

ROOT = Path(__file__).parents[2]
BUDGET_SECONDS = 0.25
NOISE = 3
"""The budget is for an idle machine; one that runs a test suite is up to so many times slower."""

FUNCTIONS = sorted(path.parent.name for path in ROOT.glob("functions/*/app.py"))
_PROBE = """\
import importlib.util, json, sys, time
begin = time.perf_counter()
spec = importlib.util.spec_from_file_location("app", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps({"seconds": time.perf_counter() - begin, "modules": sorted(sys.modules)}))
"""


def _import(function: str) -> tuple[float, frozenset[str]]:
    """Seconds that the import takes in a process of its own, and the modules that are loaded then."""
    path = ROOT / "functions" / function / "app.py"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "POWERTOOLS_", "COVERAGE"))
    }
    ran = subprocess.run(
        [sys.executable, "-c", _PROBE, str(path)],
        env={**environment, **AS_DEPLOYED, "PYTHONPATH": str(ROOT / "layers/shared")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    return float(found["seconds"]), frozenset(found["modules"])


@cache
def modules(function: str) -> frozenset[str]:
    """The modules that a function's import loads."""
    return _import(function)[1]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_needs_an_environment_or_a_cloud_to_be_imported(function: str) -> None:
    """Nothing is made at import, and no cloud's SDK is loaded before a machine is asked for."""
    loaded = modules(function)
    assert "spotferry.runtime.wiring" in loaded
    for forbidden in ("google", "azure", "boto3", "spotferry.providers.aws.provider", "spotferry.providers.aws.api"):
        assert forbidden not in loaded, forbidden


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_loads_what_only_tests_and_laptops_have(function: str) -> None:
    """The layer holds none of it."""
    for forbidden in ("moto", "pytest", "local", "cli", "httpx", "click", "spotferry.store.memory"):
        assert forbidden not in modules(function), forbidden


def test_the_submit_handler_starts_fast() -> None:
    """The import, byte-compiled, stays within its budget: the median of three, with room for a busy machine."""
    _import("submit_job")
    seconds = statistics.median(_import("submit_job")[0] for _ in range(3))
    assert seconds <= BUDGET_SECONDS * NOISE
