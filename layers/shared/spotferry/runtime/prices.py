"""The use case behind the schedule of prices."""

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from spotferry.catalog.disk_prices import disk_usd_gib_month
from spotferry.ports.prices import Note
from spotferry.providers import registry
from spotferry.runtime.http import invalid
from spotferry.runtime.observability import count, logger
from spotferry.runtime.wiring import Wiring, utc_now, wiring
from spotferry.types.errors import InvalidInput, ProviderUnavailable
from spotferry.types.provider import PricingModel
from spotferry.usecases.refresh_prices import Refreshed, RefreshPrices


class CloudPrices:
    """The pricing models that this deployment has, found by their folders."""

    def model(self, name: str, note: Note) -> PricingModel:
        """The model of one cloud; loads its SDK.

        Raises:
            Misconfigured: there is no such cloud, or its SDK is not installed.
        """
        context = registry.PricingContext(clock=utc_now, note=note, disk_usd_gib_month=disk_usd_gib_month)
        return registry.load_pricing(name)(context)


class Prices:
    """What is done about prices."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    @property
    def refresh_prices(self) -> RefreshPrices:
        """The refresh."""
        return RefreshPrices(
            regions=self._wiring.parameters,
            sources=CloudPrices(),
            catalogues=self._wiring.catalogues,
            clock=utc_now,
            everywhere=self._wiring.settings.price_regions == "all",
        )


class Order(BaseModel):
    """What starts a refresh: the schedule's event, which says nothing, or a person's order.

    Attributes:
        asked_at: when it was asked for; a catalogue that is newer already is enough.
        asked_by: who did.
    """

    model_config = ConfigDict(extra="ignore")

    asked_at: AwareDatetime | None = None
    asked_by: str = ""


def asked_at(event: object) -> datetime | None:
    """When the refresh was asked for; None for the schedule's.

    Raises:
        InvalidInput: it is no order.
    """
    try:
        return Order.model_validate(event).asked_at
    except ValidationError as error:
        raise invalid(error) from error


def tell(refreshed: Refreshed) -> dict[str, Any]:  # Any: JSON
    """Count and log what came of a refresh, and give it as JSON.

    Raises:
        ProviderUnavailable: prices are too old; raised so that the function's alarm hears of it.
    """
    regions = refreshed.catalogue.regions
    told = {
        "built_at": refreshed.catalogue.built_at.isoformat(),
        "offers": sum(found.offers for found in regions.values()),
        "problems": refreshed.problems,
        "oddities": refreshed.oddities,
    }
    logger.info("prices refreshed", extra=told)
    count("OffersInCatalogue", sum(found.offers for found in regions.values()))
    count("RegionsWithoutNewPrices", len(refreshed.problems))
    if refreshed.stale:
        raise ProviderUnavailable("StalePrices", f"no new prices for a day or more: {'; '.join(refreshed.stale)}")
    return told


def refresh(event: object) -> dict[str, Any]:  # Any: JSON
    """Refresh prices as the event orders; an event that is no order is set aside.

    Raises:
        ProviderUnavailable: prices are too old.
        Misconfigured: no region is open.
    """
    try:
        since = asked_at(event)
    except InvalidInput as error:
        logger.error("event set aside: it is no order to refresh prices", extra={"why": str(error), "event": event})
        count("EventsSetAside")
        return {"set_aside": str(error)}
    refreshed = Prices(wiring()).refresh_prices(since)
    if refreshed is None:
        logger.info("the catalogue is newer than the order")
        return {"skipped": "the catalogue is newer than the order"}
    return tell(refreshed)
