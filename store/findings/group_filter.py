"""Which groups of findings: the conditions on a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from store.findings.group_state import HAS_RETURNED, is_in_state
from store.tables import finding_group, project

_TEXTS: Final = ("path", "message", "owner", "reason")


def _join_texts() -> sa.ColumnElement[str]:
    """Join the columns that words are looked for in, one a line: a word has no line break."""
    text: sa.ColumnElement[str] = sa.cast(finding_group.c.rule, sa.Text)
    for name in _TEXTS:
        text = text + "\n" + sa.func.coalesce(sa.cast(finding_group.c[name], sa.Text), "")
    return text


_TEXT: Final = _join_texts()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """Which groups of a tenant; what is None, or empty, lets all pass.

    Attributes:
        project: Public id of the only project.
        state: Any of these. level, rule (names): likewise.
        returned: Only those that are, or are not, open because a run showed them after they were fixed.
        owner: Only this one's.
        words: All of these, each in the rule, path, message, owner or reason, whatever its case. A word that is a key
            of `codes` may be the code of the rule as well.
        codes: Names of rules by code, in upper case.
        first_seen_after, last_seen_after: ISO times, exclusive.
    """

    project: str | None = None
    state: Sequence[str] = ()
    level: Sequence[str] = ()
    rule: Sequence[str] = ()
    returned: bool | None = None
    owner: str | None = None
    words: Sequence[str] = ()
    codes: Mapping[str, str]
    first_seen_after: str | None = None
    last_seen_after: str | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return them as conditions on `finding_group`."""
        g = finding_group.c
        found = [is_in_state(self.state)] if self.state else list[sa.ColumnElement[bool]]()
        for column, values in ((g.level, self.level), (g.rule, self.rule)):
            if values:
                found.append(column.in_(values))
        if self.project is not None:
            of_it = sa.select(project.c.id).where(project.c.public_id == self.project).scalar_subquery()
            found.append(g.project_id == of_it)
        if self.owner is not None:
            found.append(g.owner == self.owner)
        if self.returned is not None:
            found.append(HAS_RETURNED if self.returned else sa.func.coalesce(sa.not_(HAS_RETURNED), sa.true()))
        if self.first_seen_after is not None:
            found.append(g.first_seen_at > self.first_seen_after)
        if self.last_seen_after is not None:
            found.append(g.last_seen_at > self.last_seen_after)
        return found + [self._has_word(word) for word in self.words]

    def _has_word(self, word: str) -> sa.ColumnElement[bool]:
        rule = self.codes.get(word.upper())
        found = _TEXT.icontains(word, autoescape=True)
        return found if rule is None else sa.or_(found, finding_group.c.rule == rule)
