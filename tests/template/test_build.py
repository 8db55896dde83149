"""The template as the SAM CLI sees it, and the layer that it builds."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from local.packaging import ROOT
from spotferry.providers.registry import names, pricing_names

SAM = ROOT / ".venv-sam" / "bin" / "sam"
LIMIT_BYTES = 250 * 1024 * 1024  # Lambda's, for a function and all its layers, unzipped
UNCHECKED_HASH = 0b01  # flags of PEP 552: the bytecode is used without a look at its source
SECONDS = 240
LAYERS = ("SharedLayer", "ProviderSdksLayer")

pytestmark = pytest.mark.skipif(not SAM.exists(), reason="needs .venv-sam, which `make test` and `make setup-sam` make")


def run_sam(*arguments: str) -> None:
    """Run the SAM CLI on the tree as `make build` does; its output is the failure's text."""
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": os.environ.get("HOME", "/"),
        "SAM_CLI_TELEMETRY": "0",
        "AWS_DEFAULT_REGION": "us-east-1",
        "LAYER_PYTHON": sys.executable,
        **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LANG", "LC_"))},
    }
    done = subprocess.run(
        [str(SAM), *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build folder of a whole build for the Python that runs the tests."""
    folder = tmp_path_factory.mktemp("build") / "out"
    runtime = f"python{sys.version_info.major}.{sys.version_info.minor}"
    run_sam("build", "--build-dir", str(folder), "--parameter-overrides", f"PythonRuntime={runtime}")
    return folder


def import_from_layer(
    build: Path, module: str, *folders: Path, layers: Sequence[str] = ("SharedLayer",)
) -> subprocess.CompletedProcess[str]:
    """Import a module in an interpreter that sees the layers and these folders, and no installed package."""
    paths = os.pathsep.join(map(str, (*folders, *(build / layer / "python" for layer in layers))))
    environment: Mapping[str, str] = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "AWS_REGION": "us-east-1"}
    return subprocess.run(
        [os.path.realpath(sys.executable), "-S", "-s", "-c", f"import {module}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_template_is_valid() -> None:
    """SAM's own check and cfn-lint find nothing."""
    run_sam("validate", "--lint")


def test_the_template_of_a_launch_region_is_valid() -> None:
    """CloudFormation takes it as it is, without the SAM CLI."""
    run_sam("validate", "--lint", "--template-file", "template-region.yaml")


def test_every_function_imports_from_the_built_layer_alone(build: Path) -> None:
    """No function needs a library that the layer lacks, nor any environment at import."""
    functions = sorted(path for path in build.iterdir() if path.name.endswith("Function"))
    assert [path.name for path in functions] == sorted(
        "".join(word.capitalize() for word in folder.name.split("_")) + "Function"
        for folder in (ROOT / "functions").iterdir()
        if (folder / "app.py").is_file()
    )
    for function in functions:
        done = import_from_layer(build, "app", function)
        assert done.returncode == 0, f"{function.name}: {done.stderr}"


@pytest.mark.parametrize("provider", pricing_names())
def test_every_clouds_prices_load_from_the_built_layers_alone(build: Path, provider: str) -> None:
    """No pricing model needs a library that the two layers lack."""
    done = import_from_layer(build, f"spotferry.providers.{provider}.pricing", layers=LAYERS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("provider", names())
def test_every_cloud_loads_from_the_built_layers_alone(build: Path, provider: str) -> None:
    """No adapter needs a library that the two layers lack."""
    done = import_from_layer(build, f"spotferry.providers.{provider}.provider", layers=LAYERS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("layer", LAYERS)
def test_the_layer_is_byte_compiled(build: Path, layer: str) -> None:
    """All of the layer's sources have bytecode that a read-only file system needs no second look at."""
    site = build / layer / "python"
    tag = sys.implementation.cache_tag
    sources = [path for path in site.rglob("*.py") if not path.name.endswith(".tmpl.py")]
    assert len(sources) > 100
    for source in sources:
        compiled = source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc"
        assert compiled.is_file(), source.relative_to(site)
        assert int.from_bytes(compiled.read_bytes()[4:8], "little") == UNCHECKED_HASH, source.relative_to(site)


def test_the_layers_fit(build: Path) -> None:
    """Both layers with their bytecode, beside the largest function, stay under Lambda's limit."""
    size_bytes = sum(path.stat().st_size for layer in LAYERS for path in (build / layer).rglob("*") if path.is_file())
    assert size_bytes < LIMIT_BYTES, f"{size_bytes / 1024 / 1024:.0f} MiB"


def test_the_layer_holds_no_tools(build: Path) -> None:
    """What only developing needs stays out of the layer, and so do the clouds' SDKs, which few functions load."""
    held = {path.name for path in (build / "SharedLayer" / "python").iterdir()}
    assert held.isdisjoint({"moto", "ministack", "pytest", "mypy", "ruff", "click", "bin", "google", "azure"})
    assert {"spotferry", "boto3", "pynamodb", "pydantic", "aws_lambda_powertools", "ruamel"} <= held
