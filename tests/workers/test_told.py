"""A storm of signals ends a process, and never leaves it waiting for itself."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("full_tier")

WAITING = """
import threading
from workers.signals import set_on_signals
stop = threading.Event()
set_on_signals(stop)
print("ready", flush=True)
while not stop.wait(0.001):
    stop.clear()
    stop.is_set()
"""
"""Takes and gives back the event's lock all the time, as a loop that waits does."""

HOLDING = """
import signal, threading
from workers.signals import set_on_signals
stop = threading.Event()
set_on_signals(stop)
print("ready", flush=True)
with stop._cond:
    signal.raise_signal(signal.SIGTERM)
stop.wait()
"""
"""The signal comes exactly while the thread that hears it holds the event's lock, as `wait` does for a moment."""

SETTING_IN_THE_HANDLER = HOLDING.replace(
    "set_on_signals(stop)", "signal.signal(signal.SIGTERM, lambda *_: stop.set())"
).replace("from workers.signals import set_on_signals\n", "")


def ends(program: str, signals: int = 3000) -> bool:
    """Whether the program has ended within 5 s of the last of so many signals from outside."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        try:
            for _ in range(signals):
                if process.poll() is not None:
                    break
                os.kill(process.pid, signal.SIGTERM)
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            return False
        return True


@pytest.mark.parametrize("attempt", range(5))
def test_a_storm_of_signals_ends_a_process(attempt):
    assert ends(WAITING)


def test_a_signal_while_the_lock_is_held_ends_a_process():
    assert ends(HOLDING, signals=0)


def test_a_handler_that_sets_the_event_itself_would_hang_there():
    """The control: without it the test above proves nothing."""
    assert not ends(SETTING_IN_THE_HANDLER, signals=0)
