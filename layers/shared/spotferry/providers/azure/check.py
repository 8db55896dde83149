"""Whether a region of Azure is as its settings say, and would launch: reads of providers, group, subnet, quotas."""

from collections.abc import Iterator, Mapping
from typing import Any

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.azure.pricing_auth import price_api
from spotferry.providers.opening import CheckContext, Finding, Level, RegionCheck
from spotferry.providers.rest import RestApi
from spotferry.types.errors import ProviderError

Json = Mapping[str, Any]  # Any: JSON as Azure sends it
_RESOURCES, _NETWORK, _COMPUTE = "2021-04-01", "2022-11-01", "2024-07-01"
_GALLERIES, _IDENTITY = "2023-07-03", "2023-01-31"
"""Versions of the APIs of resources, networks, machines, image galleries and identities."""
_SPOT_CORES = "lowPriorityCores"
_CORES = "cores"


class AzureCheck:
    """Looks at regions of one subscription, as whoever runs it.

    Args:
        manager: the resource manager.
        subscription: whose regions.
    """

    def __init__(self, manager: RestApi, subscription: str) -> None:
        self._manager = manager
        self._subscription = f"/subscriptions/{subscription}"

    def __call__(self, settings: RegionSettings) -> Iterator[Finding]:
        """All that was found."""
        region = settings.region
        try:
            yield from self._quotas(region)
        except ProviderError as error:
            yield Finding(Level.PROBLEM, f"{region} cannot be looked at: {error.code}: {error.message}")
            return
        for name in ("Microsoft.Compute", "Microsoft.Network"):
            yield self._registered(name, region)
        yield from self._places(settings)
        for key, name in settings.image_ids.items():
            yield self._image(key, name, region)

    def _quotas(self, region: str) -> Iterator[Finding]:
        path = f"{self._subscription}/providers/Microsoft.Compute/locations/{region}/usages"
        usages = {
            str((usage.get("name") or {}).get("value")): usage
            for usage in self._get(path, _COMPUTE, region).get("value") or ()
        }
        for name, noun in ((_SPOT_CORES, "spot"), (_CORES, "on-demand")):
            limit, used = (int((usages.get(name) or {}).get(key, 0)) for key in ("limit", "currentValue"))
            free = used < limit
            level = Level.OK if free else Level.PROBLEM if name == _SPOT_CORES else Level.NOTE
            hint = "" if free else f": no {noun} machine starts until it is raised"
            yield Finding(level, f"quota {name}: {used} of {limit} vCPUs of {noun} machines in use{hint}")

    def _registered(self, name: str, region: str) -> Finding:
        try:
            state = self._get(f"{self._subscription}/providers/{name}", _RESOURCES, region).get("registrationState")
        except ProviderError as error:
            return _missing(f"the resource provider {name}", error)
        if state == "Registered":
            return Finding(Level.OK, f"the resource provider {name} is registered")
        return Finding(
            Level.PROBLEM, f"the resource provider {name} is {state}: az provider register --namespace {name}"
        )

    def _places(self, settings: RegionSettings) -> Iterator[Finding]:
        region, network = settings.region, settings.network
        group, subnet, identity = (network.get(key, "") for key in ("resource_group", "subnet_id", "identity_id"))
        if not group or not subnet:
            yield Finding(Level.PROBLEM, "Azure has no default network: give --resource-group and --subnet-id")
        if group:
            path = f"{self._subscription}/resourcegroups/{group}"
            yield self._there(path, _RESOURCES, f"the resource group {group}", region)
        if subnet:
            yield self._there(subnet, _NETWORK, f"the subnet {subnet}", region)
            yield self._in_region(subnet.partition("/subnets/")[0], region)
        if identity:
            yield self._there(identity, _IDENTITY, f"the identity {identity}", region)

    def _in_region(self, network: str, region: str) -> Finding:
        what = f"the network {network.rpartition('/')[2]}"
        try:
            location = str(self._get(network, _NETWORK, region).get("location", ""))
        except ProviderError as error:
            return _missing(what, error)
        if not location:
            return Finding(Level.NOTE, f"{what} does not tell its region: machines must be where it is")
        if location.replace(" ", "").lower() == region:
            return Finding(Level.OK, f"{what} is in {region}")
        return Finding(Level.PROBLEM, f"{what} is in {location}, not in {region}: machines must be where it is")

    def _image(self, key: str, name: str, region: str) -> Finding:
        what = f"the image for {key}, {name},"
        if name.startswith("/"):
            version = _GALLERIES if "/galleries/" in name.lower() else _COMPUTE
            return self._there(name, version, what, region)
        publisher, offer, sku, _version = name.split(":")
        kind = f"{self._subscription}/providers/Microsoft.Compute/locations/{region}/publishers/{publisher}"
        path = f"{kind}/artifacttypes/vmimage/offers/{offer}/skus/{sku}"
        return self._there(path, _COMPUTE, what, region)

    def _there(self, path: str, version: str, what: str, region: str) -> Finding:
        try:
            self._get(path, version, region)
        except ProviderError as error:
            return _missing(what, error)
        return Finding(Level.OK, f"{what} is there")

    def _get(self, path: str, version: str, region: str) -> Json:
        return self._manager.get(path, {"api-version": version}, region)


def _missing(what: str, error: ProviderError) -> Finding:
    return Finding(Level.PROBLEM, f"{what} is not to be had: {error.code}: {error.message}")


def build_check(context: CheckContext) -> RegionCheck:  # noqa: ARG001 (every cloud's has it)
    """The check, as the environment says who asks and in which subscription.

    Raises:
        Misconfigured: no subscription is named, or the credentials lack something.
    """
    api = price_api()
    return AzureCheck(api.manager, api.subscription)
