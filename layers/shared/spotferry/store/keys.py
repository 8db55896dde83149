"""Texts that keys and sort keys are made of, the same in every store."""

import hashlib
from datetime import UTC, datetime
from typing import get_args

from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.instance import Attempt, Market

SHARDS = tuple(str(number) for number in range(8))
"""Partitions of the index of unsettled jobs, so that no single one takes every write."""

MARKETS: tuple[str, ...] = get_args(Market)
"""Markets that a ban may name."""

KEY_SIZE_BYTES = 1024
"""Longest key that is looked up, the smallest of DynamoDB's own limits: a longer one names nothing."""


def shard_of(job_id: str) -> str:
    """The partition of the job in the index of unsettled jobs: the same in every process."""
    return SHARDS[hashlib.sha256(job_id.encode()).digest()[0] % len(SHARDS)]


def market_key(provider: str, market: str) -> str:
    """Key of a market's bans."""
    return f"{provider}#{market}"


def sightings_key(provider: str, region: str) -> str:
    """Key of the machines of a region that were seen without an owner; beside the bans, and no market's."""
    return f"ownerless#{provider}#{region}"


def check_market(market: str) -> None:
    """A ban in a market that nobody reads would ban nothing.

    Raises:
        InvalidInput: there is no such market.
    """
    if market not in MARKETS:
        raise InvalidInput([Problem("market", f"must be one of {', '.join(MARKETS)}, not {market}")])


def region_key(attempt: Attempt) -> str:
    """Key of the attempt's region in the index of the living."""
    return f"{attempt.provider}#{attempt.region}"


def parse_region_key(key: str) -> tuple[str, str]:
    """The cloud and the region that `region_key` wrote."""
    provider, _, region = key.partition("#")
    return provider, region


def allocated_key(provider: str, region: str, allocated_id: str) -> str:
    """Key of the item that leads from the cloud's id to ours."""
    return f"allocated#{provider}#{region}#{allocated_id}"


def is_key(text: str) -> bool:
    """The text can be the key of a record: a person may ask for anything, and what cannot be a key is not there."""
    return "#" not in text and fits(text)


def fits(text: str) -> bool:
    """The text can be a key at all."""
    return 0 < len(text.encode(errors="replace")) <= KEY_SIZE_BYTES and text.isprintable()


def sortable(time: datetime) -> str:
    """The time as text of fixed width in UTC, so that texts compare as the times do."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_sortable(text: str) -> datetime:
    """The time that `sortable` wrote.

    Raises:
        ValueError: the text is not one of ours.
    """
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
