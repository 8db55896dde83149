"""The store in DynamoDB."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import product

from pynamodb.exceptions import PutError

from spotferry.store.dynamo_sightings import DynamoSightings
from spotferry.store.failures import condition_failed, translating
from spotferry.store.keys import MARKETS, check_market, market_key, sortable


class DynamoStore(DynamoSightings):
    """Job store, ban store and the reaper's notes in one, over PynamoDB; safe to share between threads.

    Errors of the service become `NotYet` (busy or away: ask again), `TooLarge` (a record over the limit of an item) or
    `Misconfigured` (a table is missing, a permission is).

    Args:
        tables: the tables' names.
        policy: what the views it loads carry.
        host: the service's address; None: as the environment says, else AWS itself.
        region: where the tables are.
        pause: waits for so many seconds, between tries that met another writer.
    """

    def ban(self, provider: str, market: str, pool: str, until: datetime, reason: str) -> None:
        """Set a pool aside until then; the reason is for people who look at the table."""
        check_market(market)
        bans, text = self._tables.bans, sortable(until)
        item = bans(
            market_key(provider, market),
            pool,
            until=text,
            reason=reason,
            expires_at_epoch=int(until.timestamp()) + 1,
        )
        with translating(f"set {pool} of {provider} aside"):
            try:
                item.save(condition=bans.until.does_not_exist() | (bans.until < text))
            except PutError as error:
                if not condition_failed(error):
                    raise

    def bans(self, providers: Sequence[str], now: datetime) -> Mapping[tuple[str, str], Sequence[str]]:
        """The patterns in force by (provider, market), by one consistent query each."""
        return {key: list(reasons) for key, reasons in self.ban_reasons(providers, now).items()}

    def ban_reasons(self, providers: Sequence[str], now: datetime) -> Mapping[tuple[str, str], Mapping[str, str]]:
        """The same, each with its reason."""
        in_force: dict[tuple[str, str], Mapping[str, str]] = {}
        model, text = self._tables.bans, sortable(now)
        for provider, market in product(providers, MARKETS):
            with translating(f"read what of {provider} is set aside"):
                key = market_key(provider, market)
                items = model.query(key, filter_condition=model.until > text, consistent_read=True)
                reasons = {item.pool: item.reason for item in items}
            if reasons:
                in_force[provider, market] = reasons
        return in_force
