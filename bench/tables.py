"""Figures as Markdown tables, with the machine they were measured on."""

import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def middle(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def spread(values: Sequence[float], form: str = "{:.1f}") -> str:
    """Median, with the least and the most behind it."""
    return f"{form.format(middle(values))} ({form.format(min(values))} to {form.format(max(values))})"


def pair_ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """The ratio of each pair measured in turn; a machine that slows down shifts both halves of a pair."""
    return [a / b for a, b in zip(above, below, strict=True)]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def load_table(name: str) -> dict[str, dict[str, str]]:
    """The table in `bench/results/<name>.md` by row and column; empty if there is none."""
    path = RESULTS / f"{name}.md"
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")] if path.exists() else []
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(cells[0][1:], row[1:], strict=True)) for row in cells[2:]}


def machine() -> str:
    """What it was measured on, in one line; nothing that names the machine."""
    load = os.getloadavg()[0]
    return (
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release().split('-')[0]}, load {load:.1f} at the end, {datetime.now(UTC):%Y-%m-%d}"
    )


def write(name: str, title: str, body: str) -> None:
    """Print the result and keep it as `bench/results/<name>.md`."""
    text = f"# {title}\n\n{body}\n\nMeasured on: {machine()}.\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    print(text)
