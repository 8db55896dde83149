"""How much processor time imports take, byte-compiled, and whether a cloud's SDK is among them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.report import Measurement

ROOT = Path(__file__).parents[1]
REPEATS = 7
SDKS = ("boto3", "google.cloud", "azure")

_SUBJECTS: tuple[tuple[str, str, float | None], ...] = (
    ("spotferry.domain.placement", "", None),
    ("spotferry.catalog.source", "", None),
    ("submit handler", "functions/submit_job/app.py", 250.0),
    ("receive_report handler", "functions/receive_report/app.py", None),
    ("create_instance handler", "functions/create_instance/app.py", None),
    ("spotferry.providers.aws.provider", "", None),
    ("agent", "layers/shared/spotferry/agent/__main__.py", None),
)
"""Name or module, file where it is imported by path, and what it may take at most (ms)."""

AS_DEPLOYED = {"AWS_DEFAULT_REGION": "us-east-1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""What the template sets for every function and matters to an import."""

_CHILD = """
import importlib, importlib.util, json, sys, time
module, path, sdks = sys.argv[1], sys.argv[2], sys.argv[3:]
start = time.process_time()
if path:
    spec = importlib.util.spec_from_file_location("measured", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["measured"] = loaded
    spec.loader.exec_module(loaded)
else:
    importlib.import_module(module)
took = 1000 * (time.process_time() - start)
print(json.dumps([took, len([sdk for sdk in sdks if sdk in sys.modules])]))
"""


def measure() -> Iterator[Measurement]:
    """The median of several processes after one that byte-compiled; what is not there yet is left out."""
    for name, path, at_most in _SUBJECTS:
        if not _exists(name, path):
            continue
        _import_once(name, path)
        runs = [_import_once(name, path) for _ in range(REPEATS)]
        yield Measurement(f"import {name}", "median", median(took for took, _ in runs), "ms", at_most)
        limit = None if at_most is None else 0.0
        yield Measurement(f"import {name}", "cloud SDKs loaded", max(sdks for _, sdks in runs), "SDKs", limit)


def _exists(name: str, path: str) -> bool:
    file = ROOT / (path or f"layers/shared/{name.replace('.', '/')}.py")
    return file.is_file()


def _import_once(name: str, path: str) -> tuple[float, int]:
    environment = {**os.environ, **AS_DEPLOYED, "PYTHONPATH": str(ROOT / "layers/shared")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", _CHILD, name, str(ROOT / path) if path else "", *SDKS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"{name} cannot be imported: {done.stderr.strip()}")
    took, sdks = json.loads(done.stdout.splitlines()[-1])
    return float(took), int(sdks)
