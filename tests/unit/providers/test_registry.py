"""The registry: clouds are folders, and none is imported until it is asked for."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spotferry.providers import registry
from spotferry.types.errors import InvalidInput, Misconfigured

# `google` itself is a folder that several packages share; whoever uses it comes through this one.
_SDKS = "boto3 botocore google.auth azure"


def run(code: str) -> dict[str, bool]:
    """What a fresh interpreter prints as JSON."""
    path = str(Path(registry.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, check=True, text=True, timeout=60
    )
    loaded: dict[str, bool] = json.loads(done.stdout)
    return loaded


def test_names_are_the_folders() -> None:
    """Every folder with a provider.py is a cloud, in a steady order."""
    assert "aws" in registry.names()
    assert list(registry.names()) == sorted(registry.names())


def test_listing_and_parsing_import_no_sdk() -> None:
    """A function that only reads names and notices never pays for an SDK."""
    code = (
        "import json, sys; from spotferry.providers import registry; registry.names();"
        "registry.parse_notice({'source': 'aws.ec2', 'detail-type': 'x'});"
        f"print(json.dumps({{n: n in sys.modules for n in '{_SDKS}'.split()}}))"
    )
    assert not any(run(code).values())


@pytest.mark.parametrize("name", registry.names())
def test_loading_one_cloud_imports_no_other_sdk(name: str) -> None:
    """Loading a cloud brings its own SDK, if it has one, and nothing of another cloud."""
    own = {"aws": {"boto3", "botocore"}, "gcp": {"google.auth"}, "azure": {"azure"}}.get(name, set())
    code = (
        f"import json, sys; from spotferry.providers import registry; registry.load({name!r});"
        f"print(json.dumps({{n: n in sys.modules for n in '{_SDKS}'.split()}}))"
    )
    assert {sdk for sdk, loaded in run(code).items() if loaded} == own


@pytest.mark.parametrize("name", registry.names())
def test_clouds_know_nothing_of_one_another(name: str) -> None:
    """No module in a cloud's folder names another cloud's: what they share is beside the folders."""
    others = "|".join(other for other in registry.names() if other != name)
    folder = Path(registry.__file__).parent / name
    known = {
        path.name for path in folder.glob("*.py") if re.search(rf"spotferry\.providers\.({others})\b", path.read_text())
    }
    assert known == set()


def test_an_unknown_cloud_is_named_with_the_known_ones() -> None:
    """A name without a folder is refused with the list of those that have one; no path can be smuggled in."""
    for name in ("ibm", "", "../aws", "aws.api"):
        with pytest.raises(Misconfigured, match=r"there are: .*aws"):
            registry.load(name)


def test_a_missing_sdk_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its SDK a cloud is Misconfigured, and the message names the module and the requirements file."""

    def missing(_name: str) -> None:
        raise ModuleNotFoundError(name="boto3")

    monkeypatch.setattr("spotferry.providers.registry.importlib.import_module", missing)
    with pytest.raises(Misconfigured, match=r"aws needs the module boto3.*providers/aws/requirements\.txt"):
        registry.load("aws")


def test_a_module_of_ours_that_is_missing_is_not_blamed_on_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hole in our own tree stays the error that it is."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("spotferry.providers.registry.importlib.import_module", missing)
    with pytest.raises(ModuleNotFoundError):
        registry.load("aws")


def test_an_event_of_no_cloud_is_none() -> None:
    """An event that no cloud knows is told apart from one that means nothing."""
    assert registry.parse_notice({"source": "aws.s3", "detail-type": "Object Created", "detail": {}}) is None


def test_a_malformed_event_of_a_known_kind_is_invalid() -> None:
    """A known kind with other content than promised names the field."""
    with pytest.raises(InvalidInput, match="detail"):
        registry.parse_notice({"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"})


def test_pricing_names_are_the_folders_with_prices() -> None:
    """Every folder with a pricing.py has prices, also one that launches nothing."""
    assert {"aws", "paperspace"} <= set(registry.pricing_names())
    assert list(registry.pricing_names()) == sorted(registry.pricing_names())


@pytest.mark.parametrize("name", registry.pricing_names())
def test_loading_one_clouds_prices_imports_no_other_sdk(name: str) -> None:
    """A refresh pays for the SDK of the cloud that it reads, and for no other's."""
    code = (
        f"import json, sys; from spotferry.providers import registry; registry.load_pricing({name!r});"
        f"print(json.dumps({{n: n in sys.modules for n in '{_SDKS}'.split()}}))"
    )
    own = {"aws": {"boto3", "botocore"}, "gcp": {"google.auth"}, "azure": {"azure"}}.get(name, set())
    assert {sdk for sdk, loaded in run(code).items() if loaded} <= own


@pytest.mark.parametrize("name", ["ibm", "", "../aws", "aws.pricing"])
def test_prices_of_an_unknown_cloud_are_refused(name: str) -> None:
    """A name without a folder is refused with the list of those that have one; no path can be smuggled in."""
    with pytest.raises(Misconfigured, match=r"there are those of: .*aws"):
        registry.load_pricing(name)


def test_prices_without_their_sdk_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the module and the requirements file."""

    def missing(_name: str) -> None:
        raise ModuleNotFoundError(name="boto3")

    monkeypatch.setattr("spotferry.providers.registry.importlib.import_module", missing)
    with pytest.raises(Misconfigured, match=r"aws needs the module boto3.*providers/aws/requirements\.txt"):
        registry.load_pricing("aws")


def test_a_cloud_that_speaks_is_heard_of_its_own_kinds_alone() -> None:
    """Who speaks for one cloud says nothing about machines of another."""
    warning = {
        "source": "aws.ec2",
        "detail-type": "EC2 Instance Rebalance Recommendation",
        "region": "us-east-1",
        "detail": {"instance-id": "i-0123456789abcdef0"},
    }
    assert registry.parse_notice(warning)
    assert registry.parse_notice(warning, cloud="aws")
    assert registry.parse_notice(warning, cloud="gcp") is None
