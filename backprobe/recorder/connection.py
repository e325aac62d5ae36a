"""Requests to one service by the standard library: a cluster's base install needs nothing more."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import backprobe

TIMEOUT_SECONDS: Final = 10.0
"""To connect, and between two pieces of an answer."""

MOST_ANSWER_BYTES: Final = 1 << 20
_STALE: Final = (http.client.BadStatusLine, http.client.CannotSendRequest, ConnectionError)
"""What a kept connection ends in when the service has closed it meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back.

    Attributes:
        status: Of HTTP; 0: nothing came. headers: names in lower case. lost: why nothing came; None: something did.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    lost: str | None = None


def checked_url(url: str) -> str:
    """Check the address of a service; return it without a slash at its end.

    Raises:
        ValueError: it is no address of a service; the message says what one is.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"url={url!r} is no address of a service: {error}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise ValueError(f"url={url!r} is no address of a service: it begins with http:// or https://, then a host")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("url= is scheme, host, port and path only; a key goes into BACKPROBE_API_KEY")
    return url.rstrip("/")


class Connection:
    """One connection that is kept and opened again when needed; for one thread.

    Args:
        url: As `checked_url` gives it.
        key: An API key; None: none is sent.
        timeout_seconds: To connect, and between two pieces of an answer.
    """

    def __init__(self, url: str, key: str | None, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._url: SplitResult = urlsplit(url)
        self._timeout = timeout_seconds
        self._headers = {"User-Agent": f"backprobe/{backprobe.__version__}", "Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._open: http.client.HTTPConnection | None = None
        self._before = self._url.path.rstrip("/")

    def ask(self, method: str, path: str, body: bytes | None = None, media: str = "application/json") -> Answer:
        """Send one request, once more if a kept connection turns out to be closed; the answer says what failed."""
        for kept in (self._open is not None, False):
            try:
                return self._send_request(method, path, body, media)
            except _STALE as error:
                self.close()
                if not kept:
                    return Answer(lost=f"{type(error).__name__}: {error}")
            except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a header of an odd key
                self.close()
                return Answer(lost=f"{type(error).__name__}: {error}")
        raise AssertionError

    def close(self) -> None:
        """Close it; the next request opens another one."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _send_request(self, method: str, path: str, body: bytes | None, media: str) -> Answer:
        if self._open is None:
            self._open = self._build_connection()
        headers = self._headers | ({"Content-Type": media} if body is not None else {})
        self._open.request(method, self._before + path, body=body, headers=headers)
        answer = self._open.getresponse()
        told = answer.read(MOST_ANSWER_BYTES)
        if not answer.isclosed():  # there is more than anybody needs
            self.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(status=answer.status, headers=found, body=told)

    def _build_connection(self) -> http.client.HTTPConnection:
        secure = self._url.scheme == "https"
        host, port = self._url.hostname or "", self._url.port or (443 if secure else 80)
        proxy = None if proxy_bypass(host) else getproxies().get(self._url.scheme)
        through = None if proxy is None else urlsplit(proxy if "//" in proxy else f"//{proxy}")
        to, at = (host, port) if through is None else (through.hostname or "", through.port or 3128)
        if secure:
            http_connection = http.client.HTTPSConnection(
                to, at, timeout=self._timeout, context=ssl.create_default_context()
            )
        else:
            http_connection = http.client.HTTPConnection(to, at, timeout=self._timeout)
        if through is not None:
            http_connection.set_tunnel(host, port)
        return http_connection
