"""The manuals: the docstrings of the rule modules, taken apart into sections. One text feeds every page and command."""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from backprobe.rules.framework.plugins import every_module
from backprobe.rules.framework.rule import Rule, RuleModule
from backprobe.rules.health import (
    autograd_error_unexplained,
    findings_left_out,
    rule_failed,
    unknown_suppression,
    unused_suppression,
)

TITLES: Final = (
    "What it finds",
    "Why it matters",
    "What PyTorch does",
    "Example",
    "Use instead",
    "Near miss",
    "Blind spots",
    "Source",
)
"""The sections of a manual, in their order; there is one "Near miss" section per near miss."""

CODE: Final = frozenset({"Example", "Use instead", "Near miss"})
"""Sections that are programs, and are executed by a test."""

ABOUT: Final = (autograd_error_unexplained, rule_failed, findings_left_out, unused_suppression, unknown_suppression)
"""Modules of rules that speak of the run and the rules themselves: `judge` makes their findings."""

MARK: Final = "# <- here"
"""What the line carries that an Example's finding stands at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of a manual.

    Attributes:
        title: One of `TITLES`.
        about: Of a near miss: why the program is right; "" otherwise.
        text: The body without its indentation; a program where the title is in `CODE`.
    """

    title: str
    about: str
    text: str

    @property
    def is_code(self) -> bool:
        """The text is a program."""
        return self.title in CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """The manual of one rule.

    Attributes:
        headline: What the rule finds, in one line, without code and name.
    """

    rule: Rule
    headline: str
    sections: tuple[Section, ...]

    def of(self, title: str) -> list[Section]:
        """The sections with this title, in order."""
        return [section for section in self.sections if section.title == title]


class UnknownRule(LookupError):
    """There is no rule of that name or code; the message offers the nearest ones."""

    def __init__(self, asked: str) -> None:
        names = [name for rule in every_rule() for name in (rule.name, rule.code)]
        near = difflib.get_close_matches(asked.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
        meant = [name for name in names if name.lower() in near]
        hint = f"Did you mean `{meant[0]}`?" if meant else "`backprobe rules` lists them all."
        super().__init__(f"there is no rule `{asked}`. {hint}")
        self.asked = asked


def every_rule() -> list[Rule]:
    """All rules that have a manual: the built-in ones and the plug-ins', then those about the rules themselves."""
    return [module.RULE for module in (*every_module(), *ABOUT)]


def headlines() -> list[tuple[Rule, str]]:
    """Each rule of `every_rule` with what it finds, in one line; the manuals' sections are not looked at."""
    return [(module.RULE, _headline(module.RULE, module.__doc__ or "")) for module in (*every_module(), *ABOUT)]


def manual(name_or_code: str) -> Manual:
    """The manual of a rule by its name or code, in any case of letters.

    Raises:
        UnknownRule: there is no such rule.
    """
    asked = name_or_code.lower()
    near = _built_in(asked)
    for module in (*ABOUT, *((near,) if near else every_module())):
        if asked in (module.RULE.name, module.RULE.code.lower()):
            return parse(module.RULE, module.__doc__ or "")
    raise UnknownRule(name_or_code)


def _built_in(asked: str) -> RuleModule | None:
    """The rule of ours whose file begins with this name or code: the other 147 need not be loaded for one manual.

    None: no file begins so, or it cannot be looked for (an archive).
    """
    for path in Path(__file__).parent.glob("*/*.py"):
        with path.open(encoding="utf-8") as file:
            opening = file.readline().removeprefix('"""').partition(":")[0].lower().split()
        if asked in opening and len(opening) == 2:
            module = cast("RuleModule", import_module(f"{__package__}.{path.parent.name}.{path.stem}"))
            return module if hasattr(module, "RULE") else None
    return None


_TITLE: Final = re.compile(r"^([A-Z][^\n:]*):(?: ([^\n]+))?$", re.MULTILINE)


def parse(rule: Rule, docstring: str) -> Manual:
    """Take a docstring apart: a headline, then unindented titles with a colon, each with an indented body.

    Raises:
        ValueError: the headline does not begin with code and name, or a title is none of `TITLES`.
    """
    headline = _headline(rule, docstring)
    rest = docstring.partition("\n")[2]
    titles = list(_TITLE.finditer(rest))
    sections: list[Section] = []
    for at, title in enumerate(titles):
        end = titles[at + 1].start() if at + 1 < len(titles) else len(rest)
        if title[1] not in TITLES:
            raise ValueError(f"the manual of {rule.name} has a section `{title[1]}`")
        body = textwrap.dedent(rest[title.end() : end]).strip("\n")
        sections.append(Section(title=title[1], about=title[2] or "", text=body.rstrip() + "\n"))
    return Manual(rule=rule, headline=headline, sections=tuple(sections))


def _headline(rule: Rule, docstring: str) -> str:
    opening = f"{rule.code} {rule.name}: "
    if not docstring.startswith(opening):
        raise ValueError(f"the manual of {rule.name} must begin with `{opening}`")
    return docstring.partition("\n")[0].removeprefix(opening)
