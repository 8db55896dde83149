"""The bucket's catalogue and the next one: `ports.prices.Catalogues`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from spotferry.catalog.builder import CatalogueBuilder
from spotferry.catalog.catalogue_file import describe, write_catalogue
from spotferry.catalog.source import BucketObject, publish_file
from spotferry.catalog.starter import READ_AT, starter_offers
from spotferry.ports.cloud import ObjectStore
from spotferry.ports.prices import CatalogueInfo
from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate


class Draft:
    """A catalogue in the making, over the one in force."""

    def __init__(self, objects: ObjectStore, builder: CatalogueBuilder, previous: CatalogueInfo, path: Path) -> None:
        self._objects = objects
        self._builder = builder
        self._previous = previous
        self._path = path

    def previous(self) -> CatalogueInfo:
        """The catalogue in force."""
        return self._previous

    def take(self, provider: str, region: str, offers: Iterable[Offer], tried_at: datetime) -> None:
        """Put in what a region offers now."""
        self._builder.add(offers)
        self._builder.tried(provider, region, tried_at)

    def keep(self, provider: str, region: str, tried_at: datetime, problem: str) -> None:
        """Put in the region's offers of the catalogue in force."""
        self._builder.copy(provider, region)
        self._builder.tried(provider, region, tried_at, problem)

    def take_rates(self, rates: Iterable[PoolRate]) -> None:
        """Put in what a cloud tells of interruptions now."""
        self._builder.add_rates(rates)

    def keep_rates(self, provider: str, region: str) -> None:
        """Put in the region's rates of the catalogue in force."""
        self._builder.copy_rates(provider, region)

    def publish(self, built_at: datetime) -> CatalogueInfo:
        """Write the file and put it into force."""
        self._builder.write(self._path, built_at)
        data = self._path.read_bytes()
        pointer = publish_file(self._objects, data)
        return describe(data, pointer.key)


class BucketCatalogues:
    """Catalogues in the bucket; before the first one the starter offers are in force."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._known: tuple[str | None, CatalogueInfo] | None = None

    def info(self) -> CatalogueInfo:
        """What the catalogue in force says of itself; the file is read again only when the pointer changed."""
        mark = BucketObject(self._objects).mark()
        if self._known is None or self._known[0] != mark:
            with TemporaryDirectory() as folder:
                self._known = mark, self._fetch(Path(folder, "previous.db"))
        return self._known[1]

    @contextmanager
    def draft(self) -> Iterator[Draft]:
        """A catalogue to be made, in a folder of its own."""
        with TemporaryDirectory(prefix="prices-") as folder:
            previous, work = Path(folder, "previous.db"), Path(folder, "work")
            work.mkdir()
            info = self._fetch(previous)
            with CatalogueBuilder(work, previous) as builder:
                yield Draft(self._objects, builder, info, Path(folder, "next.db"))

    def _fetch(self, path: Path) -> CatalogueInfo:
        current = BucketObject(self._objects).current()
        if current is None:
            return self._starter(path)
        path.write_bytes(current[0])
        return current[1]

    @staticmethod
    def _starter(path: Path) -> CatalogueInfo:
        write_catalogue(path, starter_offers(), READ_AT)
        return describe(path.read_bytes(), path.name)
