"""Compute Engine's metadata server; asked for changes it holds its answer back until there is one, or time is up."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from typing import Dict, Mapping, Optional, Tuple

WAIT_SECONDS = 10
"""How long the server may hold an answer back: a notice comes at once, and a quiet machine asks six times a minute."""
ANSWER_SECONDS = 2.0


class GceMetadata:
    """The values about this machine; each call raises OSError or HTTPException when the server does not answer."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        # The address, not the name: what a task does to the resolver is nothing to a notice.
        host = environ.get("GCE_METADATA_HOST") or "169.254.169.254"
        self._base = f"http://{host}/computeMetadata/v1/"
        self._etags: Dict[str, str] = {}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def changed(self, path: str) -> str:
        """The value at a path: at first at once, then when it has changed or WAIT_SECONDS are over.

        Raises:
            ValueError: it is no text.
        """
        known = self._etags.get(path)
        query = {"wait_for_change": "true", "timeout_sec": str(WAIT_SECONDS), "last_etag": known} if known else {}
        try:
            value, self._etags[path] = self._read(path, query)
        except (OSError, http.client.HTTPException):
            # A server that was away may have missed a change meanwhile: the next look is answered at once.
            self._etags.pop(path, None)
            raise
        return value

    def text(self, path: str) -> Optional[str]:
        """The value at a path; None when there is nothing (404).

        Raises:
            ValueError: it is no text.
        """
        try:
            return self._read(path, {})[0]
        except urllib.error.HTTPError as error:
            if error.code == http.client.NOT_FOUND:
                return None
            raise

    def _read(self, path: str, query: Mapping[str, str]) -> Tuple[str, str]:
        asked = f"?{urllib.parse.urlencode(query)}" if query else ""
        request = urllib.request.Request(  # noqa: S310  (the cloud's own host, or the vendor's own variable)
            self._base + path + asked, headers={"Metadata-Flavor": "Google"}
        )
        patience = ANSWER_SECONDS + (WAIT_SECONDS if query else 0)
        try:
            with self._opener.open(request, timeout=patience) as answer:
                if answer.headers.get("Metadata-Flavor") != "Google":
                    raise ValueError(f"{self._base} is not Google's metadata server")
                return answer.read().decode("utf-8").strip(), answer.headers.get("ETag", "")
        except urllib.error.HTTPError as error:
            error.close()
            raise
