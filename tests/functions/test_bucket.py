"""The object store in S3, as the use cases rely on it."""

import base64
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from spotferry.runtime.bucket import Bucket
from spotferry.types import InvalidInput, NotFound
from tests.functions.deployment import BUCKET, Deployment

HOUR = timedelta(hours=1)


@pytest.fixture
def bucket(deployment: Deployment) -> Bucket:
    """The deployment's bucket."""
    return deployment.wiring.objects


def upload(bucket: Bucket, key: str, body: bytes = b"x") -> tuple[str, list[str]]:
    """An upload of one chunk that has come, not completed yet."""
    upload_id = bucket.begin_multipart(key)
    made = bucket._client().upload_part(Bucket=BUCKET, Key=key, UploadId=upload_id, PartNumber=1, Body=body)
    return upload_id, [made["ETag"]]


def test_an_object_comes_back_as_it_was_put(bucket: Bucket) -> None:
    """Bytes and size; what is not there is said to be missing."""
    bucket.put("a/b", b"abc", "text/plain")
    assert (bucket.get("a/b"), bucket.head("a/b")) == (b"abc", 3)
    assert bucket.head("a/c") is None
    with pytest.raises(NotFound, match="a/c"):
        bucket.get("a/c")


def test_keys_come_in_order_after_a_key(bucket: Bucket) -> None:
    """Pages follow one another by the last key."""
    for name in "cab":
        bucket.put(f"l/{name}", b"12")
    assert bucket.keys("l/") == [("l/a", 2), ("l/b", 2), ("l/c", 2)]
    assert bucket.keys("l/", after="l/a", limit=1) == [("l/b", 2)]
    assert bucket.keys("nothing/") == []


def test_nothing_is_there_before_an_upload_is_completed(bucket: Bucket) -> None:
    """The object appears whole, or not at all; a repeat of its completion succeeds."""
    upload_id, etags = upload(bucket, "k", b"whole")
    assert bucket.head("k") is None
    bucket.complete_multipart("k", upload_id, etags)
    bucket.complete_multipart("k", upload_id, etags)
    assert bucket.get("k") == b"whole"


def test_an_upload_that_is_not_whole_or_not_known_is_refused(bucket: Bucket) -> None:
    """The caller's fault, not the service's."""
    upload_id, _ = upload(bucket, "k")
    for etags in ([], ['"made-up"']):
        with pytest.raises(InvalidInput, match="k cannot be made"):
            bucket.complete_multipart("k", upload_id, etags)
    assert bucket.head("k") is None


class ForgetfulS3:
    """S3 once an upload is gone; moto does not answer as the service does here."""

    def __init__(self, key: str = "") -> None:
        self.key = key

    def complete_multipart_upload(self, **_: object) -> None:
        """The upload is not known."""
        raise ClientError({"Error": {"Code": "NoSuchUpload"}}, "CompleteMultipartUpload")

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, int]:  # noqa: N803
        """The object, if it was made."""
        if self.key != Key:
            raise ClientError({"Error": {"Code": "404"}}, f"HeadObject {Bucket}")
        return {"ContentLength": 1}


def test_an_upload_that_is_not_known_is_refused_unless_it_was_completed() -> None:
    """A repeat of a completion whose answer was lost succeeds; a made-up upload does not."""
    Bucket("b", lambda: ForgetfulS3("k")).complete_multipart("k", "u", ['"x"'])
    with pytest.raises(InvalidInput, match="NoSuchUpload"):
        Bucket("b", ForgetfulS3).complete_multipart("k", "u", ['"x"'])


def test_a_denial_is_not_taken_for_a_missing_object() -> None:
    """What the service refuses is an error of its own, never "there is none"."""

    class Denying:
        def head_object(self, **_: object) -> None:
            raise ClientError({"Error": {"Code": "403"}}, "HeadObject")

    with pytest.raises(ClientError, match="403"):
        Bucket("b", Denying).head("k")


def test_an_upload_is_given_up_once_or_twice(bucket: Bucket) -> None:
    """Giving up what is gone succeeds."""
    upload_id, _ = upload(bucket, "k")
    for _ in range(2):
        bucket.abort_multipart("k", upload_id)
    assert "Uploads" not in bucket._client().list_multipart_uploads(Bucket=BUCKET)


def test_addresses_are_for_one_thing_and_a_time(bucket: Bucket) -> None:
    """Signed for key, part and size, with the newest signature, and without credentials in the open."""
    reading = bucket.url_to_get("a b/ü", HOUR)
    assert "X-Amz-Expires=3600" in reading
    assert "AWS4-HMAC-SHA256" in reading
    writing, headers = bucket.url_to_put("k", 7, "ab" * 32, HOUR)
    assert headers == {"x-amz-checksum-sha256": base64.b64encode(bytes.fromhex("ab" * 32)).decode()}
    assert "content-length" in writing.split("X-Amz-SignedHeaders=")[1].split("&")[0]
    urls = bucket.urls_to_put_chunks("k", "u1", 3, HOUR)
    assert [url.split("partNumber=")[1][0] for url in urls] == ["1", "2", "3"]
    assert all("uploadId=u1" in url for url in urls)
    assert not any("testing" in url.replace("testing%2F", "") for url in urls)


def test_open_uploads_are_found_by_their_prefix(bucket: Bucket) -> None:
    """Those that are neither completed nor given up."""
    done, etags = upload(bucket, "p/done")
    bucket.complete_multipart("p/done", done, etags)
    gone, _ = upload(bucket, "p/gone")
    bucket.abort_multipart("p/gone", gone)
    left, _ = upload(bucket, "p/left")
    upload(bucket, "q/other")
    assert bucket.open_uploads("p/") == [("p/left", left)]
    assert bucket.open_uploads("nothing/") == []


def test_objects_are_deleted_and_missing_ones_are_no_failure(bucket: Bucket) -> None:
    """Whatever their number, none included."""
    for name in ("d/a", "d/b", "d/c"):
        bucket.put(name, b"x")
    bucket.delete(["d/a", "d/c", "d/never-there"])
    bucket.delete([])
    assert [key for key, _ in bucket.keys("d/")] == ["d/b"]
    bucket.delete([f"d/{number}" for number in range(1001)])


class DenyingS3:
    """S3 that deletes nothing."""

    def delete_objects(self, **_: object) -> dict[str, object]:
        """As the service answers a batch of which some failed."""
        return {"Errors": [{"Key": "k", "Code": "AccessDenied", "Message": "no"}]}


def test_a_deletion_that_is_refused_is_an_error() -> None:
    """The service answers 200 for the batch."""
    with pytest.raises(ClientError, match="AccessDenied"):
        Bucket("b", DenyingS3).delete(["k"])


def test_addresses_begin_at_any_chunk(bucket: Bucket) -> None:
    """Part numbers of S3 begin with 1."""
    urls = bucket.urls_to_put_chunks("k", "u", 2, HOUR, first=17)
    assert [f"partNumber={number}&" in url for number, url in zip((17, 18), urls, strict=True)] == [True, True]
