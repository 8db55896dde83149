"""Whether the network of a region of AWS is as its settings say: subnets, security group, instance profile."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.aws.api import Client
from spotferry.providers.aws.errors import VENDOR_ERRORS, VendorError, failure_of
from spotferry.providers.opening import Finding, Level

Json = Mapping[str, Any]  # Any: an answer of the SDK


class NetworkCheck:
    """Looks at one region's network.

    Args:
        ec2, iam: clients.
        deployment: its name, which is in the path of the roles that the broker may pass on.
    """

    def __init__(self, ec2: Client, iam: Client, deployment: str) -> None:
        self._ec2 = ec2
        self._iam = iam
        self._deployment = deployment

    def __call__(self, settings: RegionSettings) -> Iterator[Finding]:
        """All that was found."""
        network = settings.network
        subnets = {k.removeprefix("subnet:"): v for k, v in network.items() if k.startswith("subnet:")}
        vpcs: set[str] = set()
        for zone, subnet_id in subnets.items():
            yield from self._subnet(zone, subnet_id, vpcs)
        yield from self._unused_zones(subnets) if subnets else self._default_network(settings.region)
        if group := network.get("security_group_id", ""):
            yield from self._group(group, vpcs)
        if len(vpcs) > 1:
            yield Finding(
                Level.PROBLEM, f"subnets and security group are of different networks: {', '.join(sorted(vpcs))}"
            )
        if profile := network.get("instance_profile_arn", ""):
            yield from self._profile(profile)

    def _subnet(self, zone: str, subnet_id: str, vpcs: set[str]) -> Iterator[Finding]:
        try:
            found: Json = self._ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"][0]
        except VENDOR_ERRORS as error:
            yield _problem(f"the subnet {subnet_id} for {zone}", error)
            return
        vpcs.add(str(found.get("VpcId", "")))
        if zone not in (found.get("AvailabilityZone"), found.get("AvailabilityZoneId")):
            yield Finding(Level.PROBLEM, f"the subnet {subnet_id} is in {found.get('AvailabilityZone')}, not in {zone}")
            return
        free = int(found.get("AvailableIpAddressCount", 0))
        if free:
            yield Finding(Level.OK, f"the subnet {subnet_id} is in {zone}, with {free} addresses free")
        else:
            yield Finding(Level.PROBLEM, f"the subnet {subnet_id} in {zone} has no address free")
        if not found.get("MapPublicIpOnLaunch"):
            yield Finding(
                Level.NOTE, f"machines in {subnet_id} get no public address: they need a NAT gateway to get out"
            )

    def _unused_zones(self, subnets: Mapping[str, str]) -> Iterator[Finding]:
        try:
            zones: Sequence[Json] = self._ec2.describe_availability_zones()["AvailabilityZones"]
        except VENDOR_ERRORS as error:
            yield Finding(Level.NOTE, f"the region's zones are not known: {failure_of(error).code}")
            return
        unused = [z["ZoneName"] for z in zones if not {z["ZoneName"], z.get("ZoneId")} & set(subnets)]
        if unused:
            yield Finding(Level.NOTE, f"zones without a subnet are not used: {', '.join(sorted(unused))}")

    def _default_network(self, region: str) -> Iterator[Finding]:
        try:
            filters = [{"Name": "default-for-az", "Values": ["true"]}]
            found: Sequence[Json] = self._ec2.describe_subnets(Filters=filters)["Subnets"]
        except VENDOR_ERRORS as error:
            yield _problem("the default network", error)
            return
        if found:
            yield Finding(Level.OK, f"the default network has a subnet in {len(found)} zones")
        else:
            yield Finding(Level.PROBLEM, f"this account has no default network in {region}: name subnets (--subnet)")

    def _group(self, group: str, vpcs: set[str]) -> Iterator[Finding]:
        try:
            found: Json = self._ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
        except VENDOR_ERRORS as error:
            yield _problem(f"the security group {group}", error)
            return
        vpcs.add(str(found.get("VpcId", "")))
        yield Finding(Level.OK, f"the security group {group} is there")
        if found.get("IpPermissions"):
            yield Finding(Level.NOTE, f"the security group {group} lets others in; machines need no way in")

    def _profile(self, arn: str) -> Iterator[Finding]:
        name = arn.rpartition("/")[2]
        try:
            found: Json = self._iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        except VENDOR_ERRORS as error:
            yield _problem(f"the instance profile {name}", error)
            return
        roles = [str(role["Arn"]) for role in found.get("Roles", ())]
        if not roles:
            yield Finding(Level.PROBLEM, f"the instance profile {name} has no role")
        elif f":role/spotferry/{self._deployment}/" in roles[0]:
            yield Finding(Level.OK, f"the instance profile {name} has a role that the broker may pass on")
        else:
            yield Finding(Level.NOTE, f"the broker passes on {roles[0]} only if it is the parameter MachineRoleArn")


def _problem(what: str, error: VendorError) -> Finding:
    failure = failure_of(error)
    return Finding(Level.PROBLEM, f"{what} is not to be had: {failure.code}: {failure.message}".removesuffix(": "))
