"""Machines of the local cloud as real processes: they run their user data, see notices, and are gone when they end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from local.machine_home import clear_land
from local.metal import all_machine_processes, processes_of
from tests.contract.local_cloud import Bus, LocalCloud, bus_at_loopback, eventually, launch, local_cloud

# Speed 120: the notice of two minutes takes a second.
OPTIONS = ("--boot-seconds", "0.1", "--speed-up", "120")
METADATA = r"""
imds="$AWS_EC2_METADATA_SERVICE_ENDPOINT/latest"
read_imds() {
  python3 - "$imds" "$1" <<'PYTHON'
import sys, urllib.error, urllib.request
base, path = sys.argv[1:]
def ask(address, method, headers):
    request = urllib.request.Request(address, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)
bare = ask(f"{base}/{path}", "GET", {})
token = ask(f"{base}/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
print(bare, ask(f"{base}/{path}", "GET", {"X-aws-ec2-metadata-token": token}))
PYTHON
}
"""


@pytest.fixture(scope="module")
def bus() -> Bus:
    """A bus that refuses the first two calls."""
    return Bus(refusals=2)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory, bus: Bus) -> Iterator[LocalCloud]:
    """A cloud with real machines, in a state folder that other users cannot enter."""
    with (
        bus_at_loopback(bus) as endpoint,
        local_cloud(tmp_path_factory.mktemp("cloud"), *OPTIONS, "--bus-endpoint", endpoint) as running,
    ):
        yield running
        running.end(signal.SIGINT)
        made = [machine["allocated_id"] for machine in running.last_seen]
        assert made
        assert [pid for allocated_id in made for pid in processes_of(allocated_id)] == []
        assert not (running.state_dir / "land").is_symlink()


def console(cloud: LocalCloud, allocated_id: str) -> str:
    """All the machine has printed so far."""
    path = cloud.state_dir / "consoles" / f"{allocated_id}.log"
    return path.read_text() if path.exists() else ""


def printed(cloud: LocalCloud, allocated_id: str, text: str) -> str:
    """The console once the text is in it."""
    eventually(lambda: text in console(cloud, allocated_id), what=f"{text!r} on the console of {allocated_id}")
    return console(cloud, allocated_id)


def ended(cloud: LocalCloud, allocated_id: str) -> dict[str, Any]:
    """The machine once it is terminated, which must mean that nothing of it runs."""
    eventually(lambda: cloud.machine(allocated_id)["state"] == "terminated", what=f"the end of {allocated_id}")
    assert processes_of(allocated_id) == []
    return cloud.machine(allocated_id)


def test_a_machine_runs_its_user_data_as_somebody_in_a_home_of_its_own(cloud: LocalCloud) -> None:
    """Unprivileged, with the promised environment and nothing else, and python3, bash and sudo on its path."""
    script = (
        "#!/bin/bash\nid -u; pwd; touch mine && env | sort; sudo -n -u root -- python3 -c 'print(6 * 7)'; echo over"
    )
    made = launch(cloud.ec2("eu-west-1"), UserData=script)["InstanceId"]
    lines = printed(cloud, made, "\nover\n").splitlines()
    assert int(lines[0]) > 0, "a machine never runs as root"
    names = {line.split("=")[0] for line in lines if "=" in line}
    promised = {"HOME", "PATH", "USER", "LANG", "TMPDIR", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "SPOTFERRY_MACHINE"}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD", "LC_CTYPE"} == promised
    assert f"HOME={lines[1]}" in lines
    assert f"SPOTFERRY_MACHINE={made}" in lines
    assert "42" in lines
    eventually(lambda: cloud.machine(made)["state"] == "running")
    assert processes_of(made), "a machine stays up when its user data is over"


def test_machines_cannot_read_each_other(cloud: LocalCloud) -> None:
    """A machine's files are closed to the other ones when each has a user of its own."""
    if os.geteuid() != 0:
        pytest.skip("machines share the user when the cloud does not run as root")
    ec2 = cloud.ec2("eu-west-1")
    first = launch(ec2, UserData="#!/bin/bash\necho secret > note; echo home=$HOME.")["InstanceId"]
    home = printed(cloud, first, "home=").split("home=")[1].split(".\n")[0]
    second = launch(ec2, UserData=f"#!/bin/bash\ncat {home}/note || echo closed")["InstanceId"]
    assert "secret" not in printed(cloud, second, "closed")


def test_an_interruption_is_seen_in_the_metadata_and_on_the_bus_and_then_comes(cloud: LocalCloud, bus: Bus) -> None:
    """404 before, then action and time in IMDS, EC2's events on the region's bus in order, the kill at its time."""
    script = f"#!/bin/bash\n{METADATA}\nwhile sleep 0.05; do read_imds meta-data/spot/instance-action; done"
    made = launch(cloud.ec2("ap-south-1"), UserData=script)["InstanceId"]
    printed(cloud, made, "401 404\n")
    notice = cloud.lever("interrupt", {"allocated_id": made})
    due = datetime.fromisoformat(notice["due_at"])
    seen = printed(cloud, made, "401 {")
    assert f'"action": "terminate", "time": "{due:%Y-%m-%dT%H:%M:%SZ}"' in seen
    machine = ended(cloud, made)
    late = (datetime.fromisoformat(machine["terminated_at"]) - due).total_seconds()
    assert 0 <= late < 2
    assert machine["reason"] == "Server.SpotInstanceTermination"
    arn = f"arn:aws:ec2:ap-south-1:000000000000:instance/{made}"
    eventually(lambda: len(_told(bus, arn)) == 5, what="five events of the machine")
    assert _told(bus, arn) == [
        ("ap-south-1", "EC2 Instance State-change Notification", f'{{"instance-id": "{made}", "state": "pending"}}'),
        ("ap-south-1", "EC2 Instance State-change Notification", f'{{"instance-id": "{made}", "state": "running"}}'),
        (
            "ap-south-1",
            "EC2 Spot Instance Interruption Warning",
            f'{{"instance-id": "{made}", "instance-action": "terminate"}}',
        ),
        (
            "ap-south-1",
            "EC2 Instance State-change Notification",
            f'{{"instance-id": "{made}", "state": "shutting-down"}}',
        ),
        ("ap-south-1", "EC2 Instance State-change Notification", f'{{"instance-id": "{made}", "state": "terminated"}}'),
    ]


def _told(bus: Bus, arn: str) -> list[tuple[str, str, str]]:
    return [
        (region, entry["DetailType"], entry["Detail"])
        for region, entry in list(bus.entries)
        if entry["Resources"] == [arn] and entry["Source"] == "aws.ec2"
    ]


def test_the_metadata_service_knows_the_machine(cloud: LocalCloud, bus: Bus) -> None:
    """Identity, zone, life cycle, user data, a recommendation to leave; no token, no answer."""
    paths = [
        "meta-data/instance-id",
        "meta-data/instance-life-cycle",
        "meta-data/placement/availability-zone",
        "meta-data/events/maintenance/scheduled",
        "meta-data/events/recommendations/rebalance",
        "meta-data/nonsense",
    ]
    reads = "\n".join(f"read_imds {path}" for path in paths)
    wait = "until read_imds meta-data/events/recommendations/rebalance | grep noticeTime; do sleep 0.05; done"
    script = f"#!/bin/bash\n{METADATA}\n{reads}\nread_imds user-data | tail -n 1\necho ready\n{wait}\necho done\n# end"
    made = launch(cloud.ec2("eu-west-2"), UserData=script, Placement={"AvailabilityZone": "eu-west-2a"})["InstanceId"]
    lines = printed(cloud, made, "ready\n").splitlines()
    assert lines[:6] == [f"401 {made}", "401 spot", "401 eu-west-2a", "401 []", "401 404", "401 404"]
    assert lines[6] == "# end"
    cloud.lever("rebalance", {"allocated_id": made})
    printed(cloud, made, "done\n")
    arn = f"arn:aws:ec2:eu-west-2:000000000000:instance/{made}"
    eventually(lambda: any(kind == "EC2 Instance Rebalance Recommendation" for _, kind, _ in _told(bus, arn)))


def test_a_machine_that_shuts_itself_down_is_terminated(cloud: LocalCloud) -> None:
    """`sudo shutdown -h now` gives its processes a moment to end, and the cloud says who did it."""
    script = "#!/bin/bash\ntrap 'echo told; exit 0' TERM\nsudo shutdown -h now\nwhile :; do sleep 0.02; done"
    made = launch(cloud.ec2("eu-west-1"), UserData=script)["InstanceId"]
    assert ended(cloud, made)["reason"] == "Client.InstanceInitiatedShutdown"
    assert "told\n[init] power off" not in console(cloud, made)
    assert "told\n" in console(cloud, made)


def test_an_on_demand_machine_that_shuts_itself_down_stops_when_it_was_told_so(cloud: LocalCloud) -> None:
    """Without InstanceInitiatedShutdownBehavior=terminate it stays, stopped and without processes."""
    made = launch(
        cloud.ec2("eu-west-1"),
        UserData="#!/bin/bash\npoweroff",
        InstanceMarketOptions=None,
        InstanceInitiatedShutdownBehavior=None,
    )["InstanceId"]
    eventually(lambda: cloud.machine(made)["state"] == "stopped")
    assert processes_of(made) == []


def test_a_shutdown_can_be_put_off_and_taken_back(cloud: LocalCloud) -> None:
    """A shutdown in minutes does not come at once, and `-c` cancels it."""
    script = "#!/bin/bash\nshutdown -h +1 && shutdown -c && echo cancelled\nshutdown -r now || echo refused"
    made = launch(cloud.ec2("eu-west-1"), UserData=script)["InstanceId"]
    printed(cloud, made, "refused\n")
    assert "cancelled\n" in console(cloud, made)
    time.sleep(0.3)
    assert cloud.machine(made)["state"] == "running"


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_nothing_of_a_machine_outlives_it(cloud: LocalCloud, how: str) -> None:
    """Daemons in sessions of their own, without the marker, deaf to SIGTERM, or forking for ever: all are gone."""
    script = (
        "#!/bin/bash\n"
        "(env -i setsid bash -c 'trap \"\" TERM HUP; while :; do sleep 0.01; done' &)\n"
        "(setsid nohup sleep 10000 &)\n"
        "breed() { while :; do (exec sleep 0.3) & sleep 0.005; done; }\nbreed &\necho busy\nwait"
    )
    ec2 = cloud.ec2("eu-west-1")
    made = launch(ec2, UserData=script)["InstanceId"]
    printed(cloud, made, "busy\n")
    eventually(lambda: len(processes_of(made)) > 10)
    before = processes_of(made)
    asked = time.monotonic()
    if how == "terminate":
        ec2.terminate_instances(InstanceIds=[made])
    else:
        cloud.lever("kill", {"allocated_id": made})
    ended(cloud, made)
    assert time.monotonic() - asked < 3
    assert not set(before) & set(all_machine_processes())


def test_user_data_that_is_no_script_leaves_a_machine_that_does_nothing(cloud: LocalCloud) -> None:
    """The console says so, and the machine stays up."""
    made = launch(cloud.ec2("eu-west-1"), UserData="packages: [none]")["InstanceId"]
    printed(cloud, made, "nothing to run")
    assert cloud.machine(made)["state"] == "running"


def test_machines_are_gone_when_the_cloud_is_killed(tmp_path: Path) -> None:
    """SIGKILL on the server ends every machine within a second or so, deaf ones and runaways included."""
    script = "#!/bin/bash\n(env -i setsid bash -c 'trap \"\" TERM; while :; do sleep 0.05; done' &)\nsleep 1000"
    with local_cloud(tmp_path, *OPTIONS) as cloud:
        made = [launch(cloud.ec2("eu-west-1"), UserData=script)["InstanceId"] for _ in range(2)]
        eventually(lambda: all(len(processes_of(machine)) >= 4 for machine in made))
        cloud.process.kill()
        eventually(lambda: not any(processes_of(machine) for machine in made), 3, "the end of all machines")
    clear_land(tmp_path)
