"""Where the server listens. It imports nothing of Flask: the port is checked, and the worker started, before that."""

from __future__ import annotations

import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Return whether the name or address, without a port, is this machine's own."""
    if host.lower() in {"localhost", "localhost."}:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Open a bound socket; port 0 takes any free one.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    family, _kind, _protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening
