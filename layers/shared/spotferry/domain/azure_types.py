"""The names of Azure's machine types, in their parts."""

import re
from typing import NamedTuple

_NAME = re.compile(r"(standard_[a-z]+)(\d+)(?:-\d+)?([a-z]*)((?:[_-].+)?)", re.IGNORECASE)


class AzureType(NamedTuple):
    """What a name says, as Standard_E8-4ads_v5 of eight vCPUs, of which four may be used.

    Attributes:
        series: what the name begins with, Standard_E.
        size: the number, which is that of the vCPUs (used or not) on all but the oldest types.
        features: the letters behind the size, ads.
        version: all that follows, _v5. An accelerator is named there, as in _A100_v4; some sizes of M say there how
            many vCPUs may be used, as in -24_2_v3, so that their family is their own.
    """

    series: str
    size: int
    features: str
    version: str

    @property
    def family(self) -> str:
        """The pattern of the types that differ from this one by their size alone, as Standard_E*ads_v5."""
        return f"{self.series}*{self.features}{self.version}"


def azure_type(name: str) -> AzureType | None:
    """The parts of a name, which may be in small letters; None when it is of no known form."""
    found = _NAME.fullmatch(name)
    return AzureType(found[1], int(found[2]), found[3], found[4]) if found else None
