"""The embedded broker under kill -9: 4 producers, 4 consumers, a loaded machine; nothing lost, nothing torn.

    python -m tests.chaos.messages [--messages 100000]

Everything that was published must be taken, whole. A reader that is killed between what it did with a message and its
acknowledgement leaves it to another: each kill can double one.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from store.database.settings import EMBEDDED_TRANSPORT
from tests.support.resources import ROOT

STRESS = "tests.workers.broker.stress"
SIDES = 4
KILLS = 40
"""Spread over the messages, not over time: a loaded machine starts a process more slowly than it would be killed."""


@dataclass
class Traffic:
    """Processes on one folder, and what they have told.

    Attributes:
        sent: Names that a producer has told of. taken: by consumers, with how often. errors: of consumers.
    """

    folder: Path
    messages: int
    sent: set[str] = field(default_factory=set)
    taken: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    _logs: list[tuple[str, Path]] = field(default_factory=list)

    def spawn(self, role: str, number: str, count: int) -> subprocess.Popen:
        log = self.folder / f"{len(self._logs)}.{role}"
        self._logs.append((role, log))
        with log.open("wb") as output:
            command = [sys.executable, "-m", STRESS, role, EMBEDDED_TRANSPORT, str(self.folder), number, str(count)]
            return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)

    def carry(self) -> None:
        """Send and take everything, with kills on the way."""
        each, began = self.messages // SIDES, time.monotonic()
        producers = {n: self.spawn("produce", f"{n}.0", each) for n in range(SIDES)}
        consumers = [self.spawn("consume", "0", 0) for _ in range(SIDES)]
        kill_at = self.messages // KILLS
        while any(producer.poll() is None for producer in producers.values()):
            if sum(_lines(log) for role, log in self._logs if role == "produce") >= kill_at:
                kill_at += self.messages // KILLS
                self._kill_one(producers, consumers, each)
            time.sleep(0.02)
        (self.folder / "stop").touch()
        for consumer in consumers:
            consumer.wait(600)
        self.seconds = time.monotonic() - began
        for role, log in self._logs:
            self._read(role, log)

    def _kill_one(self, producers: dict[int, subprocess.Popen], consumers: list[subprocess.Popen], each: int) -> None:
        if random.random() < 0.5:
            n = random.randrange(SIDES)
            consumers[n].kill()
            consumers[n].wait()
            self.kills["consumers"] += 1
            consumers[n] = self.spawn("consume", "0", 0)
            return
        n = random.choice([n for n, process in producers.items() if process.poll() is None] or [0])
        if producers[n].poll() is None:
            producers[n].send_signal(signal.SIGKILL)
            producers[n].wait()
            self.kills["producers"] += 1
            told = sum(_lines(log) for role, log in self._logs if role == "produce" and _number(log) == n)
            generation = self.kills["producers"]
            producers[n] = self.spawn("produce", f"{n}.{generation}", max(1, each - told))

    def _read(self, role: str, log: Path) -> None:
        text = log.read_text()
        whole = text[: text.rfind("\n") + 1].splitlines()  # a killed process may have written half a line
        if role == "produce":
            self.sent |= set(whole)
            return
        self.taken.update(line for line in whole if ":" in line)
        self.errors += [line for line in whole if line.startswith("error")]

    @property
    def lost_count(self) -> int:
        """Published, told, and never taken."""
        return len(self.sent - set(self.taken))

    @property
    def doubled(self) -> int:
        return sum(times - 1 for times in self.taken.values())


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n")


def _number(log: Path) -> int:
    with log.open() as lines:
        first = lines.readline()
    return int(first.partition(".")[0]) if "." in first else -1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.messages", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="backprobe-messages-") as folder:
        traffic = Traffic(folder=Path(folder), messages=asked.messages)
        (traffic.folder / "messages").mkdir()
        traffic.carry()
        left = sum(1 for _ in (traffic.folder / "messages").iterdir())
    print(
        f"embedded broker: {len(traffic.sent)} messages sent in {traffic.seconds:.0f} s, {len(traffic.taken)} taken, "
        f"{traffic.lost_count} lost, {traffic.doubled} doubled ({traffic.kills['consumers']} consumers killed), "
        f"{len(traffic.errors)} torn; {traffic.kills['producers']} producers killed; "
        f"{left} files left; load {os.getloadavg()[0]:.1f}"
    )
    return int(traffic.lost_count > 0 or traffic.doubled > traffic.kills["consumers"] or bool(traffic.errors))


if __name__ == "__main__":
    sys.exit(main())
