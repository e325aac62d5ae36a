"""A tenant that takes all it can get of one thing: streams, waits, room for bodies, connections, requests.

`with hold_capacity("streams", keys):` holds them meanwhile. What is held lives in this process. Requests without a
pause, and the control, two programs that only burn processor time, are separate processes.
"""

import contextlib
import json
import multiprocessing
import socket
import threading
import time
from collections.abc import Iterator

from backprobe.client import new_run_id
from bench.caller import Caller


def _streams(greedy: list[Caller]) -> Iterator[socket.socket]:
    run = greedy[0].submit()
    for number in range(1000):
        yield greedy[number % len(greedy)].stream(run)


def _waits(greedy: list[Caller]) -> Iterator[socket.socket]:
    run = greedy[0].submit()
    for number in range(16):
        caller = greedy[number % len(greedy)]
        yield caller.open_connection(caller.head("GET", f"/v1/runs/{run}", Prefer="wait=30"))


def _bodies(greedy: list[Caller]) -> Iterator[socket.socket]:
    piece = b"x" * (8 << 20)
    for number in range(48):  # 384 MiB on the disk of temporary files
        caller = greedy[number % len(greedy)]
        yield caller.open_connection(caller.head("POST", "/v1/audits", Content_Length=256 << 20), piece)


def _connections(greedy: list[Caller]) -> Iterator[socket.socket]:
    for number in range(2500):
        yield greedy[0].open_connection(b"GET /v1/runs HTTP/1.1\r\nHost: loc" if number % 2 else b"")


def _busy(kind: str, greedy: list[Caller], going: threading.Event) -> None:
    """In a separate process, send requests without a pause."""
    items = [{"custom_id": str(number), "source": f"x = {number}\n"} for number in range(100)]
    audit = json.dumps({"items": items}).encode()

    def client(caller: Caller) -> None:
        while True:
            with contextlib.suppress(RuntimeError, OSError):
                if kind == "audits":
                    caller.ask("POST", "/v1/audits", audit)
                elif kind == "queue":
                    caller.submit()
                else:
                    caller.ask("GET", "/v1/findings?limit=1000")
                    caller.ask("PUT", f"/v1/runs/{new_run_id()}", b"{}")
                going.set()

    for caller in greedy * (1 if kind == "audits" else 4):
        threading.Thread(target=client, args=(caller,), daemon=True).start()
    threading.Event().wait()


HELD = {"streams": _streams, "waits": _waits, "body room": _bodies, "connections": _connections}
BUSY = ("queue", "database", "audits")
PROCESSOR = "processor, by two busy programs"
"""The control: nobody asks the service for anything; what a request is slowed down by is the machine's share."""


THINGS = (*HELD, *BUSY, PROCESSOR)


def _burn(_: str, __: list[Caller], going: threading.Event) -> None:
    going.set()
    while True:
        pass


@contextlib.contextmanager
def hold_capacity(kind: str, greedy: list[Caller]) -> Iterator[None]:
    """All that this tenant can get of it, meanwhile."""
    if kind in HELD:
        with contextlib.ExitStack() as held:
            for connection in HELD[kind](greedy):
                held.enter_context(contextlib.closing(connection))
            time.sleep(0.3)
            yield
        time.sleep(0.3)
        return
    spawn = multiprocessing.get_context("spawn")
    going = spawn.Event()
    target, count = (_burn, 2) if kind == PROCESSOR else (_busy, 1)
    processes = [spawn.Process(target=target, args=(kind, greedy, going), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        going.wait(60)
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
        time.sleep(0.5)
