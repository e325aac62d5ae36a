"""What the page `/rules` shows: the rules by family, those that a level and a word choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from backprobe.rules.manual import every_rule, manual
from service.api.asked import FindingLevel, Strict

if TYPE_CHECKING:
    from backprobe.rules.manual import Manual

FAMILIES: Final = {
    "leaf": ("BP1", "Is this the tensor whose gradient you will get?"),
    "gradient": ("BP2", "Gradients that are missing, added up, cleared, zero, or changed on their way."),
    "graph": ("BP3", "Graphs that are walked twice, kept too long, or end too early."),
    "inplace": ("BP4", "Changes in place that a backward call cannot bear."),
    "numeric": ("BP5", "NaN, infinities, and gradients that vanish or explode."),
    "mode": ("BP6", "Where tracking ends; train and eval."),
    "wiring": ("BP7", "Optimizers, schedulers, clipping, scaling, distributed training."),
    "training": ("BP8", "The loss and its meaning."),
    "health": ("BP9", "The run, the record and the rules themselves."),
    "plug-ins": ("", "Installed beside Backprobe."),
}
"""Name of each family: the beginning of its codes, and what it asks."""

Family = Literal["leaf", "gradient", "graph", "inplace", "numeric", "mode", "wiring", "training", "health", "plug-ins"]


class RulesQuery(Strict):
    """Which rules."""

    family: Family | None = None
    level: FindingLevel | Literal["any"] = "any"
    q: Annotated[str, Field(max_length=100)] = Field(default="", description="A word of code, name or headline.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyShown:
    """One family, with those of its rules that were asked for."""

    name: str
    about: str
    manuals: tuple[Manual, ...]


def families_shown(asked: RulesQuery) -> tuple[FamilyShown, ...]:
    """The families that have a rule to show, in order."""
    manuals = [one for one in (manual(rule.code) for rule in every_rule()) if _wanted(one, asked)]
    chosen = [
        FamilyShown(name=name, about=about, manuals=_of(name, manuals))
        for name, (_codes, about) in FAMILIES.items()
        if asked.family in {None, name}
    ]
    return tuple(family for family in chosen if family.manuals)


def _of(family: str, manuals: Sequence[Manual]) -> tuple[Manual, ...]:
    return tuple(one for one in manuals if family_of(one.rule.code) == family)


def family_of(code: str) -> str:
    """The family of a rule, by its code."""
    return next((name for name, (codes, _) in FAMILIES.items() if codes and code.startswith(codes)), "plug-ins")


def _wanted(one: Manual, asked: RulesQuery) -> bool:
    text = f"{one.rule.code} {one.rule.name} {one.headline}".lower()
    return asked.level in {"any", one.rule.severity} and all(word in text for word in asked.q.lower().split())
