"""A bucket for agents' archives in memory: uploads in chunks that only a commit completes."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]  # Any: JSON bodies


class RefusedError(Exception):
    """A commit that does not fit what came."""


def etag(content: bytes) -> str:
    """What the bucket calls a chunk."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


@dataclass
class Bucket:
    """Objects by name, uploads by id.

    Attributes:
        chunk_bytes: how long a chunk is.
        at_a_time: how many addresses are handed out.
        generation: addresses of another one have expired.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    chunk_bytes: int = 64 * 1024
    at_a_time: int = 3
    generation: int = 0
    received_bytes: int = 0

    def begin(self, url: str, names: list[str]) -> Json:
        """A place for each part."""
        parts = []
        for name in names:
            upload_id = f"u{len(self.uploads)}"
            self.uploads[upload_id] = {}
            ladder = [{"count": 5, "bytes": self.chunk_bytes}, {"count": 9995, "bytes": 2 * self.chunk_bytes}]
            parts.append({"name": name, "upload_id": upload_id, "chunks": ladder, **self.addresses(url, upload_id, 0)})
        return {"protocol": 1, "nonce": parts[0]["upload_id"], "parts": parts, "expires_seconds": 3600}

    def addresses(self, url: str, upload_id: str, first: int) -> Json:
        """Where the next chunks go."""
        numbers = range(first, first + self.at_a_time)
        urls = [f"{url}/upload/{self.generation}/{upload_id}/{number}" for number in numbers]
        return {"first_chunk": first, "urls": urls, "expires_seconds": 3600}

    def take(self, path: str, content: bytes) -> str | None:
        """A chunk at the path of an address; its ETag, None where the address has expired."""
        _, _, generation, upload_id, number = path.split("/")
        if int(generation) != self.generation:
            return None
        self.uploads[upload_id][int(number)] = content
        self.received_bytes += len(content)
        return etag(content)

    def complete(self, part: Json) -> bytes:
        """The object that the chunks of a part make.

        Raises:
            RefusedError: they are not what the commit says.
        """
        chunks = self.uploads[part["upload_id"]]
        content = b"".join(chunks[number] for number in sorted(chunks))
        if [etag(chunks[number]) for number in sorted(chunks)] != part["etags"]:
            raise RefusedError("etags")
        if (len(content), hashlib.sha256(content).hexdigest()) != (part["size_bytes"], part["sha256"]):
            raise RefusedError("size or digest")
        return content
