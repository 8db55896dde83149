"""Why pools are left alone, in words that a person can act on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spotferry.domain.offer_words import part_matches

Reasons = Mapping[tuple[str, str], Mapping[str, str]]
"""Why each pattern in force is, by (provider, market)."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A candidate that is left alone.

    Attributes:
        provider, market: where it is sold.
        parts: its region, zone and type.
    """

    provider: str
    market: str
    parts: tuple[str, str, str]


_MOST = 3
_REASON_CHARACTERS = 160
_EVERYWHERE = "*/*/*"


def words_of_bans(pools: Iterable[Pool], reasons: Reasons) -> str:
    """What is left alone and why, the widest first, with a blank before it; "" where no reason is known.

    Each candidate is told under the widest pattern that covers it, so no more places are named than candidates counted.

    Args:
        pools: the candidates that were passed over.
        reasons: of what is in force for the clouds that were looked at.
    """
    covering = [(pool.provider, pool.market, pattern) for pool in pools if (pattern := _widest(pool, reasons))]
    if not covering:
        return ""
    banned, told_of = len(covering), frozenset(covering)
    grouped = _by_reason(
        {key: {p: why for p, why in patterns.items() if (*key, p) in told_of} for key, patterns in reasons.items()}
    )
    ranked = sorted(grouped, key=lambda key: (-max(pattern.count("*") for pattern in grouped[key]), key))
    told = [_told(provider, markets, grouped[provider, markets, why], why) for provider, markets, why in ranked[:_MOST]]
    more = len(ranked) - len(told)
    rest = f"; and for {more} more {'reason' if more == 1 else 'reasons'}" if more > 0 else ""
    return f" Left alone for now, {banned} {'candidate' if banned == 1 else 'candidates'}: {'; '.join(told)}{rest}."


def _widest(pool: Pool, reasons: Reasons) -> str:
    """The widest pattern that covers the candidate; "" for none."""
    patterns = reasons.get((pool.provider, pool.market), {})
    covering = [pattern for pattern in patterns if _covers(pattern, pool)]
    return min(covering, key=_width, default="")


def _covers(pattern: str, pool: Pool) -> bool:
    parts = pattern.split("/")
    return len(parts) == len(pool.parts) and all(map(part_matches, parts, pool.parts))


def _width(pattern: str) -> tuple[int, str]:
    """Sorts the widest first."""
    return -pattern.count("*"), pattern


def _by_reason(reasons: Reasons) -> Mapping[tuple[str, tuple[str, ...], str], Sequence[str]]:
    """The patterns by (provider, markets, reason)."""
    markets: dict[tuple[str, str, str], list[str]] = {}
    for (provider, market), patterns in sorted(reasons.items()):
        for pattern, why in sorted(patterns.items()):
            markets.setdefault((provider, why, pattern), []).append(market.replace("_", "-"))
    grouped: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for (provider, why, pattern), sold in markets.items():
        grouped.setdefault((provider, tuple(sold), why), []).append(pattern)
    return grouped


def _told(provider: str, markets: Sequence[str], patterns: Sequence[str], why: str) -> str:
    places = [_place(pattern) for pattern in sorted(patterns, key=_width)]
    shown, more = ", ".join(places[:_MOST]), len(places) - _MOST
    where = f"{shown} and {more} more {'place' if more == 1 else 'places'}" if more > 0 else shown
    text = why.rstrip(".")
    clipped = text if len(text) <= _REASON_CHARACTERS else f"{text[: _REASON_CHARACTERS - 3]}..."
    return f"{provider} {where} ({' and '.join(markets)}) because {clipped}"


def _place(pattern: str) -> str:
    """A pattern over "region/zone/type" as a place: the parts that say something."""
    if pattern == _EVERYWHERE:
        return "everywhere"
    region, _, rest = pattern.partition("/")
    zone, _, kind = rest.partition("/")
    # A zone that is named for its region says both.
    parts = [zone, kind] if zone.startswith(region) and zone != "*" else [region, zone, kind]
    return " ".join(part for part in parts if part not in {"", "*"}) or pattern
