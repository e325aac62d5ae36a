"""The declaration of a rule: what it is called, how bad and how sure its findings are, and which facts it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from backprobe.severity import Confidence, Level

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

Safety = Literal["safe", "unsafe", "manual"]
"""Of a fix: changes no number that was right; changes the training, as intended; advice without edits."""

TrialVerdict = Literal["confirmed", "changes-values", "insufficient", "breaks", "not-tried"]
"""Of a fix that was tried.

confirmed: the finding is gone, nothing new is found, the program does not fail where it did not, and its first loss is
what it was. changes-values: likewise, with another first loss. insufficient: the finding is still there. breaks: the
program fails, or there is a new finding at warning or above. not-tried: no run tells.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the set. The docstring of its module is its manual.

    Attributes:
        name: Kebab case; its identity in suppressions, settings, URLs and fingerprints. Never renamed without redirect.
        code: `BPnnn`, a stable alias; the hundred is the family.
        since: The version of Backprobe that first had it.
        needs: Facts of the record without which the rule is not run (`facts.py` lists them).
        explains: Names of rules whose findings are consequences of this one's.
        refines: Names of rules that this one supersedes where both claim one fact.
        thresholds: The numbers of a heuristic, by name; the manual's Source says where each comes from.
        rests_on: What of the run its verdict needs: what came before the finding, or the whole, since it says that
            something never happens or always does.
    """

    name: str
    code: str
    since: str
    severity: Level
    confidence: Confidence
    fix: Safety
    needs: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    refines: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])
    rests_on: Literal["past", "run"] = "past"

    @property
    def url(self) -> str:
        """Where the service shows its manual."""
        return f"/rules/{self.code}"


class RuleModule(Protocol):
    """A module of the rule set: its docstring is the manual."""

    __name__: str
    __doc__: str | None
    RULE: Rule
    check: Callable[[Record], Iterator[Finding]]
