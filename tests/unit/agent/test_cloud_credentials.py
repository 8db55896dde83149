"""Reads from buckets are authorized as the clouds demand it."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from spotferry.agent.cloud_credentials import CloudCredentials, sign_aws
from tests.unit.agent.clocks import ManualClock

URL = "https://data.s3.eu-west-1.amazonaws.com/a%20b/set.tar"
KEYS = {"AccessKeyId": "AKIA1", "SecretAccessKey": "secret", "Token": "session"}


def test_signature_is_the_one_that_the_official_library_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Header for header what botocore signs, of the same request at the same time."""
    at = time.gmtime(1_700_000_000)
    official = AWSRequest("GET", URL, headers={"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"})
    signer = S3SigV4Auth(Credentials("AKIA1", "secret", "session"), "s3", "eu-west-1")
    official.context["client_config"] = Config(s3={"payload_signing_enabled": False})
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: datetime(*at[:6], tzinfo=UTC))
    signer.add_auth(official)
    ours = sign_aws(URL, "eu-west-1", KEYS, at)
    assert ours["Authorization"] == official.headers["Authorization"]
    assert ours["x-amz-date"] == official.headers["X-Amz-Date"]
    assert ours["x-amz-security-token"] == official.headers["X-Amz-Security-Token"]


class _Metadata(BaseHTTPRequestHandler):
    """Both clouds' metadata services; what is not in `documents` is not there."""

    documents: dict[str, bytes]

    def do_PUT(self) -> None:
        self._answer(b"session")

    def do_GET(self) -> None:
        guarded = self.headers.get("X-aws-ec2-metadata-token") or self.headers.get("Metadata-Flavor") == "Google"
        self._answer(self.documents.get(self.path) if guarded else None)

    def _answer(self, body: bytes | None) -> None:
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.send_header("Metadata-Flavor", "Google")
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing."""


@pytest.fixture
def metadata() -> Iterator[ThreadingHTTPServer]:
    """A metadata service."""
    _Metadata.documents = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), _Metadata) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def credentials(provider: str, server: ThreadingHTTPServer) -> CloudCredentials:
    """Those of a machine of that cloud."""
    host = f"127.0.0.1:{server.server_address[1]}"
    environ = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{host}", "GCE_METADATA_HOST": host}
    return CloudCredentials(provider, environ, ManualClock())


def test_machines_role_signs_reads_of_its_own_cloud(metadata: ThreadingHTTPServer) -> None:
    """On EC2 the instance profile's keys sign; a bucket of another cloud is asked as anybody may."""
    at = "/latest/meta-data/iam/security-credentials/"
    _Metadata.documents = {at: b"worker\n", f"{at}worker": json.dumps(KEYS).encode()}
    headers = credentials("aws", metadata).headers("aws", URL, "eu-west-1")
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIA1/")
    assert credentials("aws", metadata).headers("gcp", URL, "") == {}
    assert credentials("aws", metadata).headers("", URL, "") == {}


def test_service_accounts_token_reads_google_buckets(metadata: ThreadingHTTPServer) -> None:
    """On Google Cloud the service account's token goes with the request."""
    at = "/computeMetadata/v1/instance/service-accounts/default/token"
    _Metadata.documents = {at: b'{"access_token": "ya29", "expires_in": 60}'}
    assert credentials("gcp", metadata).headers("gcp", URL, "") == {"Authorization": "Bearer ya29"}


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_machine_without_an_identity_asks_as_anybody(provider: str, metadata: ThreadingHTTPServer) -> None:
    """No role, no answer or a broken one: the bucket is asked without credentials, which suffices if it is public."""
    assert credentials(provider, metadata).headers(provider, URL, "eu-west-1") == {}
    _Metadata.documents = {
        "/latest/meta-data/iam/security-credentials/": b"worker",
        "/latest/meta-data/iam/security-credentials/worker": b"[]",
        "/computeMetadata/v1/instance/service-accounts/default/token": b"no json",
    }
    assert credentials(provider, metadata).headers(provider, URL, "eu-west-1") == {}
