"""What the reaper remembers, in DynamoDB: the register of regions, and notes that expire beside the bans."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pynamodb.exceptions import PutError

from spotferry.store.dynamo_attempts import DynamoAttempts
from spotferry.store.dynamo_jobs import REGISTER
from spotferry.store.failures import condition_failed, translating
from spotferry.store.keys import parse_region_key, parse_sortable, sightings_key, sortable


class DynamoSightings(DynamoAttempts):
    """The store with the reaper's notes; `dynamo.DynamoStore` is the whole of it."""

    def used_regions(self) -> Sequence[tuple[str, str]]:
        """All regions of the register, by one consistent read: a region stands there before its first launch."""
        register = self._instance(REGISTER)
        return sorted(parse_region_key(key) for key in register.regions or ()) if register is not None else []

    def sightings(self, provider: str, region: str, now: datetime) -> Mapping[str, datetime]:
        """When each machine was first seen without an owner, by one consistent query."""
        model = self._tables.bans
        with translating(f"read which machines of {provider} {region} had no owner"):
            items = model.query(
                sightings_key(provider, region), filter_condition=model.until > sortable(now), consistent_read=True
            )
            return {item.pool: parse_sortable(item.since) for item in items}

    def note_sighting(
        self, provider: str, region: str, allocated_id: str, seen: datetime, until: datetime, reason: str
    ) -> None:
        """Note a first sighting, by one conditional write."""
        model = self._tables.bans
        item = model(
            sightings_key(provider, region),
            allocated_id,
            since=sortable(seen),
            until=sortable(until),
            reason=reason,
            expires_at_epoch=int(until.timestamp()) + 1,
        )
        with translating(f"note that machine {allocated_id} of {provider} {region} has no owner"):
            try:
                item.save(condition=model.until.does_not_exist() | (model.until <= sortable(seen)))
            except PutError as error:
                if not condition_failed(error):
                    raise
