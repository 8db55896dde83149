"""Whether a region of Paperspace is as its settings say: the key, and the private network."""

from collections.abc import Iterator

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.opening import CheckContext, Finding, Level, RegionCheck
from spotferry.providers.paperspace.credentials import ApiKey, endpoint
from spotferry.providers.rest import RestApi
from spotferry.types.errors import Misconfigured, ProviderError


class PaperspaceCheck:
    """Looks at regions of one team.

    Args:
        api: the API, with the team's key.
    """

    def __init__(self, api: RestApi) -> None:
        self._api = api

    def __call__(self, settings: RegionSettings) -> Iterator[Finding]:
        """All that was found."""
        region = settings.region
        try:
            self._api.get("/machines", {"limit": "1"}, region)
        except Misconfigured as error:
            yield Finding(Level.PROBLEM, str(error))
            return
        except ProviderError as error:
            yield Finding(Level.PROBLEM, f"Paperspace does not take the key: {error.code}: {error.message}")
            return
        yield Finding(Level.OK, "Paperspace takes the key")
        if network := settings.network.get("network_id", ""):
            yield self._network(network, region)
        yield Finding(Level.NOTE, "Paperspace tells neither quotas nor capacity: a launch finds out")

    def _network(self, network: str, region: str) -> Finding:
        try:
            found = self._api.get(f"/private-networks/{network}", region=region)
        except ProviderError as error:
            return Finding(
                Level.PROBLEM, f"the private network {network} is not to be had: {error.code}: {error.message}"
            )
        where = str(found.get("region", ""))  # "ny2"; the console says "East Coast (NY2)"
        if region.lower() in where.lower():
            return Finding(Level.OK, f"the private network {network} is in {region}")
        return Finding(Level.PROBLEM, f"the private network {network} is in {where}, not in {region}")


def build_check(context: CheckContext) -> RegionCheck:
    """The check, with the key of the environment, else the deployment's."""
    return PaperspaceCheck(RestApi(endpoint(), ApiKey(context.secret)))
