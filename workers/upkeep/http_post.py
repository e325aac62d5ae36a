"""One POST to an address that was looked at: no redirect, no proxy, a bounded answer, an end within the time given.

http.client alone bounds each read but not their sum, so a timer ends the connection when the time is over, whatever it
is doing: shaking hands, waiting, or reading an answer that comes byte by byte.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from store.webhooks.destination import Address, Target

ANSWER_BYTES: Final = 1024
"""Of an answer that are read; the rest is never taken off the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a receiver said.

    Attributes:
        address: It was sent to. status: of HTTP. text: at most the first KiB, undecodable bytes replaced.
    """

    address: str
    status: int
    text: str


class NoAnswer(Exception):
    """No answer came: `code: why`, without a stranger's text.

    Attributes:
        address: The last one tried.
    """

    def __init__(self, code: str, why: str, address: str) -> None:
        super().__init__(f"{code}: {why}")
        self.address = address


class _Connection(http.client.HTTPConnection):
    """A connection to one address, with the URL's name in SNI and in the certificate that is demanded."""

    def __init__(self, target: Target, address: Address, seconds: float, tls: ssl.SSLContext) -> None:
        super().__init__(target.host, target.port, timeout=seconds)
        self._target, self._address, self._tls = target, address, tls
        self._wire: socket.socket | None = None  # http.client forgets its own once the answer's head is read

    def connect(self) -> None:
        """Connect to the address; the name is not resolved again."""
        self.sock = socket.create_connection((str(self._address), self.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._target.https:
            self.sock = self._tls.wrap_socket(
                self.sock, server_hostname=self._target.host, do_handshake_on_connect=False
            )
        self._wire = self.sock

    def bound(self, seconds: float) -> None:
        """How long a single read or write may take from now on."""
        if self._wire is not None:
            self._wire.settimeout(max(0.001, seconds))

    def shake_hands(self) -> None:
        """TLS, where it is wanted; apart from `connect`, so that the timer can end it."""
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def cut(self) -> None:
        """End the connection from another thread."""
        if self._wire is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._wire, socket.SHUT_RDWR)  # of an SSLSocket too: the plain one below it


def post(
    target: Target,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    body: bytes,
    *,
    seconds: float,
    tls: ssl.SSLContext,
) -> Answer:
    """Post to the first of the addresses that takes a connection.

    Args:
        target: Of the URL. addresses: those that were looked at, at least one.
        headers: Besides Host, Content-Length and Connection.
        body: Of the request.
        seconds: For all of it.
        tls: What certificates are demanded.

    Raises:
        NoAnswer: none came in time, or none that is HTTP.
    """
    until = time.monotonic() + seconds
    connection, address = _open_connection(target, addresses, until, tls)
    late = threading.Event()

    def end() -> None:
        late.set()
        connection.cut()

    timer = threading.Timer(max(0.0, until - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        return _post_body(connection, target, address, headers, body, late)
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(*_why(error, late), str(address)) from None
    finally:
        timer.cancel()
        connection.close()


def _open_connection(
    target: Target, addresses: Sequence[Address], until: float, tls: ssl.SSLContext
) -> tuple[_Connection, Address]:
    """Connect to the first address that takes a connection; each has its share of the time that is left.

    Raises:
        NoAnswer: none does; why the last one did not.
    """
    refused: NoAnswer | None = None
    for waiting, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        left = (until - time.monotonic()) / waiting
        if left <= 0:
            break
        connection = _Connection(target, address, left, tls)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            refused = NoAnswer(*_why(error, threading.Event()), str(address))
        else:
            connection.bound(until - time.monotonic())
            return connection, address
    raise refused or NoAnswer("timed-out", "no time was left to connect", "")


def _post_body(
    connection: _Connection,
    target: Target,
    address: Address,
    headers: Mapping[str, str],
    body: bytes,
    late: threading.Event,
) -> Answer:
    connection.shake_hands()
    connection.putrequest("POST", target.path, skip_host=True, skip_accept_encoding=True)
    own = {"Host": target.authority, "Content-Length": str(len(body)), "Connection": "close"}
    for name, value in {**own, **headers}.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    if late.is_set():  # http.client takes a head that was cut for a whole one
        raise TimeoutError
    text = b""
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):  # the status is here, and says it all
        while len(text) < ANSWER_BYTES and (piece := response.read1(ANSWER_BYTES - len(text))):
            text += piece
    return Answer(address=str(address), status=response.status, text=text.decode("utf-8", "replace"))


def _why(error: Exception, late: threading.Event) -> tuple[str, str]:
    """Return a code with a fixed message, which never contains what the receiver sent."""
    if late.is_set() or isinstance(error, TimeoutError):
        return "timed-out", "there was no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "bad-certificate", error.verify_message
    if isinstance(error, ssl.SSLError):
        return "no-tls", error.reason or "the receiver does not speak TLS"
    if isinstance(error, OSError):
        return "not-connected", error.strerror or type(error).__name__
    return "no-http", f"the answer is no HTTP ({type(error).__name__})"
