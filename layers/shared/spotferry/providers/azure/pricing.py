"""Azure's prices: the public retail list, and the subscription's resource SKUs."""

from spotferry.providers.azure.pricing_auth import price_api
from spotferry.providers.azure.pricing_model import AzurePricing
from spotferry.providers.context import PricingContext
from spotferry.types.provider import PricingModel


def build_pricing(context: PricingContext) -> PricingModel:
    """The pricing model over Azure's APIs, with the credentials that the environment gives (`pricing_auth`).

    Raises:
        Misconfigured: no subscription is named.
    """
    return AzurePricing(context, price_api())
