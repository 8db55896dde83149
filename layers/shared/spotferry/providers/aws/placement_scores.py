"""How easily EC2 gives spot machines, as its placement scores tell it, read as how often it takes them back.

A score from 1 to 10 says how likely a request for spot machines is to succeed in a zone. AWS promises nothing about
interruptions by it: that pools with capacity to spare take less back is our assumption, and `FACTORS` is all of it. A
score is of a group of types together, and low for fewer than three: so families are asked for, and each type of a
family has the family's score. Few different questions may be asked in 24 hours, the same ones again and again: families
are chosen by a fixed order, so that every refresh asks what the one before did.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType

from spotferry.providers.aws.api import Calls
from spotferry.providers.aws.describe import answers
from spotferry.types.errors import ProviderError

SOURCE = "aws_placement_score"
FACTORS: Mapping[int, Decimal] = MappingProxyType(
    {
        10: Decimal("0.5"),
        9: Decimal("0.5"),
        8: Decimal(1),
        7: Decimal(1),
        6: Decimal("1.5"),
        5: Decimal("1.5"),
        4: Decimal(2),
        3: Decimal(2),
        2: Decimal(3),
        1: Decimal(3),
    }
)
"""Score -> factor on the rate of the type's class: an assumption.

The ten scores stand for the five steps in which the Spot Instance Advisor tells the share that is taken back, which go
from about a third of the usual share to about three times it; we trust the scores less, and reach a little less far.
"""

FAMILIES_A_REGION = 5
"""Questions for one region in a refresh."""
LIMIT_REACHED = "MaxConfigLimitExceeded"
_LEAST_TYPES = 3
_MOST_TYPES = 1000
_PAGE = 100
_WITH_GPU = re.compile(r"(g|p)[0-9]")

Pool = tuple[str, str]
"""A type and the id of a zone."""


def families(pools: Iterable[Pool]) -> list[list[str]]:
    """The types of each family to ask for: those with the most pools, of equals those with a GPU, then by name."""
    found: dict[str, list[str]] = {}
    for name, _ in sorted(pools):
        found.setdefault(name.partition(".")[0], []).append(name)
    known = {family: sorted(set(names)) for family, names in found.items()}
    usable = [family for family, names in known.items() if len(names) >= _LEAST_TYPES]
    usable.sort(key=lambda family: (-len(found[family]), not _WITH_GPU.match(family), family))
    return [known[family][:_MOST_TYPES] for family in usable[:FAMILIES_A_REGION]]


def factors(calls: Calls, pools: Iterable[Pool], unknown_score: Callable[[str], None]) -> dict[Pool, Decimal]:
    """The factor on its class's rate of each pool whose family was scored.

    Args:
        calls: to the region.
        pools: the region's own.
        unknown_score: told of each score that is none of `FACTORS`.

    Raises:
        ProviderError: a question failed. Where EC2 answers no more different ones today, what was answered counts.
    """
    known = set(pools)
    found: dict[Pool, Decimal] = {}
    for number, types in enumerate(families(known)):
        try:
            scores = dict(_scores(calls if number == 0 else calls.again(), types))
        except ProviderError as error:
            if error.code != LIMIT_REACHED or not found:
                raise
            break
        for zone, score in scores.items():
            if score not in FACTORS:
                unknown_score(f"{types[0].partition('.')[0]} in {zone}: score {score}")
                continue
            found |= {(name, zone): FACTORS[score] for name in types if (name, zone) in known}
    return found


def _scores(calls: Calls, types: list[str]) -> Iterator[tuple[str, int]]:
    """The score of one machine of any of these types in each zone that EC2 names, by the zone's id."""
    listing = answers(
        calls,
        "get_spot_placement_scores",
        InstanceTypes=types,
        TargetCapacity=1,
        SingleAvailabilityZone=True,
        RegionNames=[calls.region],
        MaxResults=_PAGE,
    )
    for row in (row for answer in listing for row in answer.get("SpotPlacementScores", [])):
        if row.get("Region", calls.region) == calls.region and row.get("AvailabilityZoneId"):
            yield str(row["AvailabilityZoneId"]), int(row.get("Score", 0))
