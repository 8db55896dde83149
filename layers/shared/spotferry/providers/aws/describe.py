"""Looking machines up: in batches of the largest size, whole or not at all."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from spotferry.providers.asked import batches
from spotferry.providers.aws.api import Answer, Calls
from spotferry.providers.aws.states import STATE_REASONS, STATES
from spotferry.providers.ends import ended_by, reason_code
from spotferry.types.errors import ProviderError, ProviderUnavailable
from spotferry.types.instance import Attempt, Instance

# Any: a machine as the SDK gives it, a tree of plain values.
Seen = Mapping[str, Any]
_InstanceT = TypeVar("_InstanceT", bound=Instance)

IDS_A_CALL = 500
"""Ids in one call: more are accepted, but the answers grow slow."""
FILTER_VALUES = 200
"""Values that one filter takes."""
PAGE = 1000
_REPAIRS = 3
_ENDED_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
_ID = re.compile(r"i-[0-9A-Za-z]+")
NOT_FOUND = ("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed")
LIVING = ("pending", "running", "shutting-down", "stopping", "stopped")


def turns(calls: Calls) -> Iterator[Calls]:
    """The calls for each batch: those given for the first, with a deadline of its own for every other."""
    while True:
        yield calls
        calls = calls.again()


def by_id(calls: Calls, ids: Sequence[str]) -> dict[str, Seen]:
    """The machines of these ids that EC2 knows; one call for each `IDS_A_CALL`, and a few more when some are missing.

    Raises:
        ProviderError: a call failed; nothing is known then.
    """
    found: dict[str, Seen] = {}
    for batch, turn in zip(batches(sorted(set(ids)), IDS_A_CALL), turns(calls), strict=False):
        found.update({str(seen["InstanceId"]): seen for seen in _batch(turn, batch)})
    return found


def _batch(calls: Calls, ids: list[str]) -> Iterable[Seen]:
    """One id that EC2 does not know fails the whole call: those that its message names are left out of the next."""
    for _ in range(_REPAIRS):
        if not ids:
            return []
        try:
            return list(_pages(calls, InstanceIds=ids))
        except ProviderError as error:
            if error.code not in NOT_FOUND:
                raise
            named = set(_ID.findall(error.message))
            left = [i for i in ids if i not in named]
            if len(left) == len(ids):
                break
            ids = left
    return by_filter(calls, "instance-id", ids)


def by_filter(calls: Calls, name: str, values: Sequence[str]) -> list[Seen]:
    """The machines of which a property has one of the values; what is missing is just not there."""
    found: list[Seen] = []
    for batch, turn in zip(batches(values, FILTER_VALUES), turns(calls), strict=False):
        filters = [{"Name": name, "Values": batch}]
        found.extend(_pages(turn, Filters=filters, MaxResults=PAGE))
    return found


def living(calls: Calls, filters: Mapping[str, str]) -> Iterator[Seen]:
    """The machines not terminated whose properties have these values."""
    wanted = [{"Name": name, "Values": [value]} for name, value in filters.items()]
    wanted.append({"Name": "instance-state-name", "Values": list(LIVING)})
    return _pages(calls, Filters=wanted, MaxResults=PAGE)


def _pages(calls: Calls, **params: object) -> Iterator[Seen]:
    for answer in answers(calls, "describe_instances", **params):
        for reservation in answer.get("Reservations", []):
            yield from reservation.get("Instances", [])


def answers(calls: Calls, operation: str, **params: object) -> Iterator[Answer]:
    """All pages of a listing; EC2 may cut them shorter than was asked for, and empty ones are not the last.

    Raises:
        ProviderError: a page failed; what came before it is not the whole.
    """
    token = ""
    for turn in turns(calls):
        answer = turn.ec2(operation, **params, **({"NextToken": token} if token else {}))
        yield answer
        token = answer.get("NextToken") or ""
        if not token:
            return


def as_seen(instance: _InstanceT, seen: Seen) -> _InstanceT:
    """The instance with what EC2 shows of it; a state that EC2 does not document leaves the known one."""
    said = str(seen.get("State", {}).get("Name", ""))
    changes: dict[str, object] = {
        "allocated_id": seen["InstanceId"],
        "state": STATES.get(said, instance.state),
        "ip_address": seen.get("PublicIpAddress") or seen.get("PrivateIpAddress") or instance.ip_address,
        # The zone as the price list has it is what bans are compared with: it is only filled in where there is none.
        "availability_zone": instance.availability_zone or seen.get("Placement", {}).get("AvailabilityZone", ""),
    }
    if isinstance(instance, Attempt):
        reason = _reason(seen) or instance.cloud_reason
        changes["cloud_reason"] = reason
        changes["launched_at"] = seen.get("LaunchTime") or instance.launched_at
        changes["billed_until"] = _since(seen)
        changes["ended_by"] = ended_by(STATE_REASONS.get(reason_code(reason)))
    return instance.model_copy(update=changes)


def tags(seen: Seen) -> dict[str, str]:
    """The machine's tags."""
    return {tag["Key"]: tag.get("Value", "") for tag in seen.get("Tags", [])}


def _reason(seen: Seen) -> str:
    """Why the machine is in its state, as "code: words"; EC2's words often begin with the code."""
    said = seen.get("StateReason") or {}
    code, words = said.get("Code", ""), said.get("Message", "")
    return words if words.startswith(code) else f"{code}: {words}"


def _since(seen: Seen) -> datetime | None:
    """When the machine began to end, which is when EC2 stops billing it; None where it lives or EC2 does not say."""
    said = _ENDED_AT.search(seen.get("StateTransitionReason") or "")
    return datetime.strptime(said[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) if said else None


def launched(answer: Mapping[str, Any], region: str) -> Seen:
    """The one machine that a launch answered with.

    Raises:
        ProviderUnavailable: the answer has no machine, so it decides nothing.
    """
    machines = answer.get("Instances") or []
    if not machines or not machines[0].get("InstanceId"):
        raise ProviderUnavailable("MalformedAnswer", "RunInstances answered without a machine", region)
    machine: Seen = machines[0]
    return machine
