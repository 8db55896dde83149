"""Names of zones: price lists have ids (use1-az1), launches need the account's own names (us-east-1a)."""

import re
from datetime import timedelta

from spotferry.providers.aws.api import Calls
from spotferry.types.errors import TryNextZone

_ZONE_ID = re.compile(r"[a-z]+[0-9]+(-[a-z]+[0-9]+)?-az[0-9]+")
_UNKNOWN_FOR = timedelta(hours=24)


class ZoneNames:
    """Translates zone ids, which are the same for all accounts, to names, which are not; asks once a region."""

    def __init__(self) -> None:
        self._by_id: dict[str, dict[str, str]] = {}

    def name(self, calls: Calls, zone: str) -> str:
        """The account's name of the zone; a name stays as it is.

        Raises:
            TryNextZone: the account has no zone of this id.
            ProviderError: the question failed.
        """
        if not _ZONE_ID.fullmatch(zone):
            return zone
        if calls.region not in self._by_id:
            answer = calls.ec2("describe_availability_zones")
            zones = answer.get("AvailabilityZones", [])
            self._by_id[calls.region] = {z["ZoneId"]: z["ZoneName"] for z in zones}
        try:
            return self._by_id[calls.region][zone]
        except KeyError:
            raise TryNextZone(
                "InvalidAvailabilityZone",
                f"this account has no zone {zone} that is open to it",
                calls.region,
                scope="zone",
                ban_for=_UNKNOWN_FOR,
            ) from None
