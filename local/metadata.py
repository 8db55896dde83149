"""The metadata service of each cloud's machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from local import azure_metadata, imds
from local.gce_metadata import GceMetadata
from local.market_model import Machine
from local.no_metadata import NoMetadataService


class MetadataService(Protocol):
    """Serves one machine on a loopback port of its own until closed."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What points the machine's own software at it, by the vendor's own variable."""
        ...

    def close(self) -> None:
        """Stop serving."""
        ...


SERVICES: Mapping[str, Callable[[Machine], MetadataService]] = {
    "aws": imds.MetadataService,
    "gcp": GceMetadata,
    "azure": azure_metadata.MetadataService,
    "paperspace": NoMetadataService,
}
"""By the cloud's name; each starts serving when it is made."""
