"""What a machine is born with."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from spotferry.domain.boot import USER_DATA_LIMIT_BYTES, agent_token, instance_id, user_data
from spotferry.types.errors import Misconfigured

GIVEN: Mapping[str, str] = {
    "broker_url": "https://abc123.execute-api.us-east-1.amazonaws.com/prod",
    "agent_sha256": "a" * 64,
    "instance_id": instance_id("deployment", "j-1", 1),
    "token": "b" * 64,
    "provider": "aws",
}


def made(changes: Mapping[str, str] = MappingProxyType({}), epoch: int = 1) -> str:
    """User data with some values changed."""
    given = {**GIVEN, **changes}
    return user_data(
        broker_url=given["broker_url"],
        agent_sha256=given["agent_sha256"],
        instance_id=given["instance_id"],
        epoch=epoch,
        token=given["token"],
        provider=given["provider"],
    )


def test_same_attempt_has_the_same_id() -> None:
    """The id is a function of deployment, job and attempt, and no two of those share one."""
    ids = {instance_id(d, j, e) for d in ("d", "d1") for j in ("j", "1j") for e in (1, 11)}
    assert len(ids) == 8
    assert instance_id("d", "j", 1) == instance_id("d", "j", 1)
    assert all(len(i) <= 64 and i.isascii() for i in ids)


def test_token_opens_one_attempt_of_one_deployment() -> None:
    """Another secret, instance or epoch gives another token; it is 64 hex digits."""
    tokens = {agent_token(s, i, e) for s in (b"s", b"t") for i in ("i-1", "i-11") for e in (1, 2)}
    assert len(tokens) == 8
    assert all(len(token) == 64 and int(token, 16) >= 0 for token in tokens)


def test_token_needs_a_secret() -> None:
    """A deployment without a secret hands out no token that anybody could make."""
    with pytest.raises(Misconfigured):
        agent_token(b"", "i-1", 1)


def test_user_data_is_deterministic_small_and_bash(tmp_path: Path) -> None:
    """The same values give the same bytes, within what every cloud takes, and bash can read them."""
    script = tmp_path / "user-data"
    script.write_text(made())
    assert made() == made({"broker_url": GIVEN["broker_url"] + "/"})
    assert len(made().encode()) < USER_DATA_LIMIT_BYTES / 2
    assert made().startswith("#!/bin/bash\n")
    subprocess.run(["/bin/bash", "-n", str(script)], check=True)


def test_token_is_only_in_the_settings() -> None:
    """The token goes to the agent's standard input, never into an argument list."""
    lines = [line for line in made().splitlines() if GIVEN["token"] in line]
    assert len(lines) == 1
    assert lines[0].startswith("{")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("broker_url", "ftp://broker.example"),
        ("broker_url", "https://broker.example/'; rm -rf /"),
        ("broker_url", "https://broker.example/a\nb"),
        ("broker_url", "https://user@broker.example"),
        ("agent_sha256", "A" * 64),
        ("instance_id", "i-1\n"),
        ("instance_id", ""),
        ("token", "b" * 63),
        ("provider", "aws; true"),
    ],
)
def test_values_of_another_form_are_refused(name: str, value: str) -> None:
    """Nothing that a shell could take for a command gets into the script; the message names the value's name."""
    with pytest.raises(Misconfigured, match=name) as refused:
        made({name: value})
    assert name != "token" or value not in str(refused.value)


def test_epochs_begin_at_one() -> None:
    """There is no attempt 0."""
    with pytest.raises(Misconfigured, match="epoch"):
        made(epoch=0)


def test_address_that_is_too_long_is_refused() -> None:
    """User data over the limit is never handed to a cloud."""
    with pytest.raises(Misconfigured, match="too long"):
        made({"broker_url": "https://broker.example/" + "a" * USER_DATA_LIMIT_BYTES})
