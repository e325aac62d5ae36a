"""Damaged streams of real records, by the tens of thousands: only `BadRecord` may leave, soon and in little memory.

usage: python -m tests.backprobe.record.fuzz [--mutants 100000] [--seed 0]

A mutant is made of its number alone, so any that is found can be made again. Half of the kinds change bytes; the other
half decode a frame without our types, change what it says, and encode it again, so that the damage is well-formed.
"""

from __future__ import annotations

import argparse
import collections
import copy
import random
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from backprobe import record as r
from backprobe.record.encoding.codec import MAGIC, MAX_FRAME
from tests.backprobe.record.rows import full_record

MOST_SECONDS: Final = 2.0
"""CPU time of one mutant of some 30 KB; usual are 1 to 5 ms. The clock would measure the load too."""

MOST_BYTES: Final = 64 << 20
"""Allocated while one mutant is read."""

MAX_RECORD, MAX_ROWS = 1 << 20, 6_000  # below what one frame may hold, so that both limits are met
ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, float("nan"), float("inf"), "", "x", "\0",
    "x" * 9000, "\U0001f600", b"", b"\xff" * 2000, [], {}, [[]], [None] * 40, {"": 0}, {1: 1},
    msgspec.msgpack.Ext(1, b"x"), [0] * 5000, {str(n): "y" for n in range(300)},
)  # fmt: skip

Frames = list[bytes]


def frames_of(stream: bytes) -> Frames:
    """The bodies of a stream's frames."""
    at, found = 0, []
    while at < len(stream):
        (size,) = struct.unpack_from("<I", stream, at)
        found.append(stream[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def framed(bodies: Sequence[bytes]) -> bytes:
    """The opposite."""
    return b"".join(struct.pack("<I", len(body)) + body for body in bodies)


def samples() -> list[Frames]:
    """Streams to damage: a record with a row in every table, a captured one, and one as a compiled writer makes it."""
    captured = (Path(__file__).parent / "versions" / "version_1.bprec").read_bytes()[len(MAGIC) :]
    full = b"".join(r.encode(full_record()))
    return [frames_of(full), frames_of(captured), [_shortened(body) for body in frames_of(full)]]


def _shortened(body: bytes) -> bytes:
    """A frame whose rows end with their last field that is not None, False or 0, as a compiled writer leaves them."""
    kind, rows = msgspec.msgpack.decode(body)
    if not isinstance(rows, list):
        return body
    for row in rows:
        required = sum(field.required for field in msgspec.structs.fields(r.TABLES[kind]))
        while len(row) > required and row[-1] in (None, False, 0, []):
            row.pop()
    return msgspec.msgpack.encode([kind, rows])


# --- kinds of damage to bytes ---------------------------------------------------------------------------------------


def flipped_bits(chance: random.Random, frames: Frames) -> bytes:
    """Some bits of the stream are turned."""
    data = bytearray(framed(frames))
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def cut_short(chance: random.Random, frames: Frames) -> bytes:
    """The stream ends early."""
    data = framed(frames)
    return data[: chance.randrange(len(data))]


def spliced(chance: random.Random, frames: Frames) -> bytes:
    """A piece of the stream stands at another place, instead of what was there or before it."""
    data = bytearray(framed(frames))
    start, to = chance.randrange(len(data)), chance.randrange(len(data))
    piece = data[start : start + chance.randint(1, 400)]
    data[to : to + (len(piece) if chance.random() < 0.5 else 0)] = piece
    return bytes(data)


def noise(chance: random.Random, frames: Frames) -> bytes:
    """Random bytes stand in the stream, in a frame or between two."""
    data = bytearray(framed(frames))
    at = chance.randrange(len(data))
    data[at : at + chance.randrange(20)] = chance.randbytes(chance.randint(1, 60))
    return bytes(data)


def length_lies(chance: random.Random, frames: Frames) -> bytes:
    """A frame says that it is longer or shorter than it is."""
    lied = chance.randrange(len(frames))
    told = chance.choice([0, 1, len(frames[lied]) - 1, len(frames[lied]) + 1, MAX_FRAME, MAX_FRAME + 1, 2**32 - 1])
    parts = [struct.pack("<I", told if n == lied else len(body)) + body for n, body in enumerate(frames)]
    return b"".join(parts)


def version_lies(chance: random.Random, frames: Frames) -> bytes:
    """The header is that of a version before, of this one, or of one to come."""
    told = chance.choice([0, 1, r.SCHEMA_VERSION, r.SCHEMA_VERSION + 1, 999, 2**31])
    header = msgspec.structs.replace(full_record().header, schema_version=told)
    return framed(frames_of(r.header_frame(header)) + frames[1:])


def huge_count(chance: random.Random, frames: Frames) -> bytes:
    """A list, a text or a map says that it holds millions."""
    bodies = list(frames)
    n = chance.randrange(len(bodies))
    body = bytearray(bodies[n])
    heads = [b"\xdd", b"\xdc", b"\xdf", b"\xde", b"\xdb", b"\xda", b"\xc6", b"\xc5", b"\xc9", b"\xc8"]
    head = chance.choice(heads)
    size = 4 if head in (b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9") else 2
    at = chance.randrange(len(body))
    body[at : at + 1] = head + chance.choice(
        [b"\xff" * size, b"\x00" * (size - 1) + b"\xff", b"\x7f" + b"\xff" * (size - 1)]
    )
    bodies[n] = bytes(body)
    return framed(bodies)


def nested_deep(chance: random.Random, frames: Frames) -> bytes:
    """A value is a list in a list in a list, thousands deep."""
    bodies = list(frames)
    n = chance.randrange(len(bodies))
    at = chance.randrange(len(bodies[n]))
    deep = chance.choice([b"\x91", b"\x81\xa1x"]) * chance.randint(100, 60_000)
    bodies[n] = bodies[n][:at] + deep + bodies[n][at:]
    return framed(bodies)


# --- kinds of damage to what is said --------------------------------------------------------------------------------


def type_swapped(chance: random.Random, frames: Frames) -> bytes:
    """A value is one of another type, or one out of range."""

    def change(holder: Any, at: Any) -> None:
        holder[at] = copy.deepcopy(chance.choice(ODD))

    return _changed(chance, frames, change)


def values_mixed(chance: random.Random, frames: Frames) -> bytes:
    """A value stands where another of the same frame stood: right types at wrong places."""
    bodies = list(frames)
    n = chance.randrange(len(bodies))
    told = msgspec.msgpack.decode(bodies[n])
    places = list(_places(told))
    for _ in range(chance.randint(1, 4)):
        (first, at), (other, to) = chance.choice(places), chance.choice(places)
        value = other[to]
        if not _holds(value, first):
            first[at] = value
    bodies[n] = msgspec.msgpack.encode(told)
    return framed(bodies)


def references_lie(chance: random.Random, frames: Frames) -> bytes:
    """Numbers of rows are others."""

    def change(holder: Any, at: Any) -> None:
        if isinstance(holder[at], int):
            holder[at] = chance.choice([0, 1, 2, 5, 99, 2**31 - 1])

    return _changed(chance, frames, change, times=6)


def rows_resized(chance: random.Random, frames: Frames) -> bytes:
    """Rows, lists and maps are longer or shorter than they were."""

    def change(holder: Any, at: Any) -> None:
        value = holder[at]
        if isinstance(value, list):
            holder[at] = chance.choice([value[:-1], value[1:], [*value, None], value * chance.choice([2, 5]), []])

    return _changed(chance, frames, change, times=4)


def frames_shuffled(chance: random.Random, frames: Frames) -> bytes:
    """Whole frames are left out, doubled, or in another order."""
    bodies = list(frames)
    for _ in range(chance.randint(1, 3)):
        n, to = chance.randrange(len(bodies)), chance.randrange(len(bodies))
        match chance.randrange(3):
            case 0 if len(bodies) > 1:
                del bodies[n]
            case 1:
                bodies.insert(to, bodies[n])
            case _:
                bodies[n], bodies[to] = bodies[to], bodies[n]
    return framed(bodies)


def rows_multiplied(chance: random.Random, frames: Frames) -> bytes:
    """One row comes many thousand times."""
    bodies = list(frames)
    n = chance.randrange(len(bodies))
    told = msgspec.msgpack.decode(bodies[n])
    if isinstance(told[1], list) and told[1]:
        row = chance.choice(told[1])
        row_bytes = len(msgspec.msgpack.encode(row))
        told[1] = [row] * min(chance.choice([2000, MAX_ROWS + 1, 60_000]), MAX_FRAME // row_bytes)
    bodies[n] = msgspec.msgpack.encode(told)
    return framed(bodies)


Damage = Callable[[random.Random, Frames], bytes]
KINDS: Final[tuple[Damage, ...]] = (
    flipped_bits, cut_short, spliced, noise, length_lies, version_lies, huge_count, nested_deep,
    type_swapped, values_mixed, references_lie, rows_resized, frames_shuffled, rows_multiplied,
)  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in lists and maps under a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        held = waiting.pop()
        keys = list(range(len(held))) if isinstance(held, list) else list(held)
        for at in keys:
            found.append((held, at))
            if isinstance(held[at], list | dict):
                waiting.append(held[at])
    return found


def _holds(value: Any, holder: Any) -> bool:
    """The value is the holder, or has it inside: putting it there would close a circle."""
    return value is holder or (isinstance(value, list | dict) and any(held is holder for held, _ in _places(value)))


def _changed(chance: random.Random, frames: Frames, change: Callable[[Any, Any], None], times: int = 2) -> bytes:
    bodies = list(frames)
    n = chance.randrange(len(bodies))
    told = msgspec.msgpack.decode(bodies[n])
    for _ in range(chance.randint(1, times)):
        change(*chance.choice(_places(told)))
    bodies[n] = msgspec.msgpack.encode(told)
    return framed(bodies)


# --- reading them ---------------------------------------------------------------------------------------------------


def mutant(number: int, streams: Sequence[Frames]) -> tuple[str, bytes]:
    """The mutant of a number, and its kind."""
    kind = KINDS[number % len(KINDS)]
    chance = random.Random(number)
    return kind.__name__, kind(chance, streams[(number // len(KINDS)) % len(streams)])


def read(data: bytes) -> str:
    """How a stream was taken: "read", "nothing" (no header), or the code of the refusal.

    Raises:
        AssertionError: what was read is not a record that comes back as it went.
    """
    reader = r.FrameReader(MAX_RECORD, MAX_ROWS)
    try:
        half = len(data) // 2
        reader.feed(data[:half])
        reader.feed(data[half:])
        record = reader.record()
    except r.BadRecord as refused:
        assert refused.code.replace("-", "").isalpha()
        assert len(str(refused)) < 400
        return refused.code
    if record is None:
        return "nothing"
    written = r.dumps(record)
    assert r.dumps(r.loads(written)) == written
    return "read"


def main() -> int:
    """Read them all; the numbers at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first one")
    asked = parser.parse_args()
    streams, outcomes = samples(), collections.Counter[str]()
    slowest, largest, start = (0.0, -1), (0, -1), time.perf_counter()
    for number in range(asked.seed, asked.seed + asked.mutants):
        kind, data = mutant(number, streams)
        watched = number % 650 < len(KINDS)  # 1 of 50 of each kind: tracing makes it five times slower
        if watched:
            tracemalloc.start()
        began = time.process_time()
        try:
            outcomes[read(data)] += 1
        except BaseException:
            print(f"mutant {number} ({kind}) broke the reader", file=sys.stderr)
            raise
        if watched:
            largest = max(largest, (tracemalloc.get_traced_memory()[1], number))
            tracemalloc.stop()
        else:
            slowest = max(slowest, (time.process_time() - began, number))
    took = time.perf_counter() - start
    print(
        f"{asked.mutants} mutants of {len(KINDS)} kinds in {took:.0f} s; slowest {slowest[0] * 1000:.0f} ms of CPU time"
    )
    print(f"largest {largest[0] / 2**20:.1f} MiB while read; outcomes {dict(outcomes.most_common())}")
    return int(slowest[0] > MOST_SECONDS or largest[0] > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
