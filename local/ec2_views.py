"""How a machine of the market looks through EC2's API, and the filters that are written against that look."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from typing import TypeVar

from local.ec2_moto import ACCOUNT_ID
from local.ec2_wire import Ec2Error, Params, Value
from local.market_model import USER_SHUTDOWN, Machine, MachineState, Purchase

OWNER_ID = ACCOUNT_ID
STATE_CODES = {
    MachineState.PENDING: 0,
    MachineState.RUNNING: 16,
    MachineState.SHUTTING_DOWN: 32,
    MachineState.TERMINATED: 48,
    MachineState.STOPPING: 64,
    MachineState.STOPPED: 80,
}
# The first four addresses of a subnet belong to the cloud, the last one is its broadcast address.
_RESERVED_ADDRESSES = 5
Readers = Mapping[str, Callable[[Machine], str | None]]
Item = TypeVar("Item")


def spot_request_id(machine: Machine) -> str | None:
    """The id of the spot request behind the machine; None on demand."""
    if machine.pool.purchase is not Purchase.SPOT:
        return None
    return f"sir-{_digest('spot', machine.allocated_id)[:8]}"


def reservation_id(machine: Machine) -> str:
    """The id of the reservation the machine stands in, alone."""
    return f"r-0{_digest('reservation', machine.allocated_id)[:16]}"


def state_view(state: MachineState) -> dict[str, Value]:
    """A state as EC2 writes it."""
    return {"Code": STATE_CODES[state], "Name": str(state)}


def private_ip(machine: Machine) -> str:
    """The machine's address in its subnet; addresses come round again, as they do in the cloud."""
    network = ipaddress.ip_network(machine.request.details["cidr"])
    usable = network.num_addresses - _RESERVED_ADDRESSES
    return str(network.network_address + _RESERVED_ADDRESSES - 1 + machine.serial % usable)


def tag_views(machine: Machine) -> list[Value]:
    """The machine's tags."""
    return [{"Key": key, "Value": value} for key, value in sorted(machine.request.tags.items())]


def instance_view(machine: Machine) -> dict[str, Value]:
    """The machine as DescribeInstances shows it."""
    details = machine.request.details
    view: dict[str, Value] = {
        "InstanceId": machine.allocated_id,
        "ImageId": details["image_id"],
        "State": state_view(machine.state),
        "StateReason": _reason_view(machine),
        "StateTransitionReason": _transition(machine),
        "AmiLaunchIndex": 0,
        "InstanceType": machine.pool.instance_type,
        "LaunchTime": machine.launched_at,
        "Placement": {"AvailabilityZone": machine.pool.zone, "GroupName": "", "Tenancy": "default"},
        "Monitoring": {"State": "disabled"},
        "Architecture": machine.request.shape.arch,
        "RootDeviceType": "ebs",
        "RootDeviceName": details["root_device"],
        "VirtualizationType": "hvm",
        "Hypervisor": "xen",
        "ClientToken": machine.request.client_token or "",
        "EbsOptimized": False,
        "EnaSupport": True,
        "Tags": tag_views(machine),
        "InstanceLifecycle": "spot" if machine.pool.purchase is Purchase.SPOT else None,
        "SpotInstanceRequestId": spot_request_id(machine),
        "MetadataOptions": {"State": "applied", "HttpTokens": details["http_tokens"], "HttpEndpoint": "enabled"},
    }
    return view if machine.state is MachineState.TERMINATED else {**view, **_attachments(machine)}


def _attachments(machine: Machine) -> dict[str, Value]:
    details = machine.request.details
    address = private_ip(machine)
    ebs: dict[str, Value] = {
        "AttachTime": machine.launched_at,
        "DeleteOnTermination": True,
        "Status": "attached",
        "VolumeId": f"vol-0{_digest('volume', machine.allocated_id)[:16]}",
    }
    profile = details["profile"]
    arn = profile if profile.startswith("arn:") else f"arn:aws:iam::{ACCOUNT_ID}:instance-profile/{profile}"
    return {
        "PrivateIpAddress": address,
        "PrivateDnsName": f"ip-{address.replace('.', '-')}.ec2.internal",
        "SubnetId": details["subnet_id"],
        "VpcId": details["vpc_id"],
        "SecurityGroups": [{"GroupId": group} for group in details["security_groups"].split(",") if group],
        "BlockDeviceMappings": [{"DeviceName": details["root_device"], "Ebs": ebs}],
        "IamInstanceProfile": {"Arn": arn, "Id": f"AIPA{_digest(arn)[:16].upper()}"} if profile else None,
    }


INSTANCE_FILTERS: Readers = {
    "instance-id": lambda m: m.allocated_id,
    "instance-state-name": lambda m: m.state,
    "instance-state-code": lambda m: str(STATE_CODES[m.state]),
    "client-token": lambda m: m.request.client_token,
    "instance-lifecycle": lambda m: "spot" if m.pool.purchase is Purchase.SPOT else None,
    "instance-type": lambda m: m.pool.instance_type,
    "availability-zone": lambda m: m.pool.zone,
    "spot-instance-request-id": spot_request_id,
    "image-id": lambda m: m.request.details["image_id"],
    "subnet-id": lambda m: m.request.details["subnet_id"],
    "vpc-id": lambda m: m.request.details["vpc_id"],
    "state-reason-code": lambda m: m.reason.code if m.reason else None,
}


def matching(machines: list[Machine], params: Params, readers: Readers) -> list[Machine]:
    """The machines every filter of the call lets through.

    Raises:
        Ec2Error: InvalidParameterValue for a filter the operation does not have.
    """
    for given in params.structs("Filter"):
        name, patterns = given.required("Name"), given.texts("Value")
        machines = [machine for machine in machines if _passes(machine, name, patterns, readers)]
    return machines


def page(
    items: Iterable[Item], params: Params, key: Callable[[Item], int], limits: tuple[int, int]
) -> tuple[list[Item], str | None]:
    """The part of the items a paged call asks for, and the token for the next part.

    The token names the last item shown, so pages neither skip nor repeat when items come or go in between.

    Raises:
        Ec2Error: MaxResults is out of the limits, or the token is not one of ours.
    """
    size = params.integer("MaxResults")
    if size is not None and not limits[0] <= size <= limits[1]:
        raise Ec2Error(
            "InvalidParameterValue",
            f"Value ( {size} ) for parameter maxResults is invalid. Expecting a value from {limits[0]} to {limits[1]}.",
        )
    after, limit = page_start(params), size or limits[1]
    found = list(islice((item for item in items if key(item) > after), limit + 1))
    shown = found[:limit]
    token = base64.b64encode(f"after:{key(shown[-1])}".encode()).decode() if len(found) > limit else None
    return shown, token


def page_start(params: Params) -> int:
    """The key a page starts behind; below every key for the first page.

    Raises:
        Ec2Error: InvalidNextToken.
    """
    token = params.text("NextToken")
    if not token:
        return -1
    try:
        return int(base64.b64decode(token, validate=True).decode().removeprefix("after:"))
    except (binascii.Error, ValueError):
        raise Ec2Error("InvalidNextToken", f"The token {token} is invalid.") from None


def _passes(machine: Machine, name: str, patterns: list[str], readers: Readers) -> bool:
    tags = machine.request.tags
    if name == "tag-key":
        return any(fnmatchcase(key, pattern) for key in tags for pattern in patterns)
    if name.startswith("tag:"):
        value = tags.get(name.removeprefix("tag:"))
    elif name in readers:
        value = readers[name](machine)
    else:
        raise Ec2Error("InvalidParameterValue", f"The filter '{name}' is invalid")
    return value is not None and any(fnmatchcase(value, pattern) for pattern in patterns)


def _reason_view(machine: Machine) -> Value:
    if machine.reason is not None:
        return {"Code": machine.reason.code, "Message": machine.reason.message}
    if machine.state is MachineState.PENDING:
        return {"Code": "pending", "Message": "pending"}
    return None


def _transition(machine: Machine) -> str:
    if machine.reason == USER_SHUTDOWN and machine.billing_ended_at is not None:
        return f"User initiated ({machine.billing_ended_at:%Y-%m-%d %H:%M:%S} GMT)"
    return machine.reason.code if machine.reason else ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
