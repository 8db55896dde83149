"""Describe and terminate: what EC2 tells about machines it sold, and ends on request."""

from __future__ import annotations

import re
from collections.abc import Mapping

from local.aws_facts import PublicImage, public_image
from local.ec2_call import PROVIDER, Call, Cloud
from local.ec2_refusals import refusal
from local.ec2_views import (
    INSTANCE_FILTERS,
    OWNER_ID,
    instance_view,
    matching,
    page,
    reservation_id,
    state_view,
)
from local.ec2_wire import Ec2Error, Params, Value
from local.market_model import Machine, MachineState, MarketError

_INSTANCE_ID = re.compile(r"^i-[0-9a-f]{8}([0-9a-f]{9})?$")
_MOST_TERMINATED = 1000
_MOST_STATUSES = 100


def describe_instances(cloud: Cloud, call: Call) -> Mapping[str, Value]:
    """DescribeInstances: by ids, all or none, or the whole region in pages; filters apply to both."""
    machines = matching(_asked_for(cloud, call), call.params, INSTANCE_FILTERS)
    shown, token = page(machines, call.params, lambda machine: machine.serial, (5, 1000))
    reservations: list[Value] = [
        {
            "ReservationId": reservation_id(machine),
            "OwnerId": OWNER_ID,
            "Groups": [],
            "Instances": [instance_view(machine)],
        }
        for machine in shown
    ]
    return {"Reservations": reservations, "NextToken": token}


def describe_instance_status(cloud: Cloud, call: Call) -> Mapping[str, Value]:
    """DescribeInstanceStatus: running machines only, unless all are asked for."""
    ids = call.params.texts("InstanceId")
    if len(ids) > _MOST_STATUSES:
        raise Ec2Error("InvalidParameterValue", f"At most {_MOST_STATUSES} instance ids may be given, not {len(ids)}.")
    machines = matching(_asked_for(cloud, call), call.params, INSTANCE_FILTERS)
    if not call.params.flag("IncludeAllInstances"):
        machines = [machine for machine in machines if machine.state is MachineState.RUNNING]
    shown, token = page(machines, call.params, lambda machine: machine.serial, (5, 1000))
    return {"InstanceStatuses": [_status_view(machine) for machine in shown], "NextToken": token}


def terminate_instances(cloud: Cloud, call: Call) -> Mapping[str, Value]:
    """TerminateInstances: every machine or, when one id is wrong, none; ending an ended one succeeds."""
    ids = _ids(call.params)
    if not ids:
        raise Ec2Error("MissingParameter", "The request must contain the parameter InstanceId")
    if len(ids) > _MOST_TERMINATED:
        raise Ec2Error("InvalidParameterValue", f"At most {_MOST_TERMINATED} ids may be given, not {len(ids)}.")
    try:
        ended = cloud.market.terminate(PROVIDER, call.region, ids)
    except MarketError as error:
        raise refusal(error) from error
    views: list[Value] = [
        {
            "InstanceId": machine.allocated_id,
            "CurrentState": state_view(machine.state),
            "PreviousState": state_view(before),
        }
        for machine, before in ended
    ]
    return {"TerminatingInstances": views}


def describe_public_images(call: Call) -> Mapping[str, Value] | None:
    """DescribeImages for ids of public parameters; None when the call is about other images."""
    ids = call.params.texts("ImageId")
    found = {image_id: public_image(call.region, image_id) for image_id in ids}
    if not any(found.values()):
        return None
    missing = [image_id for image_id, image in found.items() if image is None]
    if missing:
        raise Ec2Error("InvalidAMIID.NotFound", f"The image ids '[{', '.join(missing)}]' do not exist")
    return {"Images": [_image_view(image) for image in found.values() if image is not None]}


def _asked_for(cloud: Cloud, call: Call) -> list[Machine]:
    ids = _ids(call.params)
    if not ids:
        return cloud.market.visible(PROVIDER, call.region)
    if call.params.text("MaxResults") or call.params.text("NextToken"):
        raise Ec2Error(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    try:
        return cloud.market.find(PROVIDER, call.region, ids)
    except MarketError as error:
        raise refusal(error) from error


def _ids(params: Params) -> list[str]:
    ids = params.texts("InstanceId")
    for instance_id in ids:
        if not _INSTANCE_ID.match(instance_id):
            raise Ec2Error("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')
    return ids


def _status_view(machine: Machine) -> Value:
    health = "ok" if machine.state is MachineState.RUNNING else "not-applicable"
    return {
        "InstanceId": machine.allocated_id,
        "AvailabilityZone": machine.pool.zone,
        "InstanceState": state_view(machine.state),
        "InstanceStatus": {"Status": health},
        "SystemStatus": {"Status": health},
    }


def _image_view(image: PublicImage) -> Value:
    ebs: Value = {
        "SnapshotId": image.snapshot_id,
        "VolumeSize": image.snapshot_gib,
        "VolumeType": "gp3",
        "DeleteOnTermination": True,
        "Encrypted": False,
    }
    return {
        "ImageId": image.image_id,
        "ImageLocation": f"amazon/{image.image_id}",
        "Name": f"public-{'gpu-' if image.gpu else ''}{image.arch}-{image.image_id}",
        "OwnerId": OWNER_ID,
        "ImageOwnerAlias": "amazon",
        "State": "available",
        "Public": True,
        "Architecture": image.arch,
        "ImageType": "machine",
        "CreationDate": "2026-01-01T00:00:00.000Z",
        "PlatformDetails": "Linux/UNIX",
        "Hypervisor": "xen",
        "VirtualizationType": "hvm",
        "EnaSupport": True,
        "RootDeviceType": "ebs",
        "RootDeviceName": image.root_device,
        "BlockDeviceMappings": [{"DeviceName": image.root_device, "Ebs": ebs}],
    }
