"""The metadata service of a cloud that has none."""

from __future__ import annotations

from collections.abc import Mapping

from local.market_model import Machine


class NoMetadataService:
    """Nothing is served: machines of such a cloud know nothing of themselves, and hear of nothing."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing to point at."""
        return {}

    def close(self) -> None:
        """There is nothing to close."""
