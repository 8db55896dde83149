"""The spot side of EC2: requests and their status codes, price history, placement scores."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count

from local.aws_facts import offered_types, shape_of
from local.ec2_call import PROVIDER, Call, Cloud
from local.ec2_views import Readers, matching, page, page_start, spot_request_id, tag_views
from local.ec2_wire import Ec2Error, Params, Value
from local.market_model import Machine, PoolKey, Purchase, Shape

_PRODUCT = "Linux/UNIX"
_PRODUCTS = {_PRODUCT, "Linux/UNIX (Amazon VPC)"}
# The seeded movement reaches back for ever; an answer does not have to.
_MOST_STEPS_BACK = 50
_KEYS_OF_A_POOL = 10**13
_FEW_TYPES = 3
_LOW_SCORE = 3
_MOST_SCORE_TYPES = 1000
_STATUS_WORDS = {
    "fulfilled": "Your spot request is fulfilled.",
    "marked-for-termination": "Your instance is marked for termination.",
    "instance-terminated-by-user": "Your instance was terminated by you, or it shut itself down.",
    "instance-terminated-by-price": "Your instance was terminated: the spot price went above your maximum price.",
    "instance-terminated-no-capacity": "Your instance was terminated: the capacity was needed elsewhere.",
    "instance-terminated-launch-failed": "Your instance failed on its start.",
}


def spot_status(machine: Machine) -> str:
    """The status code of the spot request behind the machine."""
    if machine.live:
        return "fulfilled" if machine.notice is None else "marked-for-termination"
    if machine.reclaimed_for is not None:
        return f"instance-terminated-{machine.reclaimed_for}"
    by_user = machine.reason is not None and machine.reason.code.startswith("Client.")
    return "instance-terminated-by-user" if by_user else "instance-terminated-launch-failed"


_REQUEST_FILTERS: Readers = {
    "instance-id": lambda m: m.allocated_id,
    "spot-instance-request-id": spot_request_id,
    "status-code": spot_status,
    "state": lambda m: "active" if m.live else "closed",
    "launched-availability-zone": lambda m: m.pool.zone,
    "launch.instance-type": lambda m: m.pool.instance_type,
}


def describe_spot_instance_requests(cloud: Cloud, call: Call) -> Mapping[str, Value]:
    """DescribeSpotInstanceRequests: by ids, all or none, or the whole region in pages."""
    requests = [m for m in cloud.market.visible(PROVIDER, call.region) if spot_request_id(m)]
    ids = call.params.texts("SpotInstanceRequestId")
    if ids:
        by_id = {spot_request_id(machine): machine for machine in requests}
        missing = [wanted for wanted in ids if wanted not in by_id]
        if missing:
            raise Ec2Error(
                "InvalidSpotInstanceRequestID.NotFound",
                f"The spot instance request ID '{', '.join(missing)}' does not exist",
            )
        requests = [by_id[wanted] for wanted in ids]
    requests = matching(requests, call.params, _REQUEST_FILTERS)
    shown, token = page(requests, call.params, lambda machine: machine.serial, (5, 1000))
    return {"SpotInstanceRequests": [_request_view(cloud, machine) for machine in shown], "NextToken": token}


def describe_spot_price_history(cloud: Cloud, call: Call) -> Mapping[str, Value]:
    """DescribeSpotPriceHistory: newest first, the price in force at the start included; reaches 50 changes back."""
    params = call.params
    products = set(params.texts("ProductDescription")) | _filter_values(params, "product-description")
    if products and not products & _PRODUCTS:
        return {"SpotPriceHistory": [], "NextToken": None}
    end = min(_time(params, "EndTime") or cloud.market.now(), cloud.market.now())
    earliest = end - cloud.market.timings.price_step * _MOST_STEPS_BACK
    start = min(max(_time(params, "StartTime") or earliest, earliest), end)
    # Only the pools of this page are priced; within a pool newer prices have smaller keys, as they come first.
    first = max(0, page_start(params)) // _KEYS_OF_A_POOL
    pools = list(enumerate(_priced_pools(cloud, call)))[first:]
    rows = (
        (number * _KEYS_OF_A_POOL + _KEYS_OF_A_POOL - 1 - int(at.timestamp() * 1000), _row(cloud, key, at, price))
        for number, (key, shape) in pools
        for at, price in reversed(cloud.market.prices.history(key, shape, start, end))
    )
    shown, token = page(rows, params, lambda pair: pair[0], (1, 1000))
    return {"SpotPriceHistory": [row for _, row in shown], "NextToken": token}


def get_spot_placement_scores(cloud: Cloud, call: Call) -> Mapping[str, Value]:
    """GetSpotPlacementScores: 1 to 10 by the share of the capacity that is left; few types score low."""
    params = call.params
    types = params.texts("InstanceType")
    target = params.integer("TargetCapacity")
    if not types or len(types) > _MOST_SCORE_TYPES or target is None or target < 1:
        raise Ec2Error("InvalidParameterValue", "Name 1 to 1000 instance types and a target capacity above zero.")
    single_zone = params.flag("SingleAvailabilityZone")
    scores: list[dict[str, Value]] = []
    for region in params.texts("RegionName") or [call.region]:
        zones = cloud.moto.zones(region)
        shares = {zone: _share_left(cloud, region, zone, types, target) for zone in zones}
        if single_zone:
            scores += [
                {"Region": region, "AvailabilityZoneId": zones[zone], "Score": _score(share, types)}
                for zone, share in shares.items()
            ]
        else:
            scores.append({"Region": region, "Score": _score(max(shares.values(), default=0.0), types)})
    ranked = sorted(scores, key=lambda score: -int(str(score["Score"])))
    shown, token = page(list(zip(count(), ranked, strict=False)), params, lambda pair: pair[0], (10, 1000))
    return {"SpotPlacementScores": [score for _, score in shown], "NextToken": token}


def _request_view(cloud: Cloud, machine: Machine) -> Value:
    status = spot_status(machine)
    limit = machine.request.max_price_usd_hour
    on_demand = cloud.market.prices.row(machine.pool, machine.request.shape, machine.launched_at).on_demand
    return {
        "SpotInstanceRequestId": spot_request_id(machine),
        "InstanceId": machine.allocated_id,
        "State": "active" if machine.live else "closed",
        "Status": {"Code": status, "Message": _STATUS_WORDS[status], "UpdateTime": _status_time(machine)},
        "Type": "one-time",
        "InstanceInterruptionBehavior": "terminate",
        "CreateTime": machine.launched_at,
        "LaunchedAvailabilityZone": machine.pool.zone,
        "ProductDescription": _PRODUCT,
        "SpotPrice": str(limit if limit is not None else on_demand),
        "Tags": tag_views(machine),
    }


def _status_time(machine: Machine) -> datetime:
    if machine.live and machine.notice is not None:
        return machine.notice.noticed_at
    return machine.billing_ended_at or machine.launched_at


def _priced_pools(cloud: Cloud, call: Call) -> list[tuple[PoolKey, Shape]]:
    params = call.params
    zones = cloud.moto.zones(call.region)
    wanted_zones = {params.text("AvailabilityZone") or ""} - {""} | _filter_values(params, "availability-zone")
    wanted_ids = {params.text("AvailabilityZoneId") or ""} - {""} | _filter_values(params, "availability-zone-id")
    wanted_zones |= {name for name, zone_id in zones.items() if zone_id in wanted_ids}
    if wanted_ids and not wanted_zones:
        return []
    wanted_types = set(params.texts("InstanceType")) | _filter_values(params, "instance-type")
    offered = frozenset[str]().union(*offered_types(call.region).values())
    pools = []
    for instance_type in sorted(wanted_types or offered):
        shape = shape_of(instance_type)
        for zone in sorted(wanted_zones or zones):
            key = PoolKey(PROVIDER, call.region, zone, instance_type, Purchase.SPOT)
            if shape is not None and zone in zones and cloud.sells(key):
                pools.append((key, shape))
    return pools


def _row(cloud: Cloud, key: PoolKey, at: datetime, price: Decimal) -> Value:
    return {
        "AvailabilityZone": key.zone,
        "AvailabilityZoneId": cloud.moto.zones(key.region)[key.zone],
        "InstanceType": key.instance_type,
        "ProductDescription": _PRODUCT,
        "SpotPrice": f"{price:.6f}",
        "Timestamp": at,
    }


def _filter_values(params: Params, name: str) -> set[str]:
    return {value for given in params.structs("Filter") if given.text("Name") == name for value in given.texts("Value")}


def _time(params: Params, name: str) -> datetime | None:
    text = params.text(name)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Ec2Error("InvalidParameterValue", f"Value ({text}) for parameter {name} is not a time.") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _share_left(cloud: Cloud, region: str, zone: str, types: list[str], target: int) -> float:
    have = left = 0
    for instance_type in types:
        key = PoolKey(PROVIDER, region, zone, instance_type, Purchase.SPOT)
        shape = shape_of(instance_type)
        if shape is not None and cloud.sells(key):
            have += cloud.market.stock.capacity(key, shape)
            left += cloud.market.stock.left(key, shape)
    return min(left / have, left / target) if have else 0.0


def _score(share: float, types: list[str]) -> int:
    score = max(1, min(10, round(share * 10)))
    return min(score, _LOW_SCORE) if len(types) < _FEW_TYPES else score
