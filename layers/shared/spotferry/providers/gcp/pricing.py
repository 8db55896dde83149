"""Google Cloud's prices: rates of the billing catalogue, machine types of the compute API."""

from spotferry.providers.context import PricingContext
from spotferry.providers.gcp.pricing_auth import price_api
from spotferry.providers.gcp.pricing_model import GcpPricing
from spotferry.types.provider import PricingModel


def build_pricing(context: PricingContext) -> PricingModel:
    """The pricing model over Google's APIs, with the credentials that the environment gives (`pricing_auth`).

    Raises:
        Misconfigured: there are no credentials, or no project.
    """
    return GcpPricing(context, price_api())
