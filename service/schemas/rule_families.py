"""The families of rules: the beginning of their codes, and what each family asks."""

from __future__ import annotations

from typing import Final, Literal

Family = Literal[
    "leaf", "gradient", "graph", "inplace", "numeric", "mode", "wiring", "training", "truth", "invariants", "health",
    "plug-ins",
]  # fmt: skip

FAMILIES: Final = {
    "leaf": ("BP1", "Is this the tensor whose gradient you will get?"),
    "gradient": ("BP2", "Gradients that are missing, added up, cleared, zero, or changed on their way."),
    "graph": ("BP3", "Graphs that are walked twice, kept too long, or end too early."),
    "inplace": ("BP4", "Changes in place that a backward call cannot bear."),
    "numeric": ("BP5", "NaN, infinities, and gradients that vanish or explode."),
    "mode": ("BP6", "Where tracking ends; train and eval."),
    "wiring": ("BP7", "Optimizers, schedulers, clipping, scaling, distributed training."),
    "training": ("BP8", "The loss and its meaning."),
    "truth": ("BP91", "Whether the gradient that a step uses is the derivative of its loss, where that was checked."),
    "invariants": ("BP95", "Statements that hold in every run which trains as it should."),
    "health": ("BP9", "The run, the record and the rules themselves."),
    "plug-ins": ("", "Installed beside Backprobe."),
}
"""Name of each family: the beginning of its codes, and what it asks."""


def family_of(code: str) -> str:
    """Return the family of a rule, by its code."""
    return next((name for name, (codes, _) in FAMILIES.items() if codes and code.startswith(codes)), "plug-ins")
