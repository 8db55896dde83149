"""Asks a web server whether an input is there: one HEAD, to public addresses only."""

import http.client
import ipaddress
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

SECONDS = 4.0
_HTTPS_PORT = 443
_GONE = (http.client.NOT_FOUND, http.client.GONE)

Resolve = Callable[[str, int], Sequence[str]]
"""The IP addresses of a host; raises OSError when it has none."""
Head = Callable[[str, str, int, str], int]
"""The status of a HEAD of (IP address, host, port, path and query); raises OSError or HTTPException."""


def resolve(host: str, port: int) -> list[str]:
    """The addresses that the system's resolver knows."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class _PinnedConnection(http.client.HTTPSConnection):
    """A connection to one IP address, whose certificate must be that of the host: no second look-up in between."""

    def __init__(self, address: str, host: str, port: int) -> None:
        super().__init__(host, port, timeout=SECONDS)
        self._create_connection = lambda _, *rest: socket.create_connection((address, port), *rest)


def head(address: str, host: str, port: int, path: str) -> int:
    """The status of a HEAD; redirects are not followed."""
    connection = _PinnedConnection(address, host, port)
    try:
        connection.request("HEAD", path)
        return connection.getresponse().status
    finally:
        connection.close()


class WebProbe:
    """Looks for inputs on the web.

    The broker's function asks addresses that people name, so it asks none that is not public: what is on a private
    network only the machine can tell.
    """

    def __init__(self, resolve: Resolve = resolve, head: Head = head) -> None:
        self._resolve = resolve
        self._head = head

    def why_missing(self, url: str) -> str:
        """Why nobody can fetch it; "" where it is there, or where this cannot be told from here.

        A refusal proves nothing: an address that is signed for GET refuses HEAD.
        """
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _HTTPS_PORT
        try:
            addresses = self._resolve(host, port)
        except socket.gaierror as error:
            return f"there is no host {host}" if error.errno == socket.EAI_NONAME else ""
        except OSError:
            return ""
        if not addresses or not all(ipaddress.ip_address(one.partition("%")[0]).is_global for one in addresses):
            return ""
        try:
            status = self._head(
                addresses[0], host, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            )
        except (OSError, http.client.HTTPException):
            return ""
        return f"{host} answers {status}" if status in _GONE else ""
