"""Where a webhook may lead: which URLs are taken, and which addresses may be connected to.

A URL is a stranger's, and the service stands where strangers do not: beside databases, metadata servers, printers. So

1. A URL is https, names a host and nothing else of authority; a host that ends in a number is an IPv4 address in four
   decimal parts, or refused: what `0x7f.1` and `2130706433` mean is left to nobody.
2. Only global unicast addresses are connected to. What leads to another address in disguise (IPv4 inside IPv6, 6to4,
   NAT64, Teredo) is refused as such.
3. A name is resolved once for each try, and the try connects to an address that was looked at, never to the name.
4. The operator may allow networks; there, and only there, plain http is taken too.
5. Only ports that the operator allows are connected to, also in allowed networks: 443, and 80 where http is taken.
6. Only the operator may know what a name resolves to: the owner of the webhook learns that it is refused.

Source:
    IANA's registries of special-purpose addresses (RFC 6890), October 2025; RFC 6052, 3056, 4380; for 168.63.129.16
    Microsoft's documentation of Azure's virtual public address.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Sequence[str]]
"""Host and port to the texts of its addresses; raises OSError if there are none."""

LONGEST_URL: Final = 2000
_URL: Final = re.compile(r"[!-~]+")
_HOST: Final = re.compile(
    r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")

_NOT_GLOBAL_4: Final = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",  # Azure's agent and metadata, in public space
    )
)  # fmt: skip
HTTPS_PORT: Final = 443
HTTP_PORT: Final = 80
_PORTS: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_GLOBAL_6: Final = tuple(
    ipaddress.IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)
"""Within `_GLOBAL_6`: Teredo and other protocols' own, documentation, 6to4, the AS112 sink."""


class DestinationRefused(Exception):
    """This URL or address is not posted to; the message says why, in a sentence without its full stop.

    Attributes:
        of_a_name: The same where the address is not in the URL but what a name resolves to: without the address.
        seen: For the operator's log; empty: the message says all of it.
    """

    def __init__(self, why: str, *, of_a_name: str = "", seen: str = "") -> None:
        super().__init__(why)
        self.of_a_name, self.seen = of_a_name or why, seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL, taken apart.

    Attributes:
        host: A name in ASCII, or an address without brackets. literal: the address, if it is one.
        path: With the query; begins with `/`.
    """

    https: bool
    host: str
    port: int
    path: str
    literal: Address | None

    @property
    def authority(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (HTTPS_PORT if self.https else HTTP_PORT) else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the operator allows.

    Attributes:
        networks: Those that may be posted to although they are not global; plain http is for them alone.
        ports: Those that may be posted to, there and elsewhere.
    """

    networks: tuple[Network, ...] = ()
    ports: tuple[range, ...] = (range(HTTPS_PORT, HTTPS_PORT + 1),)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Allowed:
        """Read BACKPROBE_WEBHOOK_NETWORKS and _PORTS, each a list joined by commas.

        Without the second it is port 443, and 80 if there is a network.

        Raises:
            ValueError: one of a list is no network, or no port.
        """
        try:
            named = _split_list(environ.get("BACKPROBE_WEBHOOK_NETWORKS", ""))
            networks = tuple(ipaddress.ip_network(text) for text in named)
        except ValueError as error:
            raise ValueError(f"BACKPROBE_WEBHOOK_NETWORKS: {error}; it takes 10.1.0.0/16,fd00:1::/64") from None
        default = f"{HTTPS_PORT},{HTTP_PORT}" if networks else str(HTTPS_PORT)
        ports = tuple(
            _ports(text) for text in _split_list(environ.get("BACKPROBE_WEBHOOK_PORTS", "")) or _split_list(default)
        )
        return cls(networks=networks, ports=ports)

    def target(self, url: str) -> Target:
        """Check that a URL may be posted to, as far as it shows by itself: a name is not resolved.

        Raises:
            DestinationRefused: it is not taken.
        """
        found = _parse_url(url)
        if not found.https and not self.networks:
            raise DestinationRefused("only https is taken")
        if not any(found.port in ports for ports in self.ports):
            raise DestinationRefused(f"port {found.port} is not allowed; {self._ports_told()} is")
        if found.literal is not None:
            self.check(found.literal, https=found.https)
        return found

    def _ports_told(self) -> str:
        pairs = ((ports[0], ports[-1]) for ports in self.ports)
        return " or ".join(str(first) if first == last else f"{first}-{last}" for first, last in pairs)

    def check(self, address: Address, *, https: bool = True) -> None:
        """Let an address pass.

        Raises:
            DestinationRefused: it is neither global unicast nor allowed; or plain http to one not allowed.
        """
        if any(address in network for network in self.networks if network.version == address.version):
            return
        if (why := _not_global(address)) is not None:
            raise DestinationRefused(
                f"{address} is {why}", of_a_name="its name leads to an address that is not allowed"
            )
        if not https:
            raise DestinationRefused(
                f"only https is taken to {address}", of_a_name="only https is taken to where its name leads"
            )

    def addresses(self, target: Target, resolve: Resolve) -> list[Address]:
        """List the addresses that a try may connect to, in the resolver's order; it is not asked for a literal.

        Raises:
            DestinationRefused: no address is allowed; says why of the first. A name's addresses are only in `seen`.
            OSError: it has none.
        """
        if target.literal is not None:
            self.check(target.literal, https=target.https)
            return [target.literal]
        kept: list[Address] = []
        refused: DestinationRefused | None = None
        for text in resolve(target.host, target.port):
            try:
                address = ipaddress.ip_address(text)
                self.check(address, https=target.https)
            except ValueError:
                refused = refused or DestinationRefused("its resolver answered with what is no address")
            except DestinationRefused as error:
                refused = refused or DestinationRefused(error.of_a_name, seen=str(error))
            else:
                kept.append(address)
        if not kept:
            raise refused or OSError("the name has no address")
        return kept


def stands_in(url: str, address: str) -> bool:
    """Return whether the URL's host is written as this address. A name that leads there does not count."""
    try:
        return _parse_url(url).literal == ipaddress.ip_address(address)
    except (DestinationRefused, ValueError):
        return False


def resolve_host(host: str, port: int) -> list[str]:
    """Resolve a name to its addresses, as the machine resolves names.

    Raises:
        OSError: it has none, or no server of names answers.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _ports(text: str) -> range:
    """`8443` or `9000-9100`.

    Raises:
        ValueError: it is neither.
    """
    found = _PORTS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 0 < first <= last <= 65535:
        raise ValueError(f"BACKPROBE_WEBHOOK_PORTS has {text!r}; it takes 443,8443,9000-9100")
    return range(first, last + 1)


def _parse_url(url: str) -> Target:
    if len(url) > LONGEST_URL:
        raise DestinationRefused(f"a URL has at most {LONGEST_URL} characters")
    if _URL.fullmatch(url) is None or "\\" in url:
        raise DestinationRefused(
            "a URL is printable ASCII without blanks and backslashes; a name beyond that is written `xn--...`"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise DestinationRefused("this is no URL") from None
    if parts.scheme not in {"https", "http"}:
        raise DestinationRefused("only https is taken")
    if "@" in parts.netloc:
        raise DestinationRefused("a user or a password has no place in it")
    if "#" in url:
        raise DestinationRefused("a fragment is never sent; leave it out")
    if port == 0 or parts.netloc.endswith(":"):
        raise DestinationRefused("its port is not one")
    https = parts.scheme == "https"
    host, literal = _host(parts)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(https=https, host=host, port=port or (HTTPS_PORT if https else HTTP_PORT), path=path, literal=literal)


def _host(parts: SplitResult) -> tuple[str, Address | None]:
    host = parts.hostname or ""
    if "[" in parts.netloc:
        try:
            return host, ipaddress.IPv6Address(host if "%" not in host else "")
        except ValueError:
            raise DestinationRefused("the text in brackets is not an IPv6 address") from None
    if _HOST.fullmatch(host) is None:
        raise DestinationRefused("its host is neither a name nor an address")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            return host, ipaddress.IPv4Address(host)
        except ValueError:
            raise DestinationRefused("an IPv4 address is written as four decimal numbers") from None
    return host, None


def _not_global(address: Address) -> str | None:
    """Why an address is not global unicast; None: it is."""
    if isinstance(address, ipaddress.IPv4Address):
        inside = any(address in network for network in _NOT_GLOBAL_4)
        return _kind(address) if inside or not address.is_global else None
    if address.ipv4_mapped is not None:
        return "an IPv4 address inside an IPv6 one"
    if address not in _GLOBAL_6 or any(address in network for network in _NOT_GLOBAL_6) or not address.is_global:
        return _kind(address)
    return None


def _kind(address: Address) -> str:
    kinds = (
        (address.is_loopback, "a loopback address"),
        (address.is_link_local, "a link-local address"),
        (address.is_multicast, "a multicast address"),
        (address.is_private, "a private or reserved address"),
    )
    return next((text for true, text in kinds if true), "not a global unicast address")
