"""What the page `/rules` shows: the rules by family, those that a level and a word choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from backprobe.rules.framework.manual import every_rule, manual
from backprobe.rules.framework.rule import Level
from service.schemas.rule_families import FAMILIES, Family, family_of
from service.web.body import Strict

if TYPE_CHECKING:
    from backprobe.rules.framework.manual import Manual


class RulesQuery(Strict):
    """Which rules."""

    family: Family | None = None
    level: Level | Literal["any"] = "any"
    q: Annotated[str, Field(max_length=100)] = Field(default="", description="A word of code, name or headline.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyShown:
    """One family, with those of its rules that were asked for."""

    name: str
    about: str
    manuals: tuple[Manual, ...]


def families_shown(asked: RulesQuery) -> tuple[FamilyShown, ...]:
    """List the families that have a rule to show, in order."""
    manuals = [page for page in (manual(rule.code) for rule in every_rule()) if _is_selected(page, asked)]
    chosen = [
        FamilyShown(name=name, about=about, manuals=_manuals_of_family(name, manuals))
        for name, (_codes, about) in FAMILIES.items()
        if asked.family in {None, name}
    ]
    return tuple(family for family in chosen if family.manuals)


def _manuals_of_family(family: str, manuals: Sequence[Manual]) -> tuple[Manual, ...]:
    return tuple(page for page in manuals if family_of(page.rule.code) == family)


def _is_selected(page: Manual, asked: RulesQuery) -> bool:
    text = f"{page.rule.code} {page.rule.name} {page.headline}".lower()
    return asked.level in {"any", page.rule.severity} and all(word in text for word in asked.q.lower().split())
