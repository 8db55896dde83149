"""Why pools are left alone, in words that a person can act on."""

from collections.abc import Mapping, Sequence

Reasons = Mapping[tuple[str, str], Mapping[str, str]]
"""Why each pattern in force is, by (provider, market)."""

_MOST = 3
_REASON_CHARACTERS = 160
_EVERYWHERE = "*/*/*"


def words_of_bans(banned: int, reasons: Reasons) -> str:
    """What is left alone and why, the widest first, with a blank before it; "" where no reason is known.

    Args:
        banned: how many candidates were passed over for it.
        reasons: of what is in force for the clouds that were looked at.
    """
    grouped = _by_reason(reasons)
    if not grouped:
        return ""
    ranked = sorted(grouped, key=lambda key: (-max(pattern.count("*") for pattern in grouped[key]), key))
    told = [_told(provider, markets, grouped[provider, markets, why], why) for provider, markets, why in ranked[:_MOST]]
    more = len(ranked) - len(told)
    rest = f"; and for {more} more {'reason' if more == 1 else 'reasons'}" if more > 0 else ""
    return f" Left alone for now, {banned} {'candidate' if banned == 1 else 'candidates'}: {'; '.join(told)}{rest}."


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
    places = [_place(pattern) for pattern in sorted(patterns, key=lambda pattern: (-pattern.count("*"), pattern))]
    shown, more = ", ".join(places[:_MOST]), len(places) - _MOST
    where = f"{shown} and {more} more places" if more > 0 else shown
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
