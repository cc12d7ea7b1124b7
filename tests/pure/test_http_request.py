"""Requests to outside: bounded in time and size, and never led to a private machine."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from importer.errors import RequestError, RequestRefusedError
from importer.http_request import is_public, request, shown
from tests.web_server import Site, web_server

SECOND = timedelta(seconds=1)


@pytest.fixture
def site() -> Iterator[Site]:
    """Give a web server."""
    with web_server() as found:
        yield found


def get(url: str, **more: Any) -> bytes:  # noqa: ANN401 - arguments of request
    """Ask and read the whole body; this machine is allowed unless said otherwise."""
    with request(url, **{"private": True, **more}) as answer:
        return answer.body()


def test_an_answer(site: Site) -> None:
    """Status, headers by lower-case names, and the body."""
    site.body = b"hello"

    with request(site.url + "/a?b=c", private=True, headers={"X-One": "1"}) as answer:
        assert (answer.status, answer.headers["content-type"], answer.body()) == (200, "application/json", b"hello")
    assert (site.asked[0].path, site.asked[0].headers["x-one"]) == ("/a?b=c", "1")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",  # noqa: S104
        "224.0.0.1", "255.255.255.255", "::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "::", "ff02::1",
    ],
)  # fmt: skip
def test_private_addresses(address: str) -> None:
    """Loopback, private, link-local, shared, multicast and reserved ones, also wrapped in IPv6, are not public."""
    assert not is_public(address)


def test_public_addresses() -> None:
    """What belongs to the internet at large is."""
    assert all(is_public(address) for address in ("93.184.215.14", "2606:2800:21f:cb07::1", "64:ff9b::808:808"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1"])
def test_a_local_address_is_refused_however_it_is_written(site: Site, host: str) -> None:
    """What counts is where the name leads."""
    port = site.url.rsplit(":", 1)[1]

    with pytest.raises(RequestError):
        get(f"http://{host}:{port}/", private=False)

    assert site.asked == []


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://example.com/a", "gopher://x", "//example.com", "http://", "http://a b/",
     "http://ann:pw@example.com/", "http://example.com:99999/", "http://example.com/\r\nX: y"],
)  # fmt: skip
def test_addresses_that_are_never_asked(url: str) -> None:
    """Only http and https, without user and password, without what would break out of the line."""
    with pytest.raises(RequestRefusedError) as caught:
        get(url)

    assert "pw" not in str(caught.value)


def test_a_redirect_to_a_private_address_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each redirect is judged like the first address."""
    site.status = 302
    site.headers["Location"] = site.url.replace("127.0.0.1", "localhost")
    seen: list[str] = []

    def judged(address: str) -> bool:
        seen.append(address)
        return len(seen) == 1

    monkeypatch.setattr("importer.http_request.is_public", judged)

    with pytest.raises(RequestRefusedError, match="a private or local address"):
        get(site.url, private=False)
    assert len(site.asked) == 1


def test_a_name_is_resolved_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the address that was judged, whatever the name means a moment later."""
    port = int(site.url.rsplit(":", 1)[1])
    resolved: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **more: Any) -> Any:  # noqa: ANN401 - as the standard library's
        if host == "changing.example":
            resolved.append(host)
            host = "127.0.0.1" if len(resolved) == 1 else "10.0.0.1"
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    assert get(f"http://changing.example:{port}/") == b"{}"
    assert (len(resolved), site.asked[0].headers["host"]) == (1, f"changing.example:{port}")


def test_redirects_are_followed_and_bounded(site: Site) -> None:
    """A header meant for one host is not sent to another; a ring of redirects ends."""
    with web_server() as other:
        site.status, site.headers["Location"] = 301, other.url + "/there"
        assert get(site.url, headers={"Authorization": "secret"}) == b"{}"
        assert (site.asked[0].headers["authorization"], "authorization" in other.asked[0].headers) == ("secret", False)
    site.headers["Location"] = site.url + "/again"
    with pytest.raises(RequestError, match="more than 5 redirects"):
        get(site.url)


def too_long(handler: BaseHTTPRequestHandler) -> None:
    """Send more than was allowed, without saying how much."""
    handler.send_response(200)
    handler.end_headers()
    with suppress(OSError):  # the asker has gone, as it should
        for _ in range(1000):
            handler.wfile.write(b"x" * 10_000)


def broken_off(handler: BaseHTTPRequestHandler) -> None:
    """Promise more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"half")
    handler.close_connection = True


def no_http(handler: BaseHTTPRequestHandler) -> None:
    """Answer something else."""
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("misbehaves", "said"), [(too_long, "longer than"), (broken_off, "broke off"), (no_http, "no proper answer")]
)
def test_servers_that_misbehave(site: Site, misbehaves: Callable[[BaseHTTPRequestHandler], None], said: str) -> None:
    """Each is one sentence that names the address without its query."""
    site.instead = misbehaves

    with pytest.raises(RequestError, match=said) as caught:
        get(site.url + "/x?token=s")
    assert str(caught.value).startswith(f"{site.url}/x: ")


def test_a_server_that_drips(site: Site) -> None:
    """The time is for the whole answer: one that comes byte by byte is broken off when it is over."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):  # the asker has gone
            while not select.select([handler.connection], [], [], 0.05)[0]:
                handler.wfile.write(b".")

    site.instead = drip

    with pytest.raises(RequestError, match="no whole answer in time"):
        get(site.url, within=SECOND / 2)


def test_nobody_there() -> None:
    """A closed port is an error in a sentence."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(RequestError, match="connection refused"):
        get(f"http://127.0.0.1:{port}/")


def test_an_address_is_shown_without_its_secrets() -> None:
    """User, password, query and fragment are left out."""
    assert shown("https://ann:pw@example.com:8443/a/b?sig=s#f") == "https://example.com:8443/a/b"
