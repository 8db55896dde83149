"""What prices need to know of Azure: the public list of retail prices, and the subscription's locations and SKUs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spotferry.providers.azure.pricing_meters import DISK_METER, DISK_PRODUCT
from spotferry.providers.rest import Json, RestApi
from spotferry.types.errors import ProviderError

RETAIL = "https://prices.azure.com"
RESOURCE_MANAGER = "https://management.azure.com"

_RETAIL_VERSION = "2023-01-01-preview"
_SKUS_VERSION = "2021-07-01"
_LOCATIONS_VERSION = "2022-12-01"
_LEAST_PAGE = 100
"""A page of the list is full at a multiple of this: it has been 100, and is 1,000 now."""
_MOST_ROWS = 100_000
"""No region has so many; a list that goes on longer repeats itself."""


@dataclass(frozen=True, slots=True)
class AzurePriceApi:
    """The two APIs, of one subscription. The retail prices ask for no token."""

    retail: RestApi
    manager: RestApi
    subscription: str

    def machine_meters(self, region: str) -> Iterator[Json]:
        """The rows for virtual machines in a region, reservations left out; page after page.

        Raises:
            ProviderError: a page failed.
        """
        return self._meters({"serviceName": "Virtual Machines"}, region)

    def disk_meters(self, region: str) -> Iterator[Json]:
        """The rows for the disk by which a GiB is priced.

        Raises:
            ProviderError: a page failed.
        """
        wanted = {"serviceName": "Storage", "productName": DISK_PRODUCT, "meterName": DISK_METER}
        return self._meters(wanted, region)

    def locations(self) -> Sequence[str]:
        """The subscription's regions; logical groups of regions left out.

        Raises:
            ProviderError: the listing failed.
        """
        path = f"/subscriptions/{self.subscription}/locations"
        found = []
        for row in self._resources(path, {"api-version": _LOCATIONS_VERSION}, ""):
            metadata = row.get("metadata")
            kind = metadata.get("regionType", "Physical") if isinstance(metadata, dict) else "Physical"
            if kind == "Physical" and isinstance(row.get("name"), str):
                found.append(row["name"])
        return sorted(found)

    def skus(self, region: str) -> Iterator[Json]:
        """The region's SKUs of Microsoft.Compute as the API gives them; page after page.

        Raises:
            ProviderError: a page failed.
        """
        path = f"/subscriptions/{self.subscription}/providers/Microsoft.Compute/skus"
        parameters = {"api-version": _SKUS_VERSION, "$filter": f"location eq '{region}'"}
        return self._resources(path, parameters, region)

    def _meters(self, wanted: Mapping[str, str], region: str) -> Iterator[Json]:
        """Rows by their count from the beginning: the list's own link to the next page has been empty by mistake.

        A page without a link is the last one only if it is not full.
        """
        names = {**wanted, "priceType": "Consumption", "armRegionName": region}
        terms = " and ".join(f"{name} eq '{value}'" for name, value in names.items())
        parameters = {"api-version": _RETAIL_VERSION, "currencyCode": "'USD'", "$filter": terms}
        skip = 0
        while skip < _MOST_ROWS:
            page = self.retail.get("/api/retail/prices", {**parameters, "$skip": str(skip)}, region)
            rows = _rows(page, "Items", region)
            yield from rows
            skip += len(rows)
            if not rows or (not page.get("NextPageLink") and len(rows) % _LEAST_PAGE):
                return
        raise ProviderError("EndlessPages", f"the price list does not end after {skip} rows", region)

    def _resources(self, path: str, parameters: Mapping[str, str], region: str) -> Iterator[Json]:
        page = self.manager.get(path, parameters, region)
        seen: set[str] = set()
        while True:
            yield from _rows(page, "value", region)
            link = str(page.get("nextLink") or "")
            if not link:
                return
            if link in seen:
                raise ProviderError("EndlessPages", f"{path}: the same page follows itself", region)
            seen.add(link)
            page = self.manager.follow(link, region)


def _rows(page: Json, name: str, region: str) -> list[Json]:
    rows = page.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ProviderError("InvalidAnswer", f"{name} is no list of objects", region)
    return rows
