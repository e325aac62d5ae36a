"""The limits of a run: the one table of their names, units, defaults, least and most; and the memory they promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final

MIB: Final = 1 << 20
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit.

    Attributes:
        name: Of the API's field, the column's key and the message.
        unit: What a number of it counts.
        default, least, most: In that unit. A request outside is refused, never clamped.
    """

    name: str
    unit: str
    default: int
    least: int
    most: int


LIMITS: Final[Mapping[str, Limit]] = {
    limit.name: limit
    for limit in (
        Limit(name="cpu_seconds", unit="s of user and system time", default=30, least=1, most=3600),
        Limit(name="wall_seconds", unit="s from the start of the program", default=60, least=1, most=3600),
        Limit(
            name="memory_bytes", unit="bytes added to the warm process", default=2 * GIB, least=64 * MIB, most=64 * GIB
        ),
        Limit(name="threads", unit="threads that torch may use", default=1, least=1, most=64),
        Limit(name="output_bytes", unit="bytes of stdout and stderr", default=MIB, least=4096, most=16 * MIB),
        Limit(name="record_bytes", unit="bytes of frames", default=32 * MIB, least=64 << 10, most=256 * MIB),
        Limit(name="record_rows", unit="rows in all frames", default=2_000_000, least=1000, most=10_000_000),
        Limit(name="disk_bytes", unit="bytes in the private folders", default=64 * MIB, least=0, most=4 * GIB),
        Limit(name="processes", unit="processes at one time", default=1, least=1, most=64),
    )
}
"""By name, in the order in which they are shown."""


WARM_BYTES: Final = 256 * MIB
"""Memory of the warm process that a run may change, and then has a copy of."""


class LimitOutOfRange(ValueError):
    """The caller asked for a limit outside its range; the message names the field and the range."""

    code: Final = "limit-out-of-range"

    def __init__(self, name: str, value: object, least: int, most: int) -> None:
        super().__init__(f"{name} must be a whole number from {least} to {most}; {value!r} was asked for")
        self.name, self.value, self.least, self.most = name, value, least, most


class UnknownLimit(ValueError):
    """The caller named a limit that does not exist; the message lists those that do."""

    code: Final = "unknown-limit"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no limit {name!r}; the limits are {', '.join(LIMITS)}")
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use; the attributes are those of `LIMITS`."""

    cpu_seconds: int = LIMITS["cpu_seconds"].default
    wall_seconds: int = LIMITS["wall_seconds"].default
    memory_bytes: int = LIMITS["memory_bytes"].default
    threads: int = LIMITS["threads"].default
    output_bytes: int = LIMITS["output_bytes"].default
    record_bytes: int = LIMITS["record_bytes"].default
    record_rows: int = LIMITS["record_rows"].default
    disk_bytes: int = LIMITS["disk_bytes"].default
    processes: int = LIMITS["processes"].default

    @classmethod
    def from_request(cls, asked: Mapping[str, object], most: Mapping[str, int] | None = None) -> Limits:
        """Return the limits that were asked for; another one takes its default, or its maximum if that is less.

        Args:
            asked: By name.
            most: The operator's maxima by name; a limit without one has that of `LIMITS`.

        Raises:
            UnknownLimit: a name that is not in `LIMITS`.
            LimitOutOfRange: not a whole number, or outside its range.
        """
        maxima = most or {}
        taken = {
            name: min(limit.default, maxima[name])
            for name, limit in LIMITS.items()
            if name in maxima and name not in asked
        }
        for name, value in asked.items():
            limit = LIMITS.get(name)
            if limit is None:
                raise UnknownLimit(name)
            highest = maxima.get(name, limit.most)
            if isinstance(value, bool) or not isinstance(value, int) or not limit.least <= value <= highest:
                raise LimitOutOfRange(name, value, limit.least, highest)
            taken[name] = value
        return cls(**taken)

    @property
    def promised_bytes(self) -> int:
        """The most memory that a run with these limits can hold, its private folders included."""
        return self.memory_bytes + self.disk_bytes + WARM_BYTES

    @classmethod
    def from_stored(cls, stored: Mapping[str, int]) -> Limits:
        """Make the limits of a stored run. Unknown names are dropped, missing ones take today's default."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in known})

    def to_column(self) -> dict[str, int]:
        """As the `run.limits` column keeps them."""
        return asdict(self)


def tenant_memory_bytes(memory_bytes: int) -> int:
    """Return how much of the memory of a worker's runs the runs of one tenant may have, if there are other tenants.

    It is three quarters, and it leaves room for a run of somebody else with the default limits, where both have room.
    """
    default = Limits().promised_bytes
    return max(memory_bytes - max(memory_bytes // 4, default), min(memory_bytes, default))
