"""What prices need to know of Google Cloud: the SKUs of Compute Engine, zones, machine types, accelerators."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spotferry.providers.rest import Json, RestApi
from spotferry.types.errors import ProviderError

COMPUTE = "https://compute.googleapis.com/compute/v1"
BILLING = "https://cloudbilling.googleapis.com/v1"
COMPUTE_ENGINE = "6F81-5844-456A"
"""The billing catalogue's id of the service Compute Engine."""

_SKUS_A_PAGE = "5000"
_RESOURCES_A_PAGE = "500"
_MACHINE_FIELDS = (
    "items(name,guestCpus,memoryMb,isSharedCpu,architecture,accelerators,bundledLocalSsds,deprecated/state),"
    "nextPageToken"
)


class _Zone(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    region: str
    status: str = "UP"


class _Accelerator(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    most: int = Field(default=0, alias="maximumCardsPerInstance")


@dataclass(frozen=True, slots=True)
class GcpPriceApi:
    """The two APIs, of one project."""

    compute: RestApi
    billing: RestApi
    project: str

    def skus(self) -> Iterator[Json]:
        """Every SKU of Compute Engine, all regions together; page after page.

        Raises:
            ProviderError: a page failed.
        """
        parameters = {"pageSize": _SKUS_A_PAGE, "currencyCode": "USD"}
        return _pages(self.billing, f"/services/{COMPUTE_ENGINE}/skus", "skus", parameters, "")

    def zones(self) -> Mapping[str, tuple[str, ...]]:
        """The zones that are up, by region.

        Raises:
            ProviderError: the listing failed.
        """
        found: dict[str, tuple[str, ...]] = {}
        for row in self._resources("zones", "items(name,region,status),nextPageToken", ""):
            try:
                zone = _Zone.model_validate(row)
            except ValidationError as error:
                raise ProviderError("InvalidAnswer", f"a zone is not what the API promises: {error}") from error
            if zone.status == "UP":
                region = zone.region.rpartition("/")[2]
                found[region] = (*found.get(region, ()), zone.name)
        return found

    def machine_types(self, zone: str, region: str) -> Iterator[Json]:
        """The zone's machine types as the API gives them; page after page.

        Raises:
            ProviderError: a page failed.
        """
        return self._resources(f"zones/{zone}/machineTypes", _MACHINE_FIELDS, region)

    def accelerators(self, zone: str, region: str) -> Mapping[str, int]:
        """The zone's accelerators, and how many of each one instance may have.

        Raises:
            ProviderError: the listing failed.
        """
        rows = self._resources(
            f"zones/{zone}/acceleratorTypes", "items(name,maximumCardsPerInstance),nextPageToken", region
        )
        try:
            read = [_Accelerator.model_validate(row) for row in rows]
        except ValidationError as error:
            raise ProviderError(
                "InvalidAnswer", f"an accelerator is not what the API promises: {error}", region
            ) from error
        return {accelerator.name: accelerator.most for accelerator in read}

    def _resources(self, path: str, fields: str, region: str) -> Iterator[Json]:
        parameters = {"maxResults": _RESOURCES_A_PAGE, "fields": fields}
        return _pages(self.compute, f"/projects/{self.project}/{path}", "items", parameters, region)


def _pages(api: RestApi, path: str, rows: str, parameters: Mapping[str, str], region: str) -> Iterator[Json]:
    """The rows of every page; a page without a next token, or with an empty one, is the last."""
    token = ""
    while True:
        page = api.get(path, {**parameters, "pageToken": token} if token else parameters, region)
        found = page.get(rows) or []
        if not isinstance(found, list):
            raise ProviderError("InvalidAnswer", f"{path}: {rows} is no list", region)
        yield from (row for row in found if isinstance(row, dict))
        following = str(page.get("nextPageToken") or "")
        if not following:
            return
        if following == token:
            raise ProviderError("EndlessPages", f"{path}: the same page follows itself", region)
        token = following
