"""The broker's clients: what they are told about addresses."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from spotferry.runtime.aws_clients import client
from spotferry.runtime.bucket import Bucket


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "made-up")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    client.cache_clear()
    yield
    client.cache_clear()


def _addresses(region: str) -> list[str]:
    bucket = Bucket("archive", lambda: client("s3", region))
    hour = timedelta(hours=1)
    put, headers = bucket.url_to_put("k", 5, "ab" * 32, hour)
    assert set(headers) == {"x-amz-checksum-sha256"}
    assert "x-amz-checksum-sha256" in put
    return [put, bucket.url_to_get("k", hour), *bucket.urls_to_put_chunks("k", "u", 2, hour)]


@pytest.mark.parametrize("region", ["eu-central-1", "us-west-2", "ap-east-1"])
def test_addresses_name_the_buckets_region(region: str) -> None:
    """What is handed out needs no redirect, which an upload could not follow."""
    assert all(url.startswith(f"https://archive.s3.{region}.amazonaws.com/k?") for url in _addresses(region))


def test_addresses_follow_an_endpoint_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulator on a loopback address is spoken to by path, since no name below it resolves."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    assert all(url.startswith("http://127.0.0.1:4566/archive/k?") for url in _addresses("us-east-1"))
