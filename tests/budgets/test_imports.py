"""What a cold start loads: the API never loads a cloud's SDK, nor anything it does not use."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from benchmarks.imports import AS_DEPLOYED, SUBMIT_HANDLER, import_often

ROOT = Path(__file__).parents[2]
MOST_MODULES = 345
"""Of the submit handler; four in five are the standard library's, pydantic's and Powertools'."""

ROUNDS = 3
"""Of measuring a time before it counts as too long."""

WAITING = (
    "boto3",
    "botocore.session",
    "pynamodb",
    "ruamel",
    "sqlite3",
    "google.auth",
    "google.cloud.compute_v1",
    "azure",
)
"""What a function loads when it first needs it, each as long as a third of the rest."""

UNUSED = ("asyncio", "aws_lambda_powertools.event_handler", "aws_lambda_powertools.utilities.data_classes")
"""What libraries bring along unasked."""

FUNCTIONS = sorted(path.parent.name for path in ROOT.glob("functions/*/app.py"))
_PROBE = """\
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("app", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps(sorted(sys.modules)))
"""


@cache
def modules(function: str, started: str = "on-demand") -> frozenset[str]:
    """The modules that a function's import loads, in a process of its own that was started so."""
    path = ROOT / "functions" / function / "app.py"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "POWERTOOLS_", "COVERAGE"))
    }
    ran = subprocess.run(
        [sys.executable, "-c", _PROBE, str(path)],
        env={
            **environment,
            **AS_DEPLOYED,
            "AWS_LAMBDA_INITIALIZATION_TYPE": started,
            "PYTHONPATH": str(ROOT / "layers/shared"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return frozenset(json.loads(ran.stdout.splitlines()[-1]))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_needs_an_environment_or_a_cloud_to_be_imported(function: str) -> None:
    """Nothing is made at import, and no cloud's SDK is loaded before a machine is asked for."""
    loaded = modules(function)
    assert "spotferry.runtime.wiring" in loaded
    for forbidden in (*WAITING, *UNUSED, "spotferry.providers.aws.provider", "spotferry.providers.aws.api"):
        assert forbidden not in loaded, forbidden


@pytest.mark.parametrize("started", ["snap-start", "provisioned-concurrency"])
def test_a_function_that_starts_before_its_calls_loads_what_they_need(started: str) -> None:
    """What waits for the first call is in a snapshot already, where loading it costs nobody any time."""
    loaded = modules("submit_job", started)
    assert {"botocore.session", "pynamodb", "ruamel.yaml", "sqlite3"} <= loaded
    assert not {"boto3", "google.auth", "google.cloud.compute_v1", "azure"} & loaded


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_loads_what_only_tests_and_laptops_have(function: str) -> None:
    """The layer holds none of it."""
    for forbidden in ("moto", "pytest", "local", "cli", "httpx", "click", "spotferry.store.memory"):
        assert forbidden not in modules(function), forbidden


def test_the_submit_handler_loads_little() -> None:
    """What people hand in needs neither the state machine nor anything of agents and machines (`make bench` has the
    time).
    """
    loaded = modules("submit_job")
    assert len(loaded) <= MOST_MODULES
    ours = {name.removeprefix("spotferry.") for name in loaded if name.startswith("spotferry.")}
    rooms = ("domain.lifecycle", "domain.events", "usecases.launch", "usecases.hear_agent", "agent", "runtime.agents")
    assert not {name for name in ours if name.startswith(rooms)}


def test_the_submit_handler_starts_within_its_budget() -> None:
    """Processor time of the import, byte-compiled: the best of several, since neighbours only ever add to it."""
    name, path, at_most = SUBMIT_HANDLER
    assert any(min(took for took, *_ in import_often(name, path)) <= at_most for _ in range(ROUNDS))
