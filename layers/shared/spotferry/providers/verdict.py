"""What follows from a refusal: a line in each cloud's tables. No SDK."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from spotferry.types.errors import (
    BanScope,
    CapacityError,
    LaunchRefused,
    SkipProvider,
    TryAgainLater,
    TryNextRegion,
    UnknownLaunchError,
)


class Failed(Protocol):
    """A call that failed, in the cloud's own words."""

    @property
    def code(self) -> str:
        """The cloud's code."""
        ...

    @property
    def message(self) -> str:
        """The words with it."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The class of the error, which says what to try next; how far the refusal reaches; how long it stands."""

    error: type[CapacityError]
    scope: BanScope
    ban_for: timedelta

    def error_of(self, failure: Failed, region: str) -> CapacityError:
        """The error to raise, with the cloud's own code and words."""
        return self.error(failure.code, failure.message, region, scope=self.scope, ban_for=self.ban_for)


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


def image_refused(code: str, message: str, region: str, *, own: bool, reach: BanScope = "family") -> LaunchRefused:
    """The error for an image that cannot be booted.

    Args:
        code: the cloud's, or ours.
        message: what is wrong with it.
        region: of the launch.
        own: the job named it itself: that is the job's own trouble, and closes nothing to anybody else.
        reach: how far it reaches otherwise.
    """
    return LaunchRefused(code, message, region, scope="none" if own else reach)
