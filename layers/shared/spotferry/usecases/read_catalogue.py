"""The catalogue in force as people see it, and orders for a newer one."""

from dataclasses import dataclass
from typing import Any

from spotferry.ports.cloud import Clock
from spotferry.ports.prices import Catalogues, RefreshTrigger

Json = dict[str, Any]  # Any: JSON of the API


@dataclass(frozen=True, slots=True)
class ReadCatalogue:
    """Says what the catalogue holds and how old it is."""

    catalogues: Catalogues
    trigger: RefreshTrigger
    clock: Clock

    def __call__(self) -> Json:
        """Offers of each region, the age of their prices, and what came in the way of newer ones."""
        return self.catalogues.info().to_json()

    def refresh(self, asked_by: str) -> Json:
        """Have prices read anew; returns before they are.

        Returns:
            `asked_at`: the order is done when the catalogue's `built_at` is not before it.
        """
        asked_at = self.clock()
        self.trigger(asked_at, asked_by)
        return {"asked_at": asked_at.isoformat()}
