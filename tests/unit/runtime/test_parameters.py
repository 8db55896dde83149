"""Launch regions and secrets in the parameter store."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from spotferry.runtime.parameters import Parameters
from spotferry.types import Misconfigured
from tests.fakes import FakeClock

PREFIX = "/spotferry/test"


class FakeSsm:
    """Parameters by name; answers in pages of one."""

    def __init__(self, **values: str) -> None:
        self.values = {name.replace("__", "/"): value for name, value in values.items()}
        self.calls = 0
        self.asked: list[list[str]] = []

    def get_paginator(self, name: str) -> "FakeSsm":
        """Itself."""
        assert name == "get_parameters_by_path"
        return self

    def paginate(self, *, Path: str, Recursive: bool) -> Iterator[dict[str, Any]]:  # noqa: N803
        """One parameter a page."""
        assert Recursive
        self.calls += 1
        for name, value in self.values.items():
            if f"{PREFIX}/{name}".startswith(Path):
                yield {"Parameters": [{"Name": f"{PREFIX}/{name}", "Value": value}]}

    def get_parameters(self, *, Names: list[str], WithDecryption: bool = False) -> dict[str, Any]:  # noqa: N803
        """Those that are there; secrets are asked for decrypted."""
        assert all(WithDecryption == ("/secrets/" in name or "/clouds/" in name) for name in Names)
        self.asked.append(Names)
        found = {f"{PREFIX}/{name}": value for name, value in self.values.items()}
        return {"Parameters": [{"Name": name, "Value": found[name]} for name in Names if name in found]}


def region(name: str) -> str:
    """A region's parameter."""
    return json.dumps({"provider": "aws", "region": name, "network": {"subnet:a": "subnet-1"}})


def test_regions_are_read_over_all_pages_and_kept_for_a_minute() -> None:
    """One look a minute, however many placements there are."""
    ssm, clock = FakeSsm(regions__aws__a=region("a"), regions__aws__b=region("b"), secrets__X="x"), FakeClock()
    parameters = Parameters(PREFIX, lambda: ssm, clock)
    assert [r.region for r in parameters.regions()] == ["a", "b"]
    clock.move(seconds=59)
    parameters.regions()
    assert ssm.calls == 1
    ssm.values["regions/aws/c"] = region("c")
    clock.move(seconds=1)
    assert len(parameters.regions()) == 3


@pytest.mark.parametrize("text", ["", "{", '{"provider": "aws"}', '{"provider": "aws", "region": "a", "party": 1}'])
def test_a_region_that_is_malformed_is_named(text: str) -> None:
    """The operator reads which parameter it is."""
    parameters = Parameters(PREFIX, lambda: FakeSsm(regions__aws__a=text), FakeClock())
    with pytest.raises(Misconfigured, match=f"{PREFIX}/regions/aws/a"):
        parameters.regions()


def test_secrets_are_resolved_ten_a_call_and_never_kept() -> None:
    """Each hello reads anew: a secret that was changed is the new one."""
    ssm = FakeSsm(**{f"secrets__S{n}": str(n) for n in range(12)})
    parameters = Parameters(PREFIX, lambda: ssm, FakeClock())
    assert parameters.resolve(f"S{n}" for n in range(12)) == {f"S{n}": str(n) for n in range(12)}
    assert [len(names) for names in ssm.asked] == [10, 2]
    ssm.values["secrets/S1"] = "new"
    assert parameters.resolve(["S1"]) == {"S1": "new"}


def test_a_secret_that_is_missing_is_named_without_any_value() -> None:
    """The message says where to put it, and shows nothing of the others."""
    parameters = Parameters(PREFIX, lambda: FakeSsm(secrets__A="hush"), FakeClock())
    with pytest.raises(Misconfigured, match=f"no secret B: put it at {PREFIX}/secrets/<name>") as missing:
        parameters.resolve(["A", "B"])
    assert "hush" not in str(missing.value)


def test_the_deployments_own_lines_are_read_and_kept_for_a_minute() -> None:
    """By the name of their point; without the parameter there are none."""
    ssm, clock = FakeSsm(commands='{"post_setup": ["nvidia-smi", "df"], "pre_restore": ["mount /data"]}'), FakeClock()
    parameters = Parameters(PREFIX, lambda: ssm, clock)
    assert parameters.commands() == {"post_setup": ["nvidia-smi", "df"], "pre_restore": ["mount /data"]}
    ssm.values.clear()
    assert parameters.commands()
    clock.move(minutes=1)
    assert parameters.commands() == {}
    assert ssm.asked == [["/spotferry/test/commands"]] * 2


@pytest.mark.parametrize("text", ["", "[]", '{"setup": ["x"]}', '{"post_setup": "x"}', '{"post_setup": [""]}', "{"])
def test_lines_that_are_none_are_refused_by_name(text: str) -> None:
    """The operator is told which parameter it is and what it should be."""
    ssm = FakeSsm(commands=text)
    with pytest.raises(Misconfigured, match="/spotferry/test/commands is not a JSON object of lists of lines"):
        Parameters(PREFIX, lambda: ssm, FakeClock()).commands()


def test_a_clouds_key_is_read_when_it_is_asked_for() -> None:
    """One that was changed is the new one; a blank at its end is no part of it."""
    ssm = FakeSsm(clouds__paperspace__key="k1\n")
    parameters = Parameters(PREFIX, lambda: ssm, FakeClock())
    assert parameters.cloud_secret("paperspace/key") == "k1"
    ssm.values["clouds/paperspace/key"] = "k2"
    assert parameters.cloud_secret("paperspace/key") == "k2"


@pytest.mark.parametrize("values", [{}, {"clouds__paperspace__key": " "}])
def test_a_clouds_key_that_is_missing_is_named(values: dict[str, str]) -> None:
    """The operator reads where to put it."""
    parameters = Parameters(PREFIX, lambda: FakeSsm(**values), FakeClock())
    with pytest.raises(Misconfigured, match=f"{PREFIX}/clouds/paperspace/key"):
        parameters.cloud_secret("paperspace/key")
