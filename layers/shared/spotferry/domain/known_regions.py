"""Regions that a job file names: each must be one that somebody has heard of."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from spotferry.domain.offer_index import OfferIndex
from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.job_file import UserInstanceSpecs

_MOST_NAMES = 8


def refuse_unknown_regions(
    index: OfferIndex, specs: UserInstanceSpecs, opened: Collection[tuple[str, str]] = ()
) -> None:
    """Refuse a name that no price list and no set-up knows: beside another that fits it would go by unnoticed.

    Args:
        index: today's offers; where it is empty nothing is refused.
        specs: what the job asks for.
        opened: (provider, region) of the regions that were set up, whose prices may not have been read yet.

    Raises:
        InvalidInput: names each such word with the nearest known.
    """
    known = {
        region
        for provider, table in index.zones.items()
        for region in table.by_region
        if not specs.providers or provider in specs.providers
    }
    known |= {region for provider, region in opened if not specs.providers or provider in specs.providers}
    if index.zones and (problems := list(_problems(specs, sorted(known)))):
        raise InvalidInput(problems)


def _problems(specs: UserInstanceSpecs, known: list[str]) -> Iterator[Problem]:
    many = len(specs.regions) > 1
    for number, region in enumerate(specs.regions):
        if region not in known:
            yield Problem(
                f"instance_specs.regions.{number}" if many else "instance_specs.regions", _words(region, known)
            )


def _words(region: str, known: list[str]) -> str:
    meant = next(iter(get_close_matches(region, known, n=1)), "")
    if meant:
        return f"{region!r} is not a region that prices are known of; did you mean {meant}?"
    more = len(known) - _MOST_NAMES
    names = ", ".join(known[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    return f"{region!r} is not a region that prices are known of; there are: {names}"
