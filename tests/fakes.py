"""The world around a use case, steered by hand: clock, queue, bucket, clouds, catalogue, regions, secrets."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from spotferry.domain.placement import OfferIndex
from spotferry.domain.view import Effect
from spotferry.ports.cloud import RegionSettings
from spotferry.types import (
    InvalidInput,
    Misconfigured,
    NotFound,
    Offer,
    Problem,
    SpotferryError,
)
from tests.builders import NOW


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The time it was moved to."""
        return self.now

    def move(self, **by: float) -> datetime:
        """Go on by a timedelta's keywords."""
        self.now += timedelta(**by)
        return self.now


class QueueAwayError(SpotferryError):
    """What the fake queue says while it is away."""


class FakeQueue:
    """Keeps what was sent, in order.

    Attributes:
        waiting: what nobody has performed yet.
        sent: all that ever was.
    """

    def __init__(self) -> None:
        self.waiting: list[Effect] = []
        self.sent: list[Effect] = []
        self._failures = 0

    def fail(self, times: int = 1) -> None:
        """The next sends that carry something are lost with an error."""
        self._failures = times

    def send(self, effects: Sequence[Effect], now: datetime) -> None:
        """Keep them."""
        assert now.tzinfo is not None
        if effects and self._failures:
            self._failures -= 1
            raise QueueAwayError("the queue is away")
        self.waiting.extend(effects)
        self.sent.extend(effects)

    def take(self) -> list[Effect]:
        """All that waits; it waits no more."""
        taken, self.waiting = self.waiting, []
        return taken


class FakeObjects:
    """A bucket in memory; addresses are `memory:<verb>:<key>`, an ETag is the digest of its chunk."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.puts: list[str] = []
        self.written: dict[str, datetime] = {}
        self._begun = 0

    def head(self, key: str) -> int | None:
        """The object's size."""
        return len(self.stored[key]) if key in self.stored else None

    def get(self, key: str) -> bytes:
        """The object."""
        if key not in self.stored:
            raise NotFound(f"there is no object {key}")
        return self.stored[key]

    def put(self, key: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """Write the object."""
        assert "/" in content_type
        self.puts.append(key)
        self.stored[key] = body

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[tuple[str, int]]:
        """Keys in order."""
        found = sorted(key for key in self.stored if key.startswith(prefix) and key > after)
        return [(key, len(self.stored[key])) for key in found[:limit]]

    def url_to_get(self, key: str, expires: timedelta) -> str:
        """An address to read from."""
        return f"memory:get:{key}?{expires.total_seconds():.0f}"

    def written_at(self, key: str) -> datetime | None:
        """When it was written, as set in `written`; when the clocks began unless said."""
        return self.written.get(key, NOW) if key in self.stored else None

    def url_to_put(self, key: str, size_bytes: int, sha256: str, expires: timedelta) -> tuple[str, dict[str, str]]:
        """An address to write to, and the header that binds it to the bytes."""
        return f"memory:put:{key}:{size_bytes}?{expires.total_seconds():.0f}", {"x-digest": sha256}

    def begin_multipart(self, key: str) -> str:
        """A new upload."""
        self._begun += 1
        upload_id = f"u{self._begun}"
        self.uploads[upload_id] = (key, {})
        return upload_id

    def urls_to_put_chunks(
        self, key: str, upload_id: str, count: int, expires: timedelta, first: int = 1
    ) -> Sequence[str]:
        """An address for each chunk."""
        numbers = range(first, first + count)
        return [f"memory:chunk:{upload_id}:{n}:{key}?{expires.total_seconds():.0f}" for n in numbers]

    def put_chunk(self, url: str, body: bytes) -> str:
        """What an agent does with such an address; the ETag."""
        upload_id, number = url.split(":")[2:4]
        self.uploads[upload_id][1][int(number)] = body
        return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'

    def complete_multipart(self, key: str, upload_id: str, etags: Sequence[str]) -> None:
        """Make the object of its chunks; a repeat succeeds."""
        if upload_id not in self.uploads:
            if key in self.stored:
                return
            raise InvalidInput([Problem("parts", f"{key} cannot be made of what was sent: NoSuchUpload")])
        expected, chunks = self.uploads[upload_id]
        bodies = [chunks[number] for number in sorted(chunks)]
        sent = [f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"' for body in bodies]
        if expected != key or sent != list(etags):
            raise InvalidInput([Problem("parts", f"{key} cannot be made of what was sent: InvalidPart")])
        self.stored[key] = b"".join(bodies)
        del self.uploads[upload_id]

    def abort_multipart(self, key: str, upload_id: str) -> None:
        """Give it up."""
        assert key
        self.uploads.pop(upload_id, None)

    def open_uploads(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Those that are neither completed nor given up."""
        return [(key, upload_id) for upload_id, (key, _) in self.uploads.items() if key.startswith(prefix)]

    def delete(self, keys: Sequence[str]) -> None:
        """Take them out."""
        for key in keys:
            self.stored.pop(key, None)


class FakeProbe:
    """The web, where only what is named in `missing` is missing, with the reason; what was asked is kept."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        self.asked: list[str] = []

    def why_missing(self, url: str) -> str:
        """Why nobody can fetch it."""
        self.asked.append(url)
        return self.missing.get(url, "")


class FakeRegions:
    """Launch regions: of aws the two of the offers, unless told otherwise."""

    def __init__(self, *regions: tuple[str, str]) -> None:
        wanted = regions or (("aws", "us-east-1"), ("aws", "eu-west-1"))
        self.settings = [RegionSettings(provider=provider, region=region) for provider, region in wanted]

    def regions(self) -> Sequence[RegionSettings]:
        """All of them."""
        return self.settings


def an_offer(instance_type: str, zone: str, spot: str | None, memory_gib: float = 4, vcpus: float = 2) -> Offer:
    """An offer of aws; the region is the zone's."""
    return Offer(
        provider="aws",
        region=zone[:-1],
        zone=zone,
        instance_type=instance_type,
        vcpus=vcpus,
        memory_gib=memory_gib,
        spot_usd_hour=Decimal(spot) if spot else None,
        on_demand_usd_hour=Decimal("0.5"),
        disk_usd_gib_month=Decimal("0.08"),
        read_at=NOW,
    )


OFFERS = (
    an_offer("t3.small", "us-east-1a", "0.010"),
    an_offer("t3.small", "us-east-1b", "0.011"),
    an_offer("m5.large", "us-east-1a", "0.020", 8),
    an_offer("m5.large", "eu-west-1a", "0.025", 8),
    an_offer("m5.xlarge", "eu-west-1a", "0.050", 16, 4),
)


class FakeCatalogue:
    """A handful of offers, cheapest first."""

    def __init__(self, offers: Iterable[Offer] = OFFERS) -> None:
        self.index = OfferIndex(tuple(offers))

    def offers(self) -> OfferIndex:
        """All of them, indexed."""
        return self.index


class FakeSecrets:
    """Secrets by name."""

    def __init__(self, **values: str) -> None:
        self.values = dict(values)
        self.asked: list[str] = []

    def resolve(self, names: Iterable[str]) -> Mapping[str, str]:
        """The values."""
        self.asked.extend(wanted := list(names))
        if missing := [name for name in wanted if name not in self.values]:
            raise Misconfigured(f"there is no secret {', '.join(missing)}: put it at /spotferry/test/secrets/<name>")
        return {name: self.values[name] for name in wanted}


class FakeDefaults:
    """The deployment's own lines, none unless they are set; broken when `fault` says how."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}
        self.fault = ""

    def commands(self) -> Mapping[str, Sequence[str]]:
        """The lines."""
        if self.fault:
            raise Misconfigured(self.fault)
        return self.lines
