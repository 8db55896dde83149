"""How much processor time imports take, byte-compiled, and whether a cloud's SDK is among them.

Each is measured in processes of its own, which look for modules where a function does: in one folder of ours and one of
libraries, without what a virtual environment adds to every start. The first process byte-compiles and is not counted.
Of the others the best is told, and the median beside it: processor time is steady, but for neighbours who share caches.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.report import Measurement

ROOT = Path(__file__).parents[1]
REPEATS = 7
SDKS = ("boto3", "botocore.session", "pynamodb", "google.cloud", "azure")
SUBMIT_HANDLER = ("submit handler", "functions/submit_job/app.py", 250.0)
FIRST_JOB = "benchmarks.first_job"
"""Has `prepare()`, which does what the first job waits for."""

_SUBJECTS: tuple[tuple[str, str, float | None], ...] = (
    ("spotferry.domain.placement", "", None),
    ("spotferry.catalog.source", "", None),
    SUBMIT_HANDLER,
    ("serve_jobs handler", "functions/serve_jobs/app.py", None),
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
module, path, first, sdks = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
start = time.process_time()
if path:
    spec = importlib.util.spec_from_file_location("measured", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["measured"] = loaded
    spec.loader.exec_module(loaded)
else:
    importlib.import_module(module)
took = 1000 * (time.process_time() - start)
found = len([sdk for sdk in sdks if sdk in sys.modules])
start = time.process_time()
if first:
    importlib.import_module(first).prepare()
print(json.dumps([took, found, 1000 * (time.process_time() - start)]))
"""


def measure() -> Iterator[Measurement]:
    """Of each subject that is there; of the submit handler also what its first job then waits for."""
    for name, path, at_most in _SUBJECTS:
        if not _exists(name, path):
            continue
        runs = import_often(name, path)
        yield from _figures(f"import {name}", [took for took, *_ in runs], at_most)
        limit = None if at_most is None else 0.0
        yield Measurement(f"import {name}", "SDKs loaded", max(sdks for _, sdks, _ in runs), "SDKs", limit)
    runs = import_often(*SUBMIT_HANDLER[:2], first=FIRST_JOB)
    yield from _figures("the first job after it", [later for *_, later in runs])


def import_often(name: str, path: str, *, first: str = "") -> Sequence[tuple[float, int, float]]:
    """What `import_once` tells of several processes, after one that byte-compiled."""
    import_once(name, path, first)
    return [import_once(name, path, first) for _ in range(REPEATS)]


def import_once(name: str, path: str, first: str = "") -> tuple[float, int, float]:
    """Milliseconds of the import, SDKs loaded by it, milliseconds of `prepare()` in the module `first`."""
    folders = [ROOT / "layers/shared", sysconfig.get_path("purelib"), *([ROOT] if first else [])]
    environment = {**os.environ, **AS_DEPLOYED, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-S", "-c", _CHILD, name, str(ROOT / path) if path else "", first, *SDKS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"{name} cannot be imported: {done.stderr.strip()}")
    took, sdks, later = json.loads(done.stdout.splitlines()[-1])
    return float(took), int(sdks), float(later)


def _figures(subject: str, milliseconds: Sequence[float], at_most: float | None = None) -> Iterator[Measurement]:
    yield Measurement(subject, "best", min(milliseconds), "ms", at_most)
    yield Measurement(subject, "median", median(milliseconds), "ms")


def _exists(name: str, path: str) -> bool:
    file = ROOT / (path or f"layers/shared/{name.replace('.', '/')}.py")
    return file.is_file()
