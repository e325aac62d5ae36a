"""A TCP forwarder between the workers and a server, so that a test can cut the one from the other."""

import contextlib
import selectors
import socket
import threading

WAIT_SECONDS = 0.05


class Forwarder:
    """Carries each connection to `127.0.0.1:port` on to a server until it is cut; the forwarder chooses the port.

    `cut(silent=False)`: connections are closed and new ones refused at once, as by a server that has gone.
    `cut(silent=True)`: nothing moves, no error is seen, as behind a firewall; what was sent arrives after `fix`.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listening.getsockname()[1]
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._moving = threading.Event()
        self._moving.set()
        self._refusing = self._closed = False
        for loop in (self._accept, self._carry):
            threading.Thread(target=loop, daemon=True).start()

    def cut(self, *, silent: bool) -> None:
        if silent:
            self._moving.clear()
            return
        self._refusing = True
        self._drop_all()

    def fix(self) -> None:
        self._refusing = False
        self._moving.set()

    def close(self) -> None:
        self._closed = True
        self._moving.set()
        self._listening.close()
        self._drop_all()

    def _drop_all(self) -> None:
        with self._lock:
            for pair in self._pairs:
                with contextlib.suppress(OSError):
                    pair.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                self._pairs |= {client: server, server: client}

    def _carry(self) -> None:
        while not self._closed:
            self._moving.wait()
            with self._lock:
                known = list(self._pairs)
            if not known:
                threading.Event().wait(WAIT_SECONDS)
                continue
            with selectors.DefaultSelector() as selector:
                for connection in known:
                    with contextlib.suppress(ValueError, KeyError):
                        selector.register(connection, selectors.EVENT_READ)
                for key, _ in selector.select(WAIT_SECONDS):
                    if self._moving.is_set():
                        self._pass_on(key.fileobj)

    def _pass_on(self, source: socket.socket) -> None:
        target = self._pairs.get(source)
        if target is None:
            return
        try:
            piece = source.recv(1 << 16)
            target.sendall(piece)
        except OSError:
            piece = b""
        if not piece:
            with self._lock:
                for connection in (source, target):
                    self._pairs.pop(connection, None)
            source.close()
            target.close()
