"""The market's refusals in EC2's codes, words and HTTP statuses."""

from __future__ import annotations

from local.ec2_wire import Ec2Error
from local.market_model import (
    MarketError,
    NoCapacityError,
    PriceTooLowError,
    Purchase,
    QuotaExceededError,
    TokenMismatchError,
    UnknownMachineError,
)


def refusal(error: MarketError) -> Ec2Error:
    """The error EC2 would send."""
    match error:
        case NoCapacityError():
            return _no_capacity(error)
        case QuotaExceededError():
            return _quota(error)
        case PriceTooLowError():
            return Ec2Error(
                "SpotMaxPriceTooLow",
                f"Your Spot request price of {error.offered} is lower than the minimum required Spot request "
                f"fulfillment price of {error.price}.",
            )
        case TokenMismatchError():
            return Ec2Error(
                "IdempotentParameterMismatch",
                f"The client token {error.token} was used before, and these arguments differ from that request's.",
            )
        case UnknownMachineError():
            return _unknown(error)
        case _:
            return Ec2Error("IncorrectInstanceState", str(error))


def _no_capacity(error: NoCapacityError) -> Ec2Error:
    key = error.key
    if key.purchase is Purchase.SPOT:
        message = "There is no Spot capacity available that matches your request."
    else:
        hint = f" or choosing {', '.join(error.elsewhere)}" if error.elsewhere else ""
        message = (
            f"We currently do not have sufficient {key.instance_type} capacity in the Availability Zone you requested "
            f"({key.zone}). You can try again by not specifying an Availability Zone{hint}."
        )
    return Ec2Error("InsufficientInstanceCapacity", message, 500)


def _quota(error: QuotaExceededError) -> Ec2Error:
    if error.key.purchase is Purchase.SPOT:
        return Ec2Error("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    return Ec2Error(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {error.limit_vcpus} allows for the "
        f"instance bucket that the specified instance type belongs to ({error.family}).",
    )


def _unknown(error: UnknownMachineError) -> Ec2Error:
    ids = error.allocated_ids
    if len(ids) == 1:
        return Ec2Error("InvalidInstanceID.NotFound", f"The instance ID '{ids[0]}' does not exist")
    return Ec2Error("InvalidInstanceID.NotFound", f"The instance IDs '{', '.join(ids)}' do not exist")
