"""The machine's own credentials, as its cloud hands them out, for reading the buckets of that cloud."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import time
import urllib.parse
from typing import Callable, Dict, Mapping

from spotferry.agent.clock import Clock
from spotferry.agent.console import say
from spotferry.agent.ec2_metadata import Ec2Metadata
from spotferry.agent.gce_metadata import GceMetadata

Headers = Dict[str, str]
Sign = Callable[[str, str], Headers]
"""The headers that authorize a GET of (address, region)."""

_NO_ANSWER = (OSError, http.client.HTTPException, ValueError, KeyError)


def sign_aws(url: str, region: str, keys: Mapping[str, object], at: time.struct_time) -> Headers:
    """AWS Signature Version 4 of a GET from S3.

    Args:
        url: without a query; its path is quoted.
        region: of the bucket.
        keys: AccessKeyId, SecretAccessKey and Token, as the metadata service has them.
        at: now, UTC.
    """
    parts = urllib.parse.urlsplit(url)
    stamp, day = time.strftime("%Y%m%dT%H%M%SZ", at), time.strftime("%Y%m%d", at)
    signed = {
        "host": parts.netloc,
        "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
        "x-amz-date": stamp,
        "x-amz-security-token": str(keys["Token"]),
    }
    names = ";".join(signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    request = f"GET\n{parts.path}\n\n{lines}\n{names}\nUNSIGNED-PAYLOAD"
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{keys['SecretAccessKey']}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={keys['AccessKeyId']}/{scope}"
    authorization = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
    return {**{name: value for name, value in signed.items() if name != "host"}, "Authorization": authorization}


class CloudCredentials:
    """Authorizes reads from buckets of the machine's own cloud; anonymous where the machine has no identity there.

    Args:
        provider: the machine's cloud.
        environ: may name other metadata services, by the vendors' own variables.
        clock: of the machine.
    """

    def __init__(self, provider: str, environ: Mapping[str, str], clock: Clock) -> None:
        self._provider = provider
        self._ec2 = Ec2Metadata(environ, clock)
        self._gce = GceMetadata(environ)

    def headers(self, cloud: str, url: str, region: str) -> Headers:
        """What goes with a GET of an object of a cloud; nothing where the bucket has to be open to all."""
        signs: Dict[str, Sign] = {"aws": self._aws, "gcp": self._gcp}
        if cloud != self._provider or cloud not in signs:
            return {}
        try:
            return signs[cloud](url, region)
        except _NO_ANSWER as error:
            say(f"no credentials of the machine's own, {cloud} is asked without: {error}")
            return {}

    def _aws(self, url: str, region: str) -> Headers:
        roles = self._ec2.text("iam/security-credentials/")
        keys = self._ec2.document(f"iam/security-credentials/{roles.decode().split()[0]}") if roles else None
        return sign_aws(url, region, keys, time.gmtime()) if keys else {}

    def _gcp(self, _url: str, _region: str) -> Headers:
        token = self._gce.text("instance/service-accounts/default/token")
        return {"Authorization": f"Bearer {json.loads(token)['access_token']}"} if token else {}
