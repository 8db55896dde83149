"""What follows from a refusal: a line in each cloud's tables. No SDK."""

from dataclasses import dataclass
from datetime import timedelta

from spotferry.types.errors import (
    BanScope,
    CapacityError,
    LaunchRefused,
    SkipProvider,
    TryAgainLater,
    TryNextRegion,
    UnknownLaunchError,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The class of the error, which says what to try next; how far the refusal reaches; how long it stands."""

    error: type[CapacityError]
    scope: BanScope
    ban_for: timedelta

    def error_of(self, code: str, message: str, region: str) -> CapacityError:
        """The error to raise, with the cloud's own code and words."""
        return self.error(code, message, region, scope=self.scope, ban_for=self.ban_for)


WAIT = Verdict(TryAgainLater, "none", timedelta())
"""No verdict at all: the same request may succeed."""
DENIED = Verdict(SkipProvider, "provider", timedelta(minutes=15))
REGION_CLOSED = Verdict(TryNextRegion, "region", timedelta(hours=1))
"""Denied to us in this region alone."""
REGION_WRONG = Verdict(LaunchRefused, "region", timedelta(hours=1))
"""Wrong with what every launch in the region asks for."""
REQUEST_WRONG = Verdict(LaunchRefused, "none", timedelta())
"""Wrong with this one request: nobody else's launches suffer from it."""
UNKNOWN = Verdict(UnknownLaunchError, UnknownLaunchError.default_scope, UnknownLaunchError.default_ban)
"""For a code that no table knows."""
