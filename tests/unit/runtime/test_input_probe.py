"""The broker looks for inputs on the public web only, and takes no refusal for a proof."""

import http.client
import socket

import pytest

from spotferry.runtime.input_probe import WebProbe, head, resolve

URL = "https://e.org/data/x?sig=1"


def probe(status: int = 200, *addresses: str, asked: list[tuple[str, str, int, str]] | None = None) -> WebProbe:
    """One whose web answers so."""

    def answer(address: str, host: str, port: int, path: str) -> int:
        (asked if asked is not None else []).append((address, host, port, path))
        if status == 0:
            raise TimeoutError
        if status < 0:
            raise http.client.RemoteDisconnected("")
        return status

    return WebProbe(lambda _host, _port: addresses or ("93.184.216.34",), answer)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (200, ""),
        (404, "e.org answers 404"),
        (410, "e.org answers 410"),
        (403, ""),
        (405, ""),
        (302, ""),
        (500, ""),
        (0, ""),
        (-1, ""),
    ],
)
def test_only_what_is_surely_missing_is_missing(status: int, why: str) -> None:
    """A signed address refuses HEAD, a server may be down: the machine will see."""
    asked: list[tuple[str, str, int, str]] = []
    assert probe(status, asked=asked).why_missing(URL) == why
    assert asked == [("93.184.216.34", "e.org", 443, "/data/x?sig=1")]


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.8", "169.254.169.254", "192.168.1.1", "::1", "fe80::1%eth0", "fd00::1"]
)
def test_no_private_address_is_asked(address: str) -> None:
    """A job file is no way into the broker's network: one private address of a host is enough to leave it alone."""
    asked: list[tuple[str, str, int, str]] = []
    assert probe(404, "93.184.216.34", address, asked=asked).why_missing(URL) == ""
    assert asked == []


def test_host_that_does_not_exist_is_missing() -> None:
    """A name that nobody knows is a wrong address; a resolver that does not answer proves nothing."""

    def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host}:{port}")

    def silent(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_AGAIN, f"{host}:{port}")

    assert WebProbe(nobody).why_missing(URL) == "there is no host e.org"
    assert WebProbe(silent).why_missing(URL) == ""


def test_the_real_connection_goes_to_the_address_it_is_given() -> None:
    """The host's name is for the certificate; nothing is looked up a second time."""
    assert resolve("127.0.0.1", 443) == ["127.0.0.1"]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        head("127.0.0.1", "no-such-host.invalid", port, "/x")
