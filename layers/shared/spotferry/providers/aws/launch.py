"""The launch call: what `prepare` fixes of it, and how it is put together; pure."""

import re
from collections.abc import Mapping
from decimal import ROUND_FLOOR, Decimal

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.aws.images import Image
from spotferry.types.errors import LaunchRefused, TryNextZone
from spotferry.types.instance import Attempt, LaunchRequest

USER_DATA_LIMIT_BYTES = 16 * 1024
"""EC2's limit, before base64."""
_TOKEN = re.compile(r"[!-~]{1,64}")
_TAG_VALUE_LIMIT = 256
_PRICE_STEP = Decimal("0.000001")
"""EC2 writes prices with six decimals."""


def network(settings: RegionSettings, offered_zone: str, zone_name: str) -> dict[str, str]:
    """Where the machine goes, from the region's settings.

    Args:
        settings: `subnet:<zone>` (name or id) a zone, `security_group_id`, `instance_profile_arn`; all may be missing,
            then the account's default network serves.
        offered_zone: the zone as the price list has it; "" leaves the choice to EC2 where no subnet is set.
        zone_name: the zone by the account's name.

    Raises:
        TryNextZone: the region has subnets, but none in this zone.
    """
    subnets = {
        k.removeprefix("subnet:"): v for k, v in sorted(settings.network.items()) if k.startswith("subnet:") and v
    }
    wanted = {"zone": zone_name, "subnet_id": _subnet(subnets, offered_zone, zone_name, settings.region)}
    for key in ("security_group_id", "instance_profile_arn"):
        wanted[key] = settings.network.get(key, "")
    return {key: value for key, value in wanted.items() if value}


def _subnet(subnets: Mapping[str, str], offered_zone: str, zone_name: str, region: str) -> str:
    if not subnets:
        return ""
    if not offered_zone:
        return next(iter(subnets.values()))
    subnet = subnets.get(zone_name) or subnets.get(offered_zone)
    if subnet is None:
        message = f"the settings of {region} have subnets, but none in {zone_name}: add `subnet:{zone_name}`"
        raise TryNextZone("NoSubnetInZone", message, region, scope="zone")
    return subnet


def fixed_request(
    image: Image, disk_gb: int, where: Mapping[str, str], tags: Mapping[str, str], *, own_image: bool
) -> LaunchRequest:
    """The request as it is stored before EC2 is asked."""
    return LaunchRequest(
        image_id=image.image_id,
        disk_gb=disk_gb,
        network={**where, "root_device": image.root_device},
        tags={key: value[:_TAG_VALUE_LIMIT] for key, value in tags.items()},
        agent_sha256="",
        broker_url="",
        own_image=own_image,
    )


def run_instances(attempt: Attempt, launch: LaunchRequest, user_data: str) -> dict[str, object]:
    """The parameters of RunInstances: the same for the same attempt, so that its token may be repeated.

    Raises:
        LaunchRefused: EC2 would never take the user data or the token.
    """
    _check(attempt, user_data)
    where = launch.network
    params: dict[str, object] = {
        "ClientToken": attempt.cedana_id,
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": launch.image_id,
        "InstanceType": attempt.instance_type,
        "UserData": user_data,
        "InstanceInitiatedShutdownBehavior": "terminate",
        # One hop: containers of the task that have a network of their own do not reach the machine's metadata.
        "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "BlockDeviceMappings": [_root_disk(where.get("root_device", "/dev/sda1"), launch.disk_gb)],
    }
    if attempt.market == "spot":
        params["InstanceMarketOptions"] = _spot(launch)
    if launch.tags:
        params["TagSpecifications"] = _tag_specifications(launch.tags, spot=attempt.market == "spot")
    return params | _placement(where)


def _check(attempt: Attempt, user_data: str) -> None:
    size = len(user_data.encode())
    if size > USER_DATA_LIMIT_BYTES:
        message = f"the user data has {size} bytes, EC2 takes {USER_DATA_LIMIT_BYTES}"
        raise LaunchRefused("InvalidUserData.Malformed", message, attempt.region, scope="none")
    if not _TOKEN.fullmatch(attempt.cedana_id):
        message = f"{attempt.cedana_id!r} cannot be a client token: 1 to 64 visible ASCII characters are wanted"
        raise LaunchRefused("InvalidClientToken", message, attempt.region, scope="none")


def _root_disk(device: str, size_gb: int) -> dict[str, object]:
    disk = {"VolumeSize": size_gb, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
    return {"DeviceName": device, "Ebs": disk}


def _spot(launch: LaunchRequest) -> dict[str, object]:
    options = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    if launch.max_price_usd_hour is not None:
        options["MaxPrice"] = _price(launch.max_price_usd_hour)
    return {"MarketType": "spot", "SpotOptions": options}


def _price(cap: Decimal) -> str:
    """The cap as EC2 takes it, never above what was meant.

    A cap of less than one step is one step: nothing is sold so low, and a price of zero would be refused as malformed.
    """
    return format(max(cap.quantize(_PRICE_STEP, ROUND_FLOOR), _PRICE_STEP), "f")


def _tag_specifications(tags: Mapping[str, str], *, spot: bool) -> list[dict[str, object]]:
    listed = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
    resources = ["instance", "volume", *(["spot-instances-request"] if spot else [])]
    return [{"ResourceType": resource, "Tags": listed} for resource in resources]


def _placement(where: Mapping[str, str]) -> dict[str, object]:
    placed: dict[str, object] = {}
    if "subnet_id" in where:
        placed["SubnetId"] = where["subnet_id"]
    elif "zone" in where:
        placed["Placement"] = {"AvailabilityZone": where["zone"]}
    if "security_group_id" in where:
        placed["SecurityGroupIds"] = [where["security_group_id"]]
    if "instance_profile_arn" in where:
        placed["IamInstanceProfile"] = {"Arn": where["instance_profile_arn"]}
    return placed
