"""What a machine is born with."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
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


def booted(tmp_path: Path, *, user: int = 0, tools: Sequence[str] = ("apt-get", "systemctl"), base: str = "") -> str:
    """Boot on a machine that has these tools, and fails at all that systemctl is asked; the commands that ran.

    The script's own paths are moved below `tmp_path`, and its PATH holds nothing of this machine that ends it.
    """
    tool_dir = tmp_path / "bin"
    tool_dir.mkdir()
    for name in ("mkdir", "cat"):
        (tool_dir / name).symlink_to(str(shutil.which(name)))
    scripts = {"id": f"echo {user}", "systemctl": "exit 1", "python3": "cat >/dev/null </dev/stdin"}
    for name in ("id", "python3", "shutdown", *tools):
        log = f'echo {name} "${{1:-}}" >>{tmp_path}/calls' if name != "id" else ":"
        (tool_dir / name).write_text(f"#!/bin/bash\n{log}\n{scripts.get(name, 'exit 0')}\n")
        (tool_dir / name).chmod(0o755)
    script = made().replace("/etc/apt/", f"{tmp_path}/apt/").replace("/var/lib/spotferry", f"{tmp_path}/lib")
    script = script.replace(":/usr/local/sbin:/usr/sbin:/sbin", "")
    environment = {"PATH": str(tool_dir), "HOME": str(tmp_path), **({"SPOTFERRY_BASE": base} if base else {})}
    done = subprocess.run(["/bin/bash", "-c", script], env=environment, input=b"", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return (tmp_path / "calls").read_text()


def test_packages_do_not_fail_for_the_images_own_upgrades(tmp_path: Path) -> None:
    """Before the agent starts, apt is told to wait for its lock and the upgrades of the first boot are called off."""
    calls = booted(tmp_path)
    settings = (tmp_path / "apt" / "apt.conf.d" / "90spotferry").read_text()
    assert settings == 'DPkg::Lock::Timeout "300";\nAPT::Periodic::Enable "0";\n'
    assert calls.split("\n")[0].startswith("systemctl")
    assert calls.count("python3") == 2
    if apt_config := shutil.which("apt-config"):
        asked = [apt_config, "-c", str(tmp_path / "apt" / "apt.conf.d" / "90spotferry"), "dump", "DPkg::Lock::Timeout"]
        assert subprocess.run(asked, capture_output=True, check=True).stdout == b'DPkg::Lock::Timeout "300";\n'


@pytest.mark.parametrize(
    ("user", "tools", "base"),
    [
        (0, ("apt-get",), False),
        (0, (), False),
        (0, ("systemctl",), False),
        (1000, ("apt-get", "systemctl"), False),
        (0, ("apt-get", "systemctl"), True),
    ],
    ids=["no systemctl", "neither", "no apt", "not root", "a base of its own"],
)
def test_boot_goes_on_where_there_is_nothing_to_call_off(
    tmp_path: Path,
    user: int,
    tools: Sequence[str],
    base: bool,  # noqa: FBT001 (a case)
) -> None:
    """Another system, or a machine that is not ours to change, starts its agent just the same."""
    calls = booted(tmp_path, user=user, tools=tools, base=str(tmp_path / "base") if base else "")
    assert calls.count("python3") == 2
    assert "systemctl" not in calls
    assert (tmp_path / "apt").exists() is (tools == ("apt-get",))


def test_token_is_only_in_the_settings() -> None:
    """The token goes to the agent's standard input, never into an argument list."""
    lines = [line for line in made().splitlines() if GIVEN["token"] in line]
    assert len(lines) == 1
    assert lines[0].startswith("{")


@pytest.mark.parametrize("number", ["KILL", "TERM", "SEGV", "ABRT"])
def test_token_is_not_printed_when_a_signal_ends_the_agent(tmp_path: Path, number: str) -> None:
    """What bash says of an agent that died goes to the machine's console, which the cloud shows to many."""
    tool_dir = tmp_path / "bin"
    tool_dir.mkdir()
    (tool_dir / "python3").write_text(f'#!/bin/bash\n[ "$1" = -c ] || kill -{number} $$\n')
    (tool_dir / "shutdown").write_text(f"#!/bin/bash\ntouch {tmp_path}/down\n")
    for tool in ("python3", "shutdown"):
        (tool_dir / tool).chmod(0o755)
    environment = {"PATH": f"{tool_dir}:/usr/bin:/bin", "SPOTFERRY_BASE": str(tmp_path / "base")}
    script = tmp_path / "user-data"
    script.write_text(made())
    done = subprocess.run(["/bin/bash", str(script)], env=environment, capture_output=True, text=True, check=False)
    assert (tmp_path / "down").exists()
    assert GIVEN["token"] not in done.stdout + done.stderr


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
