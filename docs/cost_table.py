"""The cost table of `docs/how-it-works.md`, made of the results of `bench/overhead.py`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

MODELS: Final[Mapping[str, str]] = {
    "resnet18": "ResNet-18",
    "gpt2": "GPT-2, 4 layers",
    "charrnn": "2-layer LSTM",
    "mlp": "3-layer MLP",
    "pinn": "PINN, second derivatives",
    "lstmcell": "LSTM cell in a Python loop",
    "tiny": "tiny: steps of 0.1 ms",
}
"""The models of the table; the largest steps come first."""

COLUMNS: Final = ("state", "grad", "full", "sampled", "detect_anomaly", "wandb.watch", "torchlens")


def cost_table(results: Path) -> str:
    """Return the ratios of the results as one row for each model, with the date of the measurement.

    Raises:
        ValueError: the results lack a model of the table.
    """
    ratios: dict[tuple[str, str], str] = {}
    steps: dict[str, str] = {}
    for line in results.read_text().splitlines():
        cells = [cell.strip(" `*") for cell in line.strip("| ").split(" | ")]
        if line.startswith("| `"):
            ratios[cells[0], cells[1]] = cells[3]
            steps.setdefault(cells[0], cells[2])
    if missing := MODELS.keys() - steps.keys():
        raise ValueError(f"{results} has no {', '.join(sorted(missing))}: run `python -m bench.overhead`")
    lines = [
        f"| model | step, ms | {' | '.join(f'`{column}`' for column in COLUMNS)} |",
        f"|---|---{'|---' * len(COLUMNS)}|",
    ]
    for model, title in MODELS.items():
        cells = (ratios.get((model, column), "failed") for column in COLUMNS)
        lines.append(f"| {title} | {steps[model]} | {' | '.join(cells)} |")
    measured = next(line for line in results.read_text().splitlines() if line.startswith("Measured on:"))
    return "\n".join(lines) + f"\n\n{measured}"
