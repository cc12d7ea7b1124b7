"""Requests to addresses outside that cannot be led inside.

Only http and https. A host is resolved here, every address it has is judged, and the connection goes to an address that
was judged, so that a name cannot mean one machine when it is asked about and another when it is connected to. Redirects
are followed by hand and judged alike. Private, loopback, link-local and reserved addresses are refused unless the
setting allows them. TLS certificates are verified against the name. Size and time are bounded: the time is for the
whole answer, so a server that drips does not hold a worker.

No environment is read (no proxies), nothing is kept between requests, bodies are not unpacked (`identity` is asked
for). What is said of an error names scheme, host and path, never user, query or headers.

Rejected: httpx and urllib3 resolve names themselves, after anything a guard has asked; to force them to a judged
address while they verify the name takes as much code as the standard library's connection does.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from urllib.parse import SplitResult, urljoin, urlsplit

from importer.errors import RequestError, RequestRefusedError

#: So many redirects are followed.
MOST_REDIRECTS = 5

#: Read at once.
_PIECE_BYTES = 1 << 16

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an address gave, its body still to be read."""

    status: int
    #: By lower-case names; of a name that comes twice the last.
    headers: Mapping[str, str]
    #: Where redirects led.
    url: str
    #: The body in pieces, until its end, the limit or the deadline.
    pieces: Iterator[bytes] = field(repr=False, default_factory=lambda: iter(()))

    def body(self) -> bytes:
        """Read the whole body. Raises: RequestError."""
        return b"".join(self.pieces)


def shown(url: str) -> str:
    """Say an address without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


@contextmanager
def request(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    within: timedelta = timedelta(seconds=30),
    most_bytes: int = 1_000_000,
    private: bool = False,
) -> Iterator[Answer]:
    """Ask an address and give its answer; redirects are followed (of a GET or HEAD only).

    Args:
        url: an address of http or https.
        method: GET, HEAD or POST.
        headers: sent to the host of `url` only, not to where redirects lead.
        body: what is sent.
        within: the time for all of it.
        most_bytes: the longest body that is read.
        private: private and local addresses are allowed.

    Raises:
        RequestRefusedError: the address may not be asked, at first or after a redirect.
        RequestError: no answer in time, broken off, too long, too many redirects.
    """
    ends = time.monotonic() + within.total_seconds()
    given = {"User-Agent": "rowlease", "Accept-Encoding": "identity", **(headers or {})}
    for _ in range(MOST_REDIRECTS + 1):
        parts = _judged(url)
        with _translated(url):
            connection, sock = _connect(parts, private=private, ends=ends)
        response: http.client.HTTPResponse | None = None
        try:
            with _translated(url):
                target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request(method, target, body=body, headers=given)
                response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            if response.status in _REDIRECTS and "location" in found and method in {"GET", "HEAD"}:
                onward = urljoin(url, found["location"])
                if urlsplit(onward)[:2] != parts[:2]:
                    given = {"User-Agent": "rowlease", "Accept-Encoding": "identity"}
                url = onward
                continue
            pieces = _pieces(response, url, sock=sock, ends=ends, most_bytes=most_bytes)
            yield Answer(status=response.status, headers=found, url=url, pieces=pieces)
            return
        finally:
            if response is not None:
                response.close()
            connection.close()
            sock.close()
    raise RequestError(f"{shown(url)}: more than {MOST_REDIRECTS} redirects")


def _judged(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise RequestRefusedError("the address cannot be read") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise RequestRefusedError(f"{parts.scheme or 'no scheme'}: only addresses of http and https are asked")
    if parts.username is not None:
        raise RequestRefusedError(f"{shown(url)}: user and password do not belong into an address; use a header")
    if any(ord(character) <= 32 or ord(character) == 127 for character in url):
        raise RequestRefusedError(f"{shown(url)}: the address has spaces or control characters")
    return parts


def _connect(parts: SplitResult, *, private: bool, ends: float) -> tuple[http.client.HTTPConnection, socket.socket]:
    """Connect to an address of the host that was judged; the socket, since the connection lets go of it early."""
    host = str(parts.hostname)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    refused = [address for address in addresses if not (private or is_public(address))]
    if refused:
        raise RequestRefusedError(
            f"{parts.scheme}://{host}: it leads to {refused[0]}, a private or local address; "
            "ROWLEASE_PRIVATE_ADDRESSES=yes allows those"
        )
    failure: OSError | None = None
    for address in addresses:
        try:
            sock = socket.create_connection((address, port), timeout=_left_s(ends))
        except OSError as error:
            failure = error
            continue
        if parts.scheme == "https":
            try:
                sock = _tls().wrap_socket(sock, server_hostname=host)
            except BaseException:
                sock.close()
                raise
        connection = http.client.HTTPConnection(host, port, timeout=_left_s(ends))
        connection.sock = sock
        return connection, sock
    raise failure or OSError(f"{host} has no address")


def is_public(address: str) -> bool:
    """Tell whether an address belongs to the internet at large; also one that is wrapped in IPv6."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is not None:
            return is_public(str(inner))
        if found in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)))
    return found.is_global and not found.is_multicast


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _pieces(
    response: http.client.HTTPResponse,
    url: str,
    *,
    sock: socket.socket,
    ends: float,
    most_bytes: int,
) -> Iterator[bytes]:
    size = 0
    expected = response.length
    while True:
        with _translated(url):
            sock.settimeout(_left_s(ends))
            piece = response.read1(_PIECE_BYTES)
        if not piece:
            break
        size += len(piece)
        if size > most_bytes:
            raise RequestError(f"{shown(url)}: the answer is longer than {most_bytes:,} bytes")
        yield piece
    if expected is not None and size < expected:
        raise RequestError(f"{shown(url)}: the answer broke off after {size:,} of {expected:,} bytes")


def _left_s(ends: float) -> float:
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


@contextmanager
def _translated(url: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise RequestError(f"{shown(url)}: no whole answer in time") from error
    except ssl.SSLCertVerificationError as error:
        raise RequestError(f"{shown(url)}: its certificate is not valid: {error.verify_message}") from error
    except socket.gaierror as error:
        raise RequestError(f"{shown(url)}: the host is not known") from error
    except (http.client.HTTPException, UnicodeError, ValueError) as error:
        raise RequestError(f"{shown(url)}: no proper answer of HTTP ({type(error).__name__})") from error
    except OSError as error:
        raise RequestError(f"{shown(url)}: {(error.strerror or type(error).__name__).lower()}") from error
