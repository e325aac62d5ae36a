"""Signals, handed to a thread. A handler interrupts its own thread wherever that is, so it may take no lock.

`threading.Event.set` takes one: a second signal in the middle of it waits for itself for ever. Seen: a reaper that
outlived its `serve` for half an hour. `SimpleQueue.put` is the one call that Python makes for this.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

ENDING: Final = (signal.SIGTERM, signal.SIGINT)


def telling(what: Callable[[], None]) -> Callable[..., None]:
    """Return a signal handler that calls `what` in a new thread, once for each signal."""
    heard: SimpleQueue[None] = SimpleQueue()

    def listen() -> None:
        while True:
            heard.get()
            what()

    def tell(*_: Any, **__: Any) -> None:
        heard.put(None)

    threading.Thread(target=listen, name="signals", daemon=True).start()
    return tell


def set_on_signals(stop: threading.Event) -> None:
    """SIGTERM and SIGINT set the event."""
    handler = telling(stop.set)
    for number in ENDING:
        signal.signal(number, handler)
