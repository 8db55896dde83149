"""What it costs to carry data out of where it is: US dollars a GB, by where from and where to.

List prices of the first paid tier without private agreements, as the clouds published them in 2025: AWS "EC2 on-demand
pricing, data transfer", Google Cloud "VPC network pricing" (premium tier), Azure "Bandwidth pricing". Bringing data in
is free everywhere, and so is reading a bucket from its own region. A free monthly allowance is left out: whether it is
used up already, nobody knows here.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache

from spotferry.types.job_file import Input

_FREE = Decimal(0)
_Prices = Mapping[str, str]

_TO_INTERNET: Mapping[str, _Prices] = {
    "aws": {
        "": "0.09",
        "af-": "0.154",
        "ap-": "0.12",
        "ap-northeast-1": "0.114",
        "ap-northeast-2": "0.126",
        "ap-northeast-3": "0.114",
        "ap-southeast-1": "0.12",
        "ap-southeast-2": "0.114",
        "ap-southeast-3": "0.132",
        "ap-south-": "0.1093",
        "ap-south-2": "0.1093",
        "il-": "0.11",
        "me-": "0.1105",
        "me-south-1": "0.117",
        "sa-": "0.15",
    },
    "gcp": {"": "0.12", "australia-": "0.19", "asia-southeast2": "0.19"},
    "azure": {
        "": "0.087",
        "australia": "0.12",
        "brazil": "0.181",
        "centralindia": "0.12",
        "chile": "0.181",
        "eastasia": "0.12",
        "indonesia": "0.12",
        "israel": "0.12",
        "japan": "0.12",
        "jioindia": "0.12",
        "korea": "0.12",
        "malaysia": "0.12",
        "newzealand": "0.12",
        "qatar": "0.12",
        "southafrica": "0.181",
        "southeastasia": "0.12",
        "southindia": "0.12",
        "taiwan": "0.12",
        "uae": "0.181",
        "westindia": "0.12",
    },
}
"""Out of a region to another cloud, by the beginning of the region's name; the longest that fits counts."""

_TO_OTHER_REGION: Mapping[str, _Prices] = {
    "aws": {
        "": "0.02",
        "af-": "0.147",
        "ap-": "0.09",
        "ap-northeast-2": "0.08",
        "ap-south-": "0.086",
        "ap-southeast-2": "0.098",
        "ap-southeast-3": "0.10",
        "il-": "0.08",
        "me-": "0.085",
        "me-south-1": "0.1105",
        "sa-": "0.138",
    },
    "gcp": {
        "": "0.02",
        "africa-": "0.11",
        "asia-": "0.08",
        "australia-": "0.10",
        "me-": "0.11",
        "southamerica-": "0.14",
    },
    "azure": {
        "": "0.02",
        "australia": "0.08",
        "brazil": "0.16",
        "centralindia": "0.08",
        "chile": "0.16",
        "eastasia": "0.08",
        "indonesia": "0.08",
        "israel": "0.08",
        "japan": "0.08",
        "jioindia": "0.08",
        "korea": "0.08",
        "malaysia": "0.08",
        "newzealand": "0.08",
        "qatar": "0.08",
        "southafrica": "0.16",
        "southeastasia": "0.08",
        "southindia": "0.08",
        "taiwan": "0.08",
        "uae": "0.16",
        "westindia": "0.08",
    },
}
"""Out of a region to another of the same cloud."""

_BETWEEN_CONTINENTS: Mapping[str, Decimal] = {"gcp": Decimal("0.05"), "azure": Decimal("0.05")}
"""Out of a region to another continent, at least."""

_BY_BOTH_ENDS = frozenset({"gcp"})
"""Clouds whose price between continents is that of the dearer one."""

_CONTINENTS: Mapping[str, Mapping[str, str]] = {
    "gcp": {"northamerica-": "america", "us-": "america", "europe-": "europe"},
    "azure": dict.fromkeys(
        (
            "austria",
            "belgium",
            "denmark",
            "finland",
            "france",
            "germany",
            "italy",
            "northeurope",
            "norway",
            "poland",
            "spain",
            "sweden",
            "switzerland",
            "uk",
            "westeurope",
        ),
        "europe",
    ),
}
"""Regions that are near one another though their names begin apart; the others go by the table above."""


def transfer_usd(inputs: Iterable[Input], provider: str, region: str) -> Decimal:
    """What it costs to copy all inputs once to a machine there."""
    prices = ((given.size_gb, usd_per_gb(given.location, provider, region)) for given in inputs)
    return sum((size_gb * price for size_gb, price in prices), _FREE)


@lru_cache(maxsize=16_384)
def usd_per_gb(location: str, provider: str, region: str) -> Decimal:
    """What one GB costs that is carried from a location (`provider/region`) to a region.

    Nothing from outside the clouds, and nothing from a cloud that bills no traffic (Paperspace): neither depends on
    where the machine is.
    """
    cloud, _, home = location.partition("/")
    if cloud not in _TO_INTERNET or (cloud, home) == (provider, region):
        return _FREE
    if cloud != provider:
        return Decimal(_longest(_TO_INTERNET[cloud], home))
    prices = _TO_OTHER_REGION[cloud]
    price = Decimal(_longest(prices, home))
    if cloud not in _CONTINENTS or _continent(cloud, home) == _continent(cloud, region):
        return price
    far = max(price, _BETWEEN_CONTINENTS[cloud])
    return max(far, Decimal(_longest(prices, region))) if cloud in _BY_BOTH_ENDS else far


def _continent(cloud: str, region: str) -> str:
    apart = {start: start or "america" for start in _TO_OTHER_REGION[cloud]}
    return _longest({**apart, **_CONTINENTS[cloud]}, region)


def _longest(by_beginning: Mapping[str, str], region: str) -> str:
    """The entry of the longest beginning of the region's name."""
    return by_beginning[max((start for start in by_beginning if region.startswith(start)), key=len)]
