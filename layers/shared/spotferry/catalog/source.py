"""Where the broker's catalogue comes from: a file, or the object in the bucket that a pointer names."""

import hashlib
import json
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, Self

from pydantic import Field, ValidationError

from spotferry.catalog.catalogue_file import Contents, contents_of, describe, write_catalogue
from spotferry.catalog.starter import starter_offers
from spotferry.domain.interruption_rates import told_by
from spotferry.domain.placement import OfferIndex
from spotferry.ports.cloud import Clock, ObjectStore
from spotferry.ports.prices import CatalogueInfo
from spotferry.types.base import RECORD_VERSION, Sha256, Value
from spotferry.types.errors import InvalidInput, NotFound, wrong
from spotferry.types.faults import sentence_of
from spotferry.types.instance import Offer

POINTER_KEY = "catalog/current.json"
LOOK_AGAIN_AFTER = timedelta(seconds=60)

_LOGGER = logging.getLogger(__name__)


class Pointer(Value):
    """Which catalogue is in force: the object's key, and the digest of its bytes in hex."""

    version: int = Field(default=RECORD_VERSION, ge=RECORD_VERSION, le=RECORD_VERSION)
    key: str
    sha256: Sha256


class Origin(Protocol):
    """A place that a catalogue is read from."""

    def mark(self) -> str | None:
        """What changes when the catalogue does; cheap to ask. None: there is none."""
        ...

    def read(self, mark: str) -> Contents:
        """The catalogue with this mark.

        Raises:
            InvalidInput: it is corrupt.
            NotFound: it is not there.
        """
        ...


class LocalFile:
    """A catalogue in a local file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> str | None:
        """The file's size and time of change."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return f"{status.st_mtime_ns}:{status.st_size}"

    def read(self, mark: str) -> Contents:  # noqa: ARG002 (a file holds the current one only)
        """What is in the file."""
        return contents_of(self._path.read_bytes(), str(self._path))


class BucketObject:
    """The catalogue that the bucket's pointer names: immutable, under its digest."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def mark(self) -> str | None:
        """The pointer's text."""
        try:
            return self._objects.get(POINTER_KEY).decode(errors="replace")
        except NotFound:
            return None

    def read(self, mark: str) -> Contents:
        """The object that the pointer names, once its bytes are proven to be the ones it means."""
        data, key = self.content(mark)
        return contents_of(data, key)

    def content(self, mark: str) -> tuple[bytes, str]:
        """The object's bytes, proven to be the ones that the pointer means, and its key.

        Raises:
            InvalidInput: pointer or object are damaged.
            NotFound: the object is not there.
        """
        try:
            pointer = Pointer.model_validate_json(mark)
        except ValidationError as error:
            raise wrong(POINTER_KEY, f"is not a pointer to a catalogue: {sentence_of(error)}") from error
        data = self._objects.get(pointer.key)
        if hashlib.sha256(data).hexdigest() != pointer.sha256:
            raise wrong(pointer.key, "does not have the digest that the pointer names")
        return data, pointer.key

    def current(self) -> tuple[bytes, CatalogueInfo] | None:
        """The catalogue in force and what it says of itself; None when there is none that can be used.

        One that is damaged or of another version counts as none, and is said in the log: so a refresh heals it.
        """
        mark = self.mark()
        if mark is None:
            return None
        try:
            data, key = self.content(mark)
            return data, describe(data, key)
        except (InvalidInput, NotFound) as error:
            _LOGGER.warning("The catalogue in the bucket cannot be used: %s", error)
            return None


class CatalogueFile:
    """Today's offers: read once, looked at again every minute.

    A catalogue that is missing or corrupt leaves the one before in force, and is said in the log; before the first one
    the starter offers are.
    """

    def __init__(self, origin: Origin, clock: Clock) -> None:
        self._origin = origin
        self._clock = clock
        self._looked_at: datetime | None = None
        self._mark: str | None = None
        self._index: OfferIndex | None = None

    @classmethod
    def at(cls, path: Path, clock: Clock) -> Self:
        """The catalogue in a local file."""
        return cls(LocalFile(path), clock)

    @classmethod
    def in_bucket(cls, objects: ObjectStore, clock: Clock) -> Self:
        """The catalogue that the bucket's pointer names."""
        return cls(BucketObject(objects), clock)

    def offers(self) -> OfferIndex:
        """All offers, indexed for placement."""
        now = self._clock()
        if self._looked_at is None or now - self._looked_at >= LOOK_AGAIN_AFTER:
            self._looked_at = now
            self._refresh()
        if self._index is None:
            self._index = OfferIndex(starter_offers())
        return self._index

    def _refresh(self) -> None:
        mark = self._origin.mark()
        if mark is None or mark == self._mark:
            return
        try:
            offers, rates = self._origin.read(mark)
            self._index = OfferIndex(offers, told=told_by(rates))
        except (InvalidInput, NotFound) as error:
            _LOGGER.warning("The new catalogue cannot be used, the one before stays in force: %s", error)
        else:
            self._mark = mark


def publish(objects: ObjectStore, offers: Iterable[Offer], built_at: datetime) -> Pointer:
    """Put a catalogue of these offers into force: its object first, the pointer last.

    A repeat with the same offers and time changes nothing.
    """
    with TemporaryDirectory() as directory:
        path = Path(directory, "catalogue.db")
        write_catalogue(path, offers, built_at)
        return publish_file(objects, path.read_bytes())


def publish_file(objects: ObjectStore, data: bytes) -> Pointer:
    """Put a catalogue file into force: its object first, the pointer last."""
    digest = hashlib.sha256(data).hexdigest()
    pointer = Pointer(key=f"catalog/{digest}.db", sha256=digest)
    objects.put(pointer.key, data, "application/vnd.sqlite3")
    objects.put(POINTER_KEY, json.dumps(pointer.model_dump()).encode(), "application/json")
    return pointer
