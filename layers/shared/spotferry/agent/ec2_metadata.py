"""EC2's metadata service, version 2: a session token first, renewed at half its life or when it is refused."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Dict, Mapping, Optional

from spotferry.agent.clock import Clock

ANSWER_SECONDS = 2.0


class Ec2Metadata:
    """The documents about this machine; each call raises OSError or HTTPException when the service does not answer."""

    TOKEN_SECONDS = 21600

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._base = environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254").rstrip("/")
        self._clock = clock
        self._token = ""
        self._renew_at = float("-inf")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def document(self, path: str) -> Optional[Dict[str, object]]:
        """The JSON object at a path; None when there is none (404).

        Raises:
            ValueError: it is no JSON object.
        """
        text = self.text(path)
        if text is None:
            return None
        answer = json.loads(text)
        if not isinstance(answer, dict):
            raise ValueError(f"{path}: not a JSON object")  # noqa: TRY004  (handled as one kind of bad answer)
        return answer

    def text(self, path: str) -> Optional[bytes]:
        """What is at a path; None when there is nothing (404)."""
        try:
            return self._get(path)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == http.client.NOT_FOUND:
                return None
            raise

    def _get(self, path: str) -> bytes:
        if self._clock.monotonic() >= self._renew_at:
            self._renew()
        try:
            return self._read(path)
        except urllib.error.HTTPError as error:
            if error.code != http.client.UNAUTHORIZED:
                raise
            error.close()
        self._renew()
        return self._read(path)

    def _renew(self) -> None:
        request = urllib.request.Request(  # noqa: S310  (link-local, or the vendor's own variable)
            f"{self._base}/latest/api/token",
            method="PUT",
            headers={"X-aws-ec2-metadata-token-ttl-seconds": str(self.TOKEN_SECONDS)},
        )
        with self._opener.open(request, timeout=ANSWER_SECONDS) as answer:
            self._token = answer.read().decode("ascii")
        self._renew_at = self._clock.monotonic() + self.TOKEN_SECONDS / 2

    def _read(self, path: str) -> bytes:
        request = urllib.request.Request(  # noqa: S310  (as above)
            f"{self._base}/latest/meta-data/{path}", headers={"X-aws-ec2-metadata-token": self._token}
        )
        with self._opener.open(request, timeout=ANSWER_SECONDS) as answer:
            content: bytes = answer.read()
        return content
