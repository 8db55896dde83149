"""Why pools are left alone, in words that a person can act on."""

from collections.abc import Mapping

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
    known: dict[tuple[str, str, str], list[str]] = {}
    for (provider, market), patterns in sorted(reasons.items()):
        for pattern, reason in sorted(patterns.items()):
            known.setdefault((provider, pattern, reason), []).append(market.replace("_", "-"))
    if not known:
        return ""
    ranked = sorted(known.items(), key=lambda item: (-item[0][1].count("*"), item[0]))
    told = [_told(provider, pattern, markets, reason) for (provider, pattern, reason), markets in ranked[:_MOST]]
    more = len(ranked) - len(told)
    rest = f", and {more} more" if more > 0 else ""
    return f" Left alone for now, {banned} candidates: {'; '.join(told)}{rest}."


def _told(provider: str, pattern: str, markets: list[str], reason: str) -> str:
    where = "everywhere" if pattern == _EVERYWHERE else _place(pattern)
    text = reason.rstrip(".")
    clipped = text if len(text) <= _REASON_CHARACTERS else f"{text[: _REASON_CHARACTERS - 3]}..."
    return f"{provider} {where} ({' and '.join(markets)}) because {clipped}"


def _place(pattern: str) -> str:
    """A pattern over "region/zone/type" as a place: the parts that say something."""
    parts = pattern.split("/")
    said = [part for part in parts if part not in {"", "*"}]
    region, zone = parts[0], parts[1] if len(parts) > 1 else ""
    return " ".join(said[1:] if zone not in {"", "*"} and zone.startswith(region) else said) or pattern
