"""The object store in S3."""

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from botocore.exceptions import ClientError

from spotferry.runtime.aws_clients import Client
from spotferry.types.errors import InvalidInput, NotFound, Problem

_MISSING = frozenset({"404", "NoSuchKey", "NotFound", "NoSuchUpload"})
_DELETED_AT_A_TIME = 1000
_BROKEN_UPLOAD = frozenset({"InvalidPart", "InvalidPartOrder", "EntityTooSmall", "NoSuchUpload", "MalformedXML"})


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


class Bucket:
    """One bucket.

    Args:
        name: of the bucket.
        client: makes the S3 client, on first use.
    """

    def __init__(self, name: str, client: Callable[[], Client]) -> None:
        self._name = name
        self._client = client

    def head(self, key: str) -> int | None:
        """Size of the object in bytes; None when there is none."""
        try:
            return int(self._client().head_object(Bucket=self._name, Key=key)["ContentLength"])
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            raise

    def get(self, key: str) -> bytes:
        """The object.

        Raises:
            NotFound: there is none.
        """
        try:
            return bytes(self._client().get_object(Bucket=self._name, Key=key)["Body"].read())
        except ClientError as error:
            if _code(error) in _MISSING:
                raise NotFound(f"there is no object {key}") from error
            raise

    def put(self, key: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """Write the object whole."""
        self._client().put_object(Bucket=self._name, Key=key, Body=body, ContentType=content_type)

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[tuple[str, int]]:
        """Keys below the prefix and the objects' sizes, in order, beginning after the key `after`."""
        listed = self._client().list_objects_v2(Bucket=self._name, Prefix=prefix, StartAfter=after, MaxKeys=limit)
        return [(str(item["Key"]), int(item["Size"])) for item in listed.get("Contents", ())]

    def url_to_get(self, key: str, expires: timedelta) -> str:
        """An address that reads the object without credentials until it expires."""
        return self._sign("get_object", {"Key": key}, expires)

    def written_at(self, key: str) -> datetime | None:
        """When the object was written; None when there is none."""
        try:
            written: datetime = self._client().head_object(Bucket=self._name, Key=key)["LastModified"]
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            raise
        return written

    def url_to_put(self, key: str, size_bytes: int, sha256: str, expires: timedelta) -> tuple[str, Mapping[str, str]]:
        """An address that writes the object, of exactly this size and digest (hex), until it expires.

        Returns:
            The address, and the headers that have to go with the bytes: S3 refuses what does not match them.
        """
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        params = {"Key": key, "ContentLength": size_bytes, "ChecksumSHA256": checksum}
        return self._sign("put_object", params, expires), {"x-amz-checksum-sha256": checksum}

    def begin_multipart(self, key: str) -> str:
        """Begin an upload in chunks; its id."""
        return str(self._client().create_multipart_upload(Bucket=self._name, Key=key)["UploadId"])

    def urls_to_put_chunks(
        self, key: str, upload_id: str, count: int, expires: timedelta, first: int = 1
    ) -> Sequence[str]:
        """An address for each of so many chunks, in order; `first` is the number of the first, from 1."""
        return [
            self._sign("upload_part", {"Key": key, "UploadId": upload_id, "PartNumber": number}, expires)
            for number in range(first, first + count)
        ]

    def complete_multipart(self, key: str, upload_id: str, etags: Sequence[str]) -> None:
        """Make the object of its chunks; a repeat succeeds when the object is there.

        Raises:
            InvalidInput: chunks are missing or not as said, or the upload is not known.
        """
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, start=1)]
        try:
            self._client().complete_multipart_upload(
                Bucket=self._name, Key=key, UploadId=upload_id, MultipartUpload={"Parts": parts}
            )
        except ClientError as error:
            code = _code(error)
            if code == "NoSuchUpload" and self.head(key) is not None:
                return
            if code in _BROKEN_UPLOAD:
                raise InvalidInput([Problem("parts", f"{key} cannot be made of what was sent: {code}")]) from error
            raise

    def abort_multipart(self, key: str, upload_id: str) -> None:
        """Give an upload up; succeeds when it is gone."""
        try:
            self._client().abort_multipart_upload(Bucket=self._name, Key=key, UploadId=upload_id)
        except ClientError as error:
            if _code(error) not in _MISSING:
                raise

    def open_uploads(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Key and id of uploads below a prefix that were begun, and neither completed nor given up; at most 1,000."""
        listed = self._client().list_multipart_uploads(Bucket=self._name, Prefix=prefix)
        return [(str(upload["Key"]), str(upload["UploadId"])) for upload in listed.get("Uploads", ())]

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are gone already are no failure."""
        for at in range(0, len(keys), _DELETED_AT_A_TIME):
            batch = [{"Key": key} for key in keys[at : at + _DELETED_AT_A_TIME]]
            answer = self._client().delete_objects(Bucket=self._name, Delete={"Objects": batch, "Quiet": True})
            if errors := answer.get("Errors"):
                code, message = str(errors[0].get("Code", "")), str(errors[0].get("Message", ""))
                raise ClientError({"Error": {"Code": code, "Message": message}}, "DeleteObjects")

    def _sign(self, operation: str, params: dict[str, object], expires: timedelta) -> str:
        return str(
            self._client().generate_presigned_url(
                operation, Params={"Bucket": self._name, **params}, ExpiresIn=int(expires.total_seconds())
            )
        )
