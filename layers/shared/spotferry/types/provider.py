"""What the broker asks of every cloud."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Protocol, runtime_checkable

from pydantic import Field

from spotferry.types.base import Money, Time, Value
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Instance, Offer

PROVIDER_NAMES: tuple[str, ...] = ("aws", "gcp", "azure", "paperspace")
"""The clouds, in the order of the seed."""


@runtime_checkable
class Provider(Protocol):
    """One cloud. No call blocks longer than 20 seconds and no vendor's exception escapes: see `types.errors`."""

    def name(self) -> str:
        """The cloud's name, one of PROVIDER_NAMES."""
        ...

    def create_instance(self, candidate: Instance) -> Instance:
        """Buy one machine for the candidate, an `Attempt` whose launch request is fixed.

        Idempotent by `candidate.cedana_id`, which is also the cloud's idempotency token: asking twice makes one
        machine. Returns the candidate with allocated_id, state, zone and address filled in.

        Raises:
            CapacityError: not to be had; the subclass says what to try next.
            ProviderUnavailable: no verdict; the same request again later.
        """
        ...

    def destroy_instance(self, instance: Instance) -> None:
        """End the machine; succeeds when it has ended before or never existed.

        Returns when the cloud accepted the order, which may be before the machine is gone.

        Raises:
            ProviderError: the cloud did not accept it; try again later.
        """
        ...

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002 (the seed's name)
        """The machines as the cloud sees them now, in batches of the cloud's largest size.

        Args:
            instances: may be empty; else exactly these are looked up, all of one region or several.
            filter: "" for all, or one of INSTANCE_STATES to keep only those in that state.

        Returns:
            A copy of each instance with state, allocated_id, address and, of an attempt, `cloud_reason`, `launched_at`,
            `billed_until` and `ended_by` as seen, where the cloud tells them. One that the cloud
            does not know (any longer) comes back as "terminated", unless it was created so recently that the cloud
            may not show it yet: that one comes back as it was given.

        Raises:
            ProviderError: the listing failed; it proves nothing about any machine.
        """
        ...

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """What the cloud has announced for the machine (a take-back, an end); None when there is nothing to say."""
        ...


class PricingModel(Protocol):
    """Where a cloud's prices come from."""

    def get_prices(self) -> Iterable[Instance]:
        """Every offer in each market as an Instance whose price is filled in; a generator, so that memory stays
        bounded.

        Raises:
            ProviderError: a region failed; what came before it is whole.
        """
        ...

    def regions(self) -> Sequence[str]:
        """The regions that have prices.

        Raises:
            ProviderError: the cloud does not say.
        """
        ...

    def offers(self, region: str) -> Iterator[Offer]:
        """One region's offers as they are now; a generator over the API's pages, so that memory stays bounded.

        Raises:
            ProviderError: this region failed; others are not touched by it.
        """
        ...


class PoolRate(Value):
    """How often a cloud itself says that it takes back spot machines of a type.

    Attributes:
        provider: the cloud.
        region: where.
        zone: as offers name it; "" for all zones of the region.
        instance_type: as offers name it, whatever the case.
        per_hour: interruptions an hour of one machine; above zero, since no cloud promises none.
        source: what told it, one word for machines to read.
        read_at: when.
    """

    provider: str
    region: str
    zone: str = ""
    instance_type: str
    per_hour: Annotated[Money, Field(gt=Decimal(0))]
    source: str
    read_at: Time


@runtime_checkable
class TellsInterruptionRates(Protocol):
    """The part of a pricing model that clouds may have which tell how often they take machines back."""

    def interruption_rates(self, region: str) -> Iterator[PoolRate]:
        """One region's rates as they are told now; types and zones without one are left out.

        Raises:
            ProviderError: the cloud does not say; prices are not touched by it.
        """
        ...
