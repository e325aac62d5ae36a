"""What 1e8 to 1e11 snapshots take, worked out from the bytes and rates that `bench/store.py` measured last."""

import re
from pathlib import Path

CHUNK = 480
SIZES = (10**8, 10**9, 10**10, 10**11)
LAYOUT = {
    10**8: "one SQLite file, or PostgreSQL as it is",
    10**9: "PostgreSQL, as it is",
    10**10: "PostgreSQL by month; below each month HASH (`run_id`) x 4; a read replica for the dashboard",
    10**11: "the same, a tablespace for each month; old months on slower disks",
}


def measured(path: Path) -> dict[str, tuple[str, ...]]:
    """The rows of the bench's table by their first cell."""
    rows = [line.strip("| ").split(" | ") for line in path.read_text().splitlines() if line.startswith("| ")]
    return {row[0]: tuple(row[1:]) for row in rows}


def number(cell: str) -> float:
    """The first number in a cell, thousands with commas."""
    found = re.search(r"[\d,]+(?:\.\d+)?", cell)
    if found is None:
        raise ValueError(f"no number in {cell!r}: run `python -m bench.store`")
    return float(found.group().replace(",", ""))


def plan(path: Path) -> str:
    """The plan as a Markdown table."""
    rows = measured(path)
    each = number(rows["bytes per snapshot, full chunks"][1])
    rate = number(rows["full chunks: thousand snapshots/s"][1].partition(";")[2]) * 1e3
    lines = [
        "| snapshots | PostgreSQL, indices included | chunk rows, at least | full chunks written, CPU | laid out |",
        "|---|---|---|---|---|",
    ]
    for size in SIZES:
        hours = size / rate / 3600
        time = f"{hours * 3600:,.0f} s" if hours < 1 else f"{hours:,.1f} h"
        cells = (_short(f"{size:.0e}"), _bytes(size * each), _short(f"{size / CHUNK:.1e}"), time)
        lines.append(f"| {' | '.join(cells)} | {LAYOUT[size]} |")
    return "\n".join(lines)


def _short(power: str) -> str:
    return power.replace("+0", "").replace("+", "")


def _bytes(count: float) -> str:
    for unit in ("GB", "TB"):
        count /= 1e9 if unit == "GB" else 1e3
        if count < 1000:
            break
    return f"{count:,.1f} {unit}"
