"""Whether a region of AWS is as its settings say, and would launch: network, images, quota, and a dry run a subnet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import boto3
from botocore.config import Config

from spotferry.ports.cloud import RegionSettings, image_key
from spotferry.providers.aws.api import AwsApi, Client
from spotferry.providers.aws.check_network import NetworkCheck
from spotferry.providers.aws.errors import VENDOR_ERRORS, VendorError, failure_of
from spotferry.providers.aws.images import Images
from spotferry.providers.context import DEPLOYMENT_TAG
from spotferry.providers.opening import CheckContext, Finding, Level, RegionCheck
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Offer

Connect = Callable[[str, str], Client]
"""Makes the client of a service in a region."""

SAMPLES: Mapping[tuple[str, bool], str] = {
    ("x86_64", False): "t3.small",
    ("arm64", False): "t4g.small",
    ("x86_64", True): "g4dn.xlarge",
    ("arm64", True): "g5g.xlarge",
}
"""A common type of each (arch, with GPU), whose image is looked at; the first is tried by a dry run."""
SPOT_QUOTA = "L-34B43A08"
"""Service Quotas' code of "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", in vCPUs."""
FORWARDED = ("warnings", "states", "health")
"""Ends of the names of the rules that template-region.yaml makes."""
_OPEN = {"opt-in-not-required", "opted-in"}
_WOULD_SUCCEED = "DryRunOperation"


class AwsCheck:
    """Looks at regions of one account, as whoever runs it.

    Args:
        context: the deployment.
        connect: makes clients.
    """

    def __init__(self, context: CheckContext, connect: Connect) -> None:
        self._context = context
        self._connect = connect

    def __call__(self, settings: RegionSettings) -> Iterator[Finding]:
        """All that was found."""
        region = settings.region
        ec2 = self._connect("ec2", region)
        try:
            yield self._open(ec2, region)
        except VENDOR_ERRORS as error:
            yield Finding(Level.PROBLEM, f"{region} cannot be looked at: {words(error)}")
            return
        yield from NetworkCheck(ec2, self._connect("iam", region), self._context.deployment)(settings)
        images = {kind: self._image(settings, kind) for kind in SAMPLES}
        yield from (finding for _, finding in images.values())
        image_id = images["x86_64", False][0]
        if image_id:
            yield from self._dry_runs(ec2, settings, image_id)
        yield self._quota(region)
        yield from self._forwarding(region)

    def _open(self, ec2: Client, region: str) -> Finding:
        found = ec2.describe_regions(RegionNames=[region], AllRegions=True)["Regions"][0]
        status = found.get("OptInStatus", "opt-in-not-required")
        if status in _OPEN:
            return Finding(Level.OK, f"{region} is open to this account")
        return Finding(
            Level.PROBLEM, f"{region} is not open to this account ({status}): enable it in the account's page"
        )

    def _image(self, settings: RegionSettings, kind: tuple[str, bool]) -> tuple[str, Finding]:
        """The image of a kind of machine, "" for none; what is found of it is a problem only where it keeps all out."""
        arch, with_gpu = kind
        offer = Offer(
            provider="aws", region=settings.region, zone="", instance_type=SAMPLES[kind], arch=arch, vcpus=1,
            memory_gib=1, gpu_count=int(with_gpu),
        )  # fmt: skip
        key = image_key(arch, with_gpu=with_gpu)
        calls = AwsApi(self._connect).begin(settings.region)
        try:
            image = Images(self._context.clock).resolve(calls, settings, offer, "")
        except ProviderError as error:
            needed = key in settings.image_ids or kind == ("x86_64", False)
            level = Level.PROBLEM if needed else Level.NOTE
            return "", Finding(level, f"no image for {key} machines: {error.code}: {error.message}")
        return image.image_id, Finding(Level.OK, f"{key} machines boot {image.image_id}")

    def _dry_runs(self, ec2: Client, settings: RegionSettings, image_id: str) -> Iterator[Finding]:
        subnets = {k.removeprefix("subnet:"): v for k, v in settings.network.items() if k.startswith("subnet:")}
        for zone, subnet in (subnets or {"the default network": ""}).items():
            yield self._dry_run(ec2, settings, image_id, zone, subnet)

    def _dry_run(self, ec2: Client, settings: RegionSettings, image_id: str, zone: str, subnet: str) -> Finding:
        """A spot launch that EC2 goes through but for the machine, which it answers with an error in any case."""
        sample = SAMPLES["x86_64", False]
        tags = [{"Key": DEPLOYMENT_TAG, "Value": self._context.deployment}]
        request: dict[str, object] = {
            "DryRun": True, "MinCount": 1, "MaxCount": 1, "ImageId": image_id, "InstanceType": sample,
            "InstanceMarketOptions": {"MarketType": "spot"},
            "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
        }  # fmt: skip
        if subnet:
            request["SubnetId"] = subnet
        if group := settings.network.get("security_group_id", ""):
            request["SecurityGroupIds"] = [group]
        if profile := settings.network.get("instance_profile_arn", ""):
            request["IamInstanceProfile"] = {"Arn": profile}
        try:
            ec2.run_instances(**request)
        except VENDOR_ERRORS as error:
            failure = failure_of(error)
            if failure.code == _WOULD_SUCCEED:
                return Finding(Level.OK, f"a dry run of a spot machine ({sample}) in {zone} would succeed")
            level = Level.NOTE if failure.code == "Unsupported" else Level.PROBLEM
            return Finding(level, f"a dry run of a spot machine ({sample}) in {zone}: {words(error)}")
        return Finding(
            Level.PROBLEM, f"a dry run in {zone} was taken for a launch: look for a machine there and end it"
        )

    def _quota(self, region: str) -> Finding:
        try:
            quotas = self._connect("service-quotas", region)
            value = float(quotas.get_service_quota(ServiceCode="ec2", QuotaCode=SPOT_QUOTA)["Quota"]["Value"])
        except VENDOR_ERRORS as error:
            return Finding(Level.NOTE, f"the quota of spot vCPUs is not known: {words(error)}")
        if value > 0:
            return Finding(Level.OK, f"the quota of spot vCPUs of standard types is {value:g}")
        return Finding(Level.PROBLEM, f"the quota of spot vCPUs is 0: ask for more in Service Quotas ({SPOT_QUOTA})")

    def _forwarding(self, region: str) -> Iterator[Finding]:
        home = self._context.home_region
        if home in ("", region):
            return
        prefix = f"spotferry-{self._context.deployment}-"
        try:
            rules: Sequence[Mapping[str, Any]] = self._connect("events", region).list_rules(NamePrefix=prefix)["Rules"]
        except VENDOR_ERRORS as error:
            yield Finding(Level.NOTE, f"whether notices are forwarded to {home} is not known: {words(error)}")
            return
        enabled = {str(rule["Name"]) for rule in rules if rule.get("State") == "ENABLED"}
        if missing := [end for end in FORWARDED if prefix + end not in enabled]:
            yield Finding(
                Level.NOTE,
                f"EC2's notices are not forwarded to {home} (no rule for {', '.join(missing)}): deploy "
                "template-region.yaml here; until then only the machine's own agent sees them",
            )
        else:
            yield Finding(Level.OK, f"EC2's notices are forwarded to {home}")


def words(error: VendorError) -> str:
    """The code and the words of a refusal."""
    failure = failure_of(error)
    return f"{failure.code}: {failure.message}".removesuffix(": ")


def build_check(context: CheckContext) -> RegionCheck:
    """The check, with the credentials that the AWS tools would take here."""
    session = boto3.session.Session()
    config = Config(connect_timeout=3, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
    make: Callable[..., Client] = session.client  # its overloads know literal names only
    return AwsCheck(context, lambda service, region: make(service, region_name=region, config=config))
