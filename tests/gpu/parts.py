"""The parts of `make gpu`, in the order in which they run: what each proves and how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.gpu import captured, memory, numbers, oracle, overhead, seeds, waits, worker
from tests.gpu.place import Place, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part.

    Attributes:
        limit: Seconds after which its process is killed.
    """

    name: str
    what: str
    prove: Callable[[Place], Iterator[Row]]
    limit: float


PARTS: Final = (
    Part(name="seeds", what="the seed documents' CUDA snippets, and their claims", prove=seeds.prove, limit=60),
    Part(name="capture", what="what is recorded of programs on the device", prove=captured.prove, limit=120),
    Part(name="waits", what="how often a captured program waits for the device", prove=waits.prove, limit=90),
    Part(name="statistics", what="numbers that are reduced on the device", prove=numbers.prove, limit=60),
    Part(name="memory", what="out of memory as a finding, with what held it", prove=memory.prove, limit=60),
    Part(name="worker", what="a run on the queue gpu, from the claim to its page", prove=worker.prove, limit=150),
    Part(name="oracle", what="generated programs, recorded, beside what torch says", prove=oracle.prove, limit=200),
    Part(name="overhead", what="what a training step costs under capture", prove=overhead.prove, limit=300),
)
