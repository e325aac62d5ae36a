"""What is in hand of all requests' bodies: they are read, onto disk, before anybody has asked who sends them.

1. A body up to 64 KiB is in memory and is not counted: it is what nearly every request has, and is always taken.
2. Beyond, all bodies together have so much room, and never more than three quarters of what the file system has. The
   one that grows when it is full is refused, and may come again; so is one that finds the file system full.
3. What a body took is given back when it was answered or refused, or when its connection has gone.
4. A tenant has at most three quarters of the room. Whose a body is says its Authorization, if that was good for an
   earlier request; all bodies of which it is not known have a quarter together, where keys are demanded, and count
   against each tenant: they may be its own.
5. Where keys are demanded, bodies that come with no key at all have a sixteenth of the room apart: their requests will
   be refused, and they take nothing from anybody.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.utilities import BadRequest, Error

if TYPE_CHECKING:
    from waitress.adjustments import Adjustments

MOST_BYTES: Final = 2 << 30
"""Of all bodies together, on the disk of temporary files: eight of the largest."""

SMALL_BYTES: Final = 64 << 10
"""Of a body that is kept in memory: 128 MiB, if every connection has one."""

MOST_CHUNK_TEXT: Final = 16 << 10
"""Bytes of a chunk's extension or of the trailer: waitress searches all of it again with each piece that comes."""

RETRY_SECONDS: Final = 5

NO_KEY: Final = 0
"""In the place of a tenant's number: the sender has shown no key."""

NO_KEY_SHARE: Final = 16
"""Senders without a key have this part of the room beside it."""

_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

MOST_KNOWN: Final = 10_000
"""Authorizations that are remembered; the oldest are forgotten."""

_SESSION: Final = re.compile(r"(?:^|;)\s*(?:__Host-)?backprobe=([^;\s]+)")
"""The cookie of a login (`service.auth.login`)."""


class NoRoom(Error):
    """There is no room for more of this body."""

    code = 503
    reason = "Service Unavailable"


def credentials(authorization: str | None, cookie: str | None) -> str:
    """Return what a request authenticates with: its Authorization, else the cookie of a login; empty: neither."""
    if authorization:
        return authorization
    found = _SESSION.search(cookie or "")
    return "" if found is None else f"Session {found[1]}"


class Senders:
    """Which tenant an Authorization is of, as of the last request with it that was let in."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._knowing = threading.Lock()

    def remember(self, authorization: str, tenant_id: int) -> None:
        """Remember that this Authorization is valid, and of this tenant."""
        place = _place(authorization)
        if self._known.get(place) == tenant_id:
            return
        with self._knowing:
            self._known[place] = tenant_id
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def tenant(self, authorization: str) -> int | None:
        """Whose it is; None: not known, which may be because it is good for nothing."""
        return self._known.get(_place(authorization))


def _place(authorization: str) -> bytes:
    """Return the same digest for each spelling of one key: `bearer  KEY ` authenticates as `Bearer KEY` does."""
    scheme, _, secret = authorization.strip().partition(" ")
    return hashlib.sha256(f"{scheme.lower()} {secret.strip()}".encode("utf-8", "surrogatepass")).digest()


class BodyRoom:
    """The room of one server.

    Args:
        senders: Who is known.
        most: Bytes of all bodies together.
        keyed: Keys are demanded: without, whoever is not known is the one person who uses this server.
        folder: Where bodies lie. None: its file system is not asked for its room.
    """

    def __init__(
        self, senders: Senders, most: int = MOST_BYTES, *, keyed: bool = True, folder: str | None = None
    ) -> None:
        self.senders = senders
        self._keyed, self._most, self._folder = keyed, most, folder
        self._counting = threading.Lock()  # bodies are read by the loop, and given back by who has answered
        self._taken: Counter[int | None] = Counter()

    @property
    def bytes_taken(self) -> int:
        """Bytes of all bodies that are held now."""
        return self._taken.total()

    def owner(self, shown: str) -> int | None:
        """Whose the body is of a request with these credentials: a tenant's number, `NO_KEY`, or None: not known."""
        return NO_KEY if self._keyed and not shown else self.senders.tenant(shown)

    def take(self, size: int, tenant: int | None) -> bool:
        """Whether there was room for so many bytes; then they are taken."""
        with self._counting:
            fits = self._fits(size, tenant)
            self._taken[tenant] += size if fits else 0
        return fits

    def _fits(self, size: int, tenant: int | None) -> bool:
        most = self._most_now()
        if tenant == NO_KEY:
            return self._taken[NO_KEY] + size <= most // NO_KEY_SHARE
        of_tenant, of_strangers = self.shares(most)
        strangers = self._taken[None]
        if tenant is None:
            largest = max((taken for owner, taken in self._taken.items() if owner), default=0)
            fits = strangers + size <= of_strangers and largest + strangers + size <= of_tenant
        else:
            fits = self._taken[tenant] + strangers + size <= of_tenant
        return fits and self._taken.total() - self._taken[NO_KEY] + size <= most

    def shares(self, most: int) -> tuple[int, int]:
        """Return what one tenant may have of a room, and what all unknown senders may have together."""
        return (most * 3 // 4, most // 4) if self._keyed else (most, most)

    def _most_now(self) -> int:
        """Bytes of all bodies together that the file system has room for, a quarter of it left to others."""
        if self._folder is None:
            return self._most
        found = os.statvfs(self._folder)
        return min(self._most, (found.f_bavail * found.f_frsize + self._taken.total()) * 3 // 4)

    def give_back(self, size: int, tenant: int | None) -> None:
        """So many bytes are in hand no more."""
        with self._counting:
            self._taken[tenant] -= size
            self._taken += Counter()  # who has none is not counted

    def parser(self, settings: Adjustments) -> HTTPRequestParser:
        """Make the parser of one request of this server."""
        return _Parser(settings, self)


class _Parser(HTTPRequestParser):
    def __init__(self, settings: Adjustments, room: BodyRoom) -> None:
        super().__init__(settings)
        self._room, self._taken = room, 0
        self._tenant: int | None = None

    def parse_header(self, header_plus: bytes) -> None:
        """Refuse a body of which a proxy and we could see different ends, and take what follows for another's request.

        Source:
            RFC 9112, 6.1 and 6.3: Transfer-Encoding beside Content-Length, or in a request of HTTP/1.0. RFC 9112, 3.2:
            more than one Host, of which a proxy may believe another.
        """
        super().parse_header(header_plus)
        found: Any = self
        if "," in found.headers.get("HOST", ""):  # waitress joins the values of two headers
            raise ParsingError("a request has one Host")
        if found.version == "1.1" and "HOST" not in found.headers:
            raise ParsingError("a request of HTTP/1.1 has a Host")
        if (found.chunked and "CONTENT_LENGTH" in found.headers) or "TRANSFER_ENCODING" in found.headers:
            raise ParsingError("Transfer-Encoding goes with no Content-Length, and not with HTTP/1.0")

    def received(self, data: bytes) -> int:
        """Read on, as far as there is room."""
        found: Any = self  # typeshed lacks what waitress sets
        try:
            consumed = super().received(data)
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            self._refuse("the disk of temporary files is full")
            return len(data)
        if not found.error and _unread_chunk_text(found.body_rcv) > MOST_CHUNK_TEXT:
            found.error, found.completed = BadRequest("The extension of a chunk or the trailer is too long"), True
            self.close()
        grown = found.body_bytes_received - self._taken
        if grown > SMALL_BYTES and not found.error:
            if not self._taken:
                shown = credentials(found.headers.get("AUTHORIZATION"), found.headers.get("COOKIE"))
                self._tenant = self._room.owner(shown)
            if self._room.take(grown, self._tenant):
                self._taken += grown
            else:
                self._refuse("there is no room for its body now")
        return consumed

    def _refuse(self, why: str) -> None:
        found: Any = self
        found.error, found.completed = NoRoom(why), True
        self.close()  # before it is answered: of those that grow side by side, the others go on

    def close(self) -> None:
        """Drop the body."""
        with contextlib.suppress(OSError):  # what was still to be written finds the disk full too
            super().close()
        self._room.give_back(self._taken, self._tenant)
        self._taken = 0


def _unread_chunk_text(receiver: Any) -> int:
    """Return the bytes of a line before a chunk or of a trailer whose end has not come."""
    return len(getattr(receiver, "control_line", b"")) + len(getattr(receiver, "trailer", b""))
