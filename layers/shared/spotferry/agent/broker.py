"""Calls to the broker: one JSON body there, one back."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import IO, Any, Dict, Optional

from spotferry.agent import PROTOCOL
from spotferry.agent.errors import BrokerGone, BrokerRefused, BrokerUnreachable, reason_of
from spotferry.agent.settings import Settings

Json = Dict[str, Any]
"""A JSON object of the protocol; Any, since its fields are looked at where they are used."""

CALL_SECONDS = 20.0
_LATER = (408, 429)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Never follows: the token goes to the broker's own address only."""

    def redirect_request(
        self,
        req: urllib.request.Request,  # noqa: ARG002
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: http.client.HTTPMessage,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> Optional[urllib.request.Request]:
        """No request: the redirect is an error."""
        return None


class Broker:
    """The broker as one attempt's agent sees it; safe to use from several threads.

    Args:
        settings: where it is, and who we are.
        agent_key: 64 hex digits, kept in memory only.
        timeout: seconds that one call may take between two bytes.
    """

    def __init__(self, settings: Settings, agent_key: str, timeout: float = CALL_SECONDS) -> None:
        self._base = settings.broker_url
        self._epoch = settings.epoch
        self._credential = f"{settings.instance_id}.{settings.token}.{agent_key}"
        self._timeout = timeout
        self._opener = urllib.request.build_opener(NoRedirect)

    def call(self, path: str, body: Json) -> Json:
        """POST the body, with protocol and epoch added, to /agent/v1/<path>; the answer's object.

        One try, at most. Every call may be repeated.

        Raises:
            BrokerGone: 401 or 410.
            BrokerRefused: another 4xx, or a redirect; the text holds the problem's detail.
            BrokerUnreachable: 408, 429, 5xx, no answer, or one that is not JSON.
        """
        content = json.dumps({"protocol": PROTOCOL, "epoch": self._epoch, **body}, ensure_ascii=False)
        request = urllib.request.Request(  # noqa: S310  (the address is checked where user data is made)
            f"{self._base}/agent/v1/{path}",
            data=content.encode(),
            method="POST",
            headers={"Authorization": f"Bearer {self._credential}", "Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return _object(answer.read())
        except urllib.error.HTTPError as error:
            raise _verdict(path, error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise BrokerUnreachable(f"{path}: {reason_of(error)}") from None


def _object(content: bytes) -> Json:
    """The JSON object that an answer is."""
    answer = json.loads(content)
    if not isinstance(answer, dict):
        raise ValueError("the answer is not a JSON object")  # noqa: TRY004  (handled as one kind of bad answer)
    return answer


def _verdict(path: str, error: urllib.error.HTTPError) -> Exception:
    """What an HTTP status means; reads the problem document, and closes it."""
    with error:
        try:
            content = error.read(4096)
        except (OSError, http.client.HTTPException):
            content = b""
    text = f"{path}: HTTP {error.code}: {_detail(content)}"
    if error.code in (401, 410):
        return BrokerGone(text)
    if error.code in _LATER or error.code >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
        return BrokerUnreachable(text)
    return BrokerRefused(text)


def _detail(content: bytes) -> str:
    """The words of a problem document, or of whatever came."""
    try:
        problem = json.loads(content)
        return str(problem.get("detail") or problem.get("title") or problem)
    except (ValueError, AttributeError):
        return content.decode(errors="replace")[:200]
