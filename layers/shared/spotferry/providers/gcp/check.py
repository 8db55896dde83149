"""Whether a region of Google Cloud is as its settings say, and would launch: region, network, images, quotas."""

from collections.abc import Iterator, Mapping
from typing import Any

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.gcp.pricing_auth import price_api
from spotferry.providers.opening import CheckContext, Finding, Level, RegionCheck
from spotferry.providers.rest import RestApi
from spotferry.types.errors import ProviderError

Json = Mapping[str, Any]  # Any: JSON as Google sends it
_SPOT_CPUS = "PREEMPTIBLE_CPUS"
_QUOTAS = {
    "CPUS": "vCPUs",
    _SPOT_CPUS: "vCPUs of spot machines",
    "IN_USE_ADDRESSES": "external addresses",
    "INSTANCES": "machines",
}
"""What machines take of."""


class GcpCheck:
    """Looks at regions of one project, as whoever runs it.

    Args:
        compute: the API.
        project: whose regions.
    """

    def __init__(self, compute: RestApi, project: str) -> None:
        self._compute = compute
        self._project = project

    def __call__(self, settings: RegionSettings) -> Iterator[Finding]:
        """All that was found."""
        region = settings.region
        try:
            found = self._get(f"/projects/{self._project}/regions/{region}", region)
        except ProviderError as error:
            yield Finding(
                Level.PROBLEM, f"{region} cannot be looked at in project {self._project}: {error.code}: {error.message}"
            )
            return
        up = found.get("status", "UP") == "UP"
        yield Finding(Level.OK if up else Level.PROBLEM, f"{region} is {found.get('status', 'UP')} in {self._project}")
        yield from _quotas(found)
        yield from self._network(settings)
        for key, name in settings.image_ids.items():
            path = name if "/" in name else f"projects/{self._project}/global/images/{name}"
            yield self._there(f"/{path}", f"the image for {key}, {name},", region)
        if account := settings.network.get("service_account", ""):
            yield Finding(
                Level.NOTE, f"the broker must be allowed to use {account} (roles/iam.serviceAccountUser): not looked at"
            )

    def _network(self, settings: RegionSettings) -> Iterator[Finding]:
        region, subnetwork = settings.region, settings.network.get("subnetwork", "")
        network = settings.network.get("network", "" if subnetwork else "default")
        if network:
            path = network if "/" in network else f"projects/{self._project}/global/networks/{network}"
            try:
                found = self._get(f"/{path}", region)
            except ProviderError as error:
                yield _missing(f"the network {network}", error)
            else:
                yield Finding(Level.OK, f"the network {network} is there")
                if not subnetwork and not found.get("autoCreateSubnetworks"):
                    yield Finding(Level.PROBLEM, f"the network {network} is in custom mode: name a --subnetwork")
        if subnetwork:
            path = f"projects/{self._project}/regions/{region}/subnetworks/{subnetwork}"
            yield self._there(f"/{subnetwork if '/' in subnetwork else path}", f"the subnetwork {subnetwork}", region)

    def _there(self, path: str, what: str, region: str) -> Finding:
        try:
            self._get(path, region)
        except ProviderError as error:
            return _missing(what, error)
        return Finding(Level.OK, f"{what} is there")

    def _get(self, path: str, region: str) -> Json:
        return self._compute.get(path, region=region)


def _missing(what: str, error: ProviderError) -> Finding:
    return Finding(Level.PROBLEM, f"{what} is not to be had: {error.code}: {error.message}")


def _quotas(found: Json) -> Iterator[Finding]:
    limits = {str(quota.get("metric")): quota for quota in found.get("quotas") or ()}
    for metric, noun in _QUOTAS.items():
        limit, usage = (float((limits.get(metric) or {}).get(key, 0)) for key in ("limit", "usage"))
        if metric not in limits or (metric == _SPOT_CPUS and not limit):
            continue
        free = usage < limit
        level = Level.OK if free else Level.PROBLEM
        yield Finding(level, f"quota {metric}: {usage:g} of {limit:g} {noun} in use" + ("" if free else ": raise it"))
    if float((limits.get(_SPOT_CPUS) or {}).get("limit", 0)) == 0:
        yield Finding(Level.NOTE, f"quota {_SPOT_CPUS} is not set: spot machines count against CPUS")


def build_check(context: CheckContext) -> RegionCheck:  # noqa: ARG001 (every cloud's has it)
    """The check, as the environment says who asks and in which project.

    Raises:
        Misconfigured: there are no credentials, or no project.
    """
    api = price_api()
    return GcpCheck(api.compute, api.project)
