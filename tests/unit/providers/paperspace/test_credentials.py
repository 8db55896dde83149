"""The key of Paperspace's API."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from spotferry.providers.context import no_secret
from spotferry.providers.paperspace.api import PaperspaceApi
from spotferry.providers.paperspace.credentials import KEPT_FOR, ApiKey
from spotferry.types.errors import Misconfigured, SkipProvider


def test_a_key_is_read_again_after_a_while() -> None:
    """The secret is asked for by its name, once in five minutes, so that a new key comes into use."""
    asked: list[str] = []
    now = 0.0

    def secret(name: str) -> str:
        asked.append(name)
        return f"key-{len(asked)}"

    key = ApiKey(secret, lambda: now)
    assert [key(), key()] == ["key-1", "key-1"]
    now = KEPT_FOR.total_seconds()
    assert key() == "key-2"
    key.forget()
    assert key() == "key-3"
    assert asked == ["paperspace/api-key"] * 3


def test_the_environment_may_stand_for_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a laptop the variable of Paperspace's own tools is the key; a blank one is none."""
    monkeypatch.setenv("PAPERSPACE_API_KEY", " mine\n")
    assert ApiKey(no_secret)() == "mine"
    monkeypatch.setenv("PAPERSPACE_API_KEY", " ")
    with pytest.raises(Misconfigured, match="paperspace/api-key"):
        ApiKey(no_secret)()


@contextmanager
def one_key_at_loopback(wanted: str) -> Iterator[str]:
    """A service that takes one key only."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            good = self.headers["Authorization"] == f"Bearer {wanted}"
            body = b'{"id": "ps1"}' if good else b'{"code": "UNAUTHORIZED", "message": "no"}'
            self.send_response(200 if good else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_key_that_is_refused_is_read_again() -> None:
    """A key that was replaced is found by the next call, not five minutes later."""
    keys = iter(["old", "new"])
    with one_key_at_loopback("new") as url:
        api = PaperspaceApi(ApiKey(lambda _name: next(keys)), url)
        with pytest.raises(SkipProvider):
            api.begin().get("/machines/ps1")
        assert api.begin().get("/machines/ps1") == {"id": "ps1"}
