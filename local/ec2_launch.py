"""RunInstances: every check EC2 makes before it sells a machine, and the sale."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from local.aws_facts import PublicImage, public_image, shape_of, well_formed_image_id
from local.ec2_call import PROVIDER, Call, Cloud
from local.ec2_moto import Subnet
from local.ec2_refusals import refusal
from local.ec2_views import OWNER_ID, instance_view, reservation_id
from local.ec2_wire import Ec2Error, Params, Value
from local.market_model import LaunchRequest, MarketError, PoolKey, Purchase, Shape

_USER_DATA_LIMIT_BYTES = 16384
_TOKEN_LIMIT = 64
_NOT_IN_FINGERPRINT = {"ClientToken", "DryRun", "Action", "Version"}


def run_instances(cloud: Cloud, call: Call) -> Mapping[str, Value]:
    """Launch one machine, or answer the one the client token launched before."""
    request, siblings = _request(cloud, call)
    if call.params.flag("DryRun"):
        raise Ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
    try:
        machine = cloud.market.launch(request, siblings)
    except MarketError as error:
        raise refusal(error) from error
    return {
        "ReservationId": reservation_id(machine),
        "OwnerId": OWNER_ID,
        "Groups": [],
        "Instances": [instance_view(machine)],
    }


def _request(cloud: Cloud, call: Call) -> tuple[LaunchRequest, tuple[PoolKey, ...]]:
    params = call.params
    _check_count(params)
    shape = _shape(params.required("InstanceType"))
    image = _image(call.region, params.required("ImageId"), shape)
    root_gib = _root_gib(params, image)
    purchase, max_price = _market_options(params)
    groups = params.texts("SecurityGroupId") + _interface(params).texts("SecurityGroupId")
    cloud.moto.check_security_groups(call.region, groups)
    subnet, siblings = _place(cloud, call, purchase, shape)
    request = LaunchRequest(
        pool=PoolKey(PROVIDER, call.region, subnet.zone, params.required("InstanceType"), purchase),
        shape=shape,
        fingerprint=_fingerprint(params),
        client_token=_client_token(params),
        max_price_usd_hour=max_price,
        stop_on_shutdown=_stops_on_shutdown(params, purchase),
        user_data=_user_data(params),
        tags=_tags(params, "instance"),
        details=_details(params, image, root_gib, subnet, groups),
    )
    return request, siblings


def _stops_on_shutdown(params: Params, purchase: Purchase) -> bool:
    """A machine on demand stops unless it was asked to terminate; a one-time spot machine always terminates."""
    return purchase is Purchase.ON_DEMAND and params.text("InstanceInitiatedShutdownBehavior") != "terminate"


def _details(params: Params, image: PublicImage, root_gib: int, subnet: Subnet, groups: list[str]) -> dict[str, str]:
    return {
        "image_id": image.image_id,
        "subnet_id": subnet.subnet_id,
        "vpc_id": subnet.vpc_id,
        "cidr": subnet.cidr,
        "security_groups": ",".join(groups),
        "root_device": image.root_device,
        "root_gib": str(root_gib),
        "profile": params.text("IamInstanceProfile.Arn") or params.text("IamInstanceProfile.Name") or "",
        "http_tokens": params.text("MetadataOptions.HttpTokens") or "optional",
    }


def _check_count(params: Params) -> None:
    counts = (params.integer("MinCount"), params.integer("MaxCount"))
    if None in counts:
        raise Ec2Error("MissingParameter", "The request must contain the parameters MinCount and MaxCount")
    if counts != (1, 1):
        raise Ec2Error("InvalidParameterValue", f"MinCount and MaxCount are {counts}; this cloud sells one at a time.")
    if params.struct("LaunchTemplate"):
        raise Ec2Error("UnsupportedOperation", "This cloud knows no launch templates; name everything in the request.")


def _shape(instance_type: str) -> Shape:
    shape = shape_of(instance_type)
    if shape is None:
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType.")
    return shape


def _image(region: str, image_id: str, shape: Shape) -> PublicImage:
    if not well_formed_image_id(image_id):
        raise Ec2Error("InvalidAMIID.Malformed", f'Invalid id: "{image_id}" (expecting "ami-...")')
    image = public_image(region, image_id)
    if image is None:
        raise Ec2Error("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")
    if image.arch != shape.arch:
        raise Ec2Error(
            "InvalidParameterValue",
            f"The architecture '{shape.arch}' of the instance type does not match the architecture '{image.arch}' "
            f"of the AMI {image_id}.",
        )
    return image


def _root_gib(params: Params, image: PublicImage) -> int:
    for mapping in params.structs("BlockDeviceMapping"):
        size_gib = mapping.integer("Ebs.VolumeSize")
        if mapping.text("DeviceName") != image.root_device or size_gib is None:
            continue
        if size_gib < image.snapshot_gib:
            raise Ec2Error(
                "InvalidBlockDeviceMapping",
                f"Volume of size {size_gib}GB is smaller than snapshot '{image.snapshot_id}', "
                f"expect size >= {image.snapshot_gib}GB",
            )
        return size_gib
    return image.snapshot_gib


def _market_options(params: Params) -> tuple[Purchase, Decimal | None]:
    kind = params.text("InstanceMarketOptions.MarketType")
    if kind is None:
        return Purchase.ON_DEMAND, None
    if kind != "spot":
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{kind}' for InstanceMarketOptions.MarketType.")
    options = params.struct("InstanceMarketOptions.SpotOptions")
    if options.text("SpotInstanceType") not in {None, "one-time"}:
        raise Ec2Error("UnsupportedOperation", "This cloud knows one-time spot requests only.")
    if options.text("InstanceInterruptionBehavior") not in {None, "terminate"}:
        raise Ec2Error("InvalidParameterCombination", "A one-time spot request can only be terminated.")
    return Purchase.SPOT, _price(options.text("MaxPrice"))


def _price(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal(0)
    if not price.is_finite() or price <= 0:
        raise Ec2Error("InvalidParameterValue", f"Invalid value '{text}' for MaxPrice. The price must be above zero.")
    return price


def _place(cloud: Cloud, call: Call, purchase: Purchase, shape: Shape) -> tuple[Subnet, tuple[PoolKey, ...]]:
    instance_type = call.params.required("InstanceType")
    pools = cloud.pools(call.region, instance_type, purchase)
    subnet = _subnet(cloud, call, [key for key in pools if cloud.market.stock.left(key, shape)] or pools)
    offering = [key.zone for key in pools]
    if subnet.zone not in offering:
        hint = f" or choosing {', '.join(offering)}" if offering else ""
        raise Ec2Error(
            "Unsupported",
            f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone "
            f"({subnet.zone}). Please retry your request by not specifying an Availability Zone{hint}.",
        )
    return subnet, tuple(key for key in pools if key.zone != subnet.zone)


def _subnet(cloud: Cloud, call: Call, preferred: list[PoolKey]) -> Subnet:
    params, zone = call.params, call.params.text("Placement.AvailabilityZone")
    subnet_id = params.text("SubnetId") or _interface(params).text("SubnetId")
    if subnet_id:
        subnet = cloud.moto.subnet(call.region, subnet_id)
        if zone not in {None, subnet.zone}:
            raise Ec2Error("InvalidParameterValue", f"The subnet {subnet_id} is in {subnet.zone}, not in {zone}.")
        return subnet
    if zone is not None and zone not in cloud.moto.zones(call.region):
        raise Ec2Error("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
    subnets = cloud.moto.default_subnets(call.region)
    wanted = [zone] if zone else [key.zone for key in preferred] or sorted(subnets)
    for name in wanted:
        if name in subnets:
            return subnets[name]
    raise Ec2Error("MissingInput", f"No default subnet in {', '.join(wanted)}: name a subnet in the request.")


def _interface(params: Params) -> Params:
    interfaces = params.structs("NetworkInterface")
    return interfaces[0] if interfaces else Params({})


def _user_data(params: Params) -> bytes:
    raw = params.blob("UserData")
    if len(raw) > _USER_DATA_LIMIT_BYTES:
        raise Ec2Error("InvalidParameterValue", f"User data is limited to {_USER_DATA_LIMIT_BYTES} bytes")
    return raw


def _client_token(params: Params) -> str | None:
    token = params.text("ClientToken")
    if token and (len(token) > _TOKEN_LIMIT or not token.isascii()):
        raise Ec2Error("InvalidParameterValue", f"ClientToken is limited to {_TOKEN_LIMIT} ASCII characters.")
    return token or None


def _tags(params: Params, resource_type: str) -> dict[str, str]:
    return {
        tag.required("Key"): tag.text("Value") or ""
        for specification in params.structs("TagSpecification")
        if specification.text("ResourceType") == resource_type
        for tag in specification.structs("Tag")
    }


def _fingerprint(params: Params) -> str:
    told = sorted((key, value) for key, value in params.flat().items() if key not in _NOT_IN_FINGERPRINT)
    return hashlib.sha256(repr(told).encode()).hexdigest()
