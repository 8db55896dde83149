"""Where a packed work directory goes."""

from dataclasses import dataclass
from datetime import timedelta

from spotferry.ports.cloud import Clock, ObjectStore
from spotferry.types.base import Json
from spotferry.types.errors import TooLarge
from spotferry.types.job import Upload
from spotferry.usecases.keys import upload_key

UPLOAD_LIMIT_BYTES = 5 * 1024**3
"""Largest object that S3 takes in one PUT (docs.aws.amazon.com, AmazonS3 user guide, upload-objects)."""

_EXPIRES = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class RequestUpload:
    """Hands out the address for a work directory, or says that it is there already.

    Attributes:
        objects: the bucket.
        clock: tells the time.
        kept_for: after how long work directories expire; None: never.
    """

    objects: ObjectStore
    clock: Clock
    kept_for: timedelta | None = None

    def __call__(self, upload: Upload) -> Json:
        """`exists`, and the `url` to PUT the bytes to where they are still missing; safe to repeat.

        Raises:
            TooLarge: the archive is over the limit.
        """
        if upload.size_bytes > UPLOAD_LIMIT_BYTES:
            raise TooLarge(
                f"the work directory packs to {upload.size_bytes:,} bytes, more than {UPLOAD_LIMIT_BYTES:,}: "
                "leave out what is large (.spotferryignore) and fetch it in setup"
            )
        key = upload_key(upload.sha256)
        if self.objects.head(key) == upload.size_bytes and self._stays(key):
            return {"exists": True}
        url, headers = self.objects.url_to_put(key, upload.size_bytes, upload.sha256, _EXPIRES)
        return {"exists": False, "url": url, "headers": dict(headers)}

    def _stays(self, key: str) -> bool:
        """The object will outlive the job: one that expires soon is sent again."""
        written = self.objects.written_at(key)
        return self.kept_for is None or (written is not None and self.clock() - written < self.kept_for / 2)
