"""Numbers for people: counts with their nouns, bytes, shapes, the elements of small tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backprobe.record import SmallValue

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def count_noun(count: int, noun: str, plural: str | None = None) -> str:
    """`1 tensor`, `6 tensors`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_bytes(size: int) -> str:
    """Format bytes with a unit of 1024: `96 B`, `1.2 KiB`."""
    amount, unit = float(size), _UNITS[0]
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def format_shape(shape: tuple[int, ...] | None) -> str:
    """`[2, 3]`; `[]` for a scalar; `?` where torch defines none."""
    return "?" if shape is None else f"[{', '.join(map(str, shape))}]"


def number(value: object) -> str:
    """One element, at most 5 significant digits."""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, complex):
        return f"{value.real:.5g}{value.imag:+.5g}j"
    return str(value)


def elements(row: SmallValue, most: int = 6) -> str:
    """Write the elements of a small tensor: all if they are few, else the first ones and how many there are."""
    from backprobe.record import flat

    values = flat(row)
    if row.shape == ():
        return number(values[0])
    if len(row.shape) == 1 and len(values) <= most:
        return f"[{', '.join(map(number, values))}]"
    if len(values) <= most and len(row.shape) == 2:
        width = row.shape[1]
        lines = [values[start : start + width] for start in range(0, len(values), max(1, width))]
        return f"[{', '.join('[' + ', '.join(map(number, line)) + ']' for line in lines)}]"
    shown = ", ".join(map(number, values[:most]))
    return f"[{shown}, ...] ({len(values)} elements)" if len(values) > most else f"[{shown}]"
