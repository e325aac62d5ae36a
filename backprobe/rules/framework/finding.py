"""A finding: a rule's verdict at a source line, with evidence and a fix; and its JSON, `backprobe.finding/1`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from backprobe.rules.framework.rule import Confidence, Level, Rule, Safety, TrialVerdict

SCHEMA: Final = "backprobe.finding/1"
Evidence = str | int | float | bool | None | Sequence[str | int]


class RuleName(msgspec.Struct, frozen=True, kw_only=True):
    """Which rule said it."""

    code: str
    name: str
    url: str


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a file: 1-based, columns in Unicode code points, `end_col` exclusive."""

    start_line: int
    start_col: int
    end_line: int
    end_col: int


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A region of one of the user's files.

    Attributes:
        path: Relative to the project, POSIX.
        text: The line that the region starts on, as it was run; "" where the source was not kept.
        function: Qualified name of the enclosing function; "<module>" at top level.
    """

    path: str
    region: Region
    text: str = ""
    function: str = "<module>"


class Related(msgspec.Struct, frozen=True, kw_only=True):
    """Another place of the story, in the order in which it happened."""

    message: str
    location: Location


class StackFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One frame of a stack, innermost last."""

    path: str
    line: int
    function: str


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """A call stack and its part in the story: "call", the calls that led to the finding's own place, the last frame."""

    role: str
    frames: tuple[StackFrame, ...] = ()


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Replace a region of a file by a text; an empty region inserts."""

    path: str
    region: Region
    text: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run of the program with a fix in it.

    Attributes:
        verdict: In one word.
        why: What stands against the fix, or why no run tells; "": nothing does.
    """

    verdict: TrialVerdict
    why: str = ""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """What to change; without edits it is advice.

    Attributes:
        trial: What came of it when it was tried; not set, and left out of JSON: nobody has asked.
    """

    title: str
    safety: Safety
    edits: tuple[Edit, ...] = ()
    trial: Trial | msgspec.UnsetType = msgspec.UNSET


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of another rule that follows from this one and is folded under it."""

    rule: str
    location: Location


class Occurrences(msgspec.Struct, frozen=True, kw_only=True):
    """How often the same thing was found in what was recorded; steps are training steps, counted from 0."""

    count: int = 1
    first_step: int = 0
    last_step: int = 0


class Suppression(msgspec.Struct, frozen=True, kw_only=True):
    """Why a finding is not to be shown: by a comment in the source, or by the service's inbox."""

    kind: str
    reason: str | None = None


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding is about, in the record's own numbers: what `folding.py` compares, and no client sees.

    Attributes:
        facts: Pairs of a kind ("tensor", "call", "optimizer", "module") and a number.
        moment: When the mistake was made; consequences come later.
    """

    facts: tuple[tuple[str, int], ...] = ()
    moment: int = 0


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's verdict at a source line.

    Attributes:
        level: How bad; confidence: how sure.
        message: What was seen, in the user's own names; why it matters; what to change. At most three lines.
        location: Where a good reviewer would put the cursor; related: the rest of the story, in order.
        evidence: The facts that carry the verdict, enough to check it by hand. `binding` is the name it is about.
        fingerprint: Identity across runs and edits elsewhere; "" until `judge` has set it.
    """

    rule: RuleName
    level: Level
    confidence: Confidence
    message: str
    location: Location
    related: tuple[Related, ...] = ()
    stacks: tuple[Stack, ...] = ()
    evidence: dict[str, Evidence] = {}
    fixes: tuple[Fix, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    occurrences: Occurrences = Occurrences()
    fingerprint: str = ""
    suppressed: Suppression | None = None
    subject: Subject = Subject()


def rule_name(rule: Rule) -> RuleName:
    """How a finding names its rule."""
    return RuleName(code=rule.code, name=rule.name, url=rule.url)


def finding_json(
    finding: Finding,
    *,
    id: str | None = None,  # noqa: A002 - the JSON field's own name
    run: str | None = None,
    ruleset: str | None = None,
) -> dict[str, Any]:
    """The shape `backprobe.finding/1` that every client reads, as plain JSON values.

    Args:
        finding: What to show.
        id: The store's public id of it; run: of its run; ruleset: the digest of the rules that judged. None: left out.
    """
    shown: dict[str, Any] = {"schema": SCHEMA}
    shown.update({key: value for key, value in (("id", id), ("run", run), ("ruleset", ruleset)) if value is not None})
    body: dict[str, Any] = msgspec.to_builtins(finding)
    shown["fingerprint"] = body.pop("fingerprint")
    del body["subject"]
    shown.update(body)
    for place in _places(shown):
        place.pop("function", None)
    return shown


def _places(shown: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield shown["location"]
    for other in (*shown["related"], *shown["consequences"]):
        yield other["location"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a fingerprint is made of: no line number, id, step, absolute path or message.

    Attributes:
        rule: Its name. path: relative, POSIX; of a program that nobody named a file of, what the program is known by.
        function: The qualified name around the line; `<module>` at the top of a file.
        text: The line, blanks collapsed. binding: the name that it is about; "": none.
        n: Its place among the findings of a run that are equal in all of these, from 0.
    """

    rule: str
    path: str
    function: str
    text: str
    binding: str
    n: int

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of SHA-256 over them, behind the version of this recipe."""
        text = "\0".join((self.rule, self.path, self.function, self.text, self.binding, str(self.n)))
        return f"backprobe/v1:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


MOST_EQUAL: Final = 1000
"""Findings of one run, equal in all but their place, among which a fingerprint is looked for."""


def _identity(finding: Finding, program: str | None) -> Identity:
    place = finding.location
    return Identity(
        rule=finding.rule.name,
        path=place.path.replace("\\", "/") if program is None else program,
        function=place.function,
        text=" ".join(place.text.split()),
        binding=str(finding.evidence.get("binding", "")),
        n=0,
    )


def identity_of(finding: Finding, program: str | None = None) -> Identity | None:
    """What the finding's fingerprint was made of; None: not of this finding, or it is not among `MOST_EQUAL`."""
    first = _identity(finding, program)
    for n in range(MOST_EQUAL):
        made = replace(first, n=n)
        if made.fingerprint == finding.fingerprint:
            return made
    return None


def with_fingerprints(findings: Iterable[Finding], program: str | None = None) -> tuple[Finding, ...]:
    """The same findings, each with its identity.

    Args:
        findings: Of one run.
        program: Stands for the path: what a program is known by that was sent without the name of a file. None: its
            files have names.
    """
    seen: Counter[Identity] = Counter()
    named: list[Finding] = []
    for finding in findings:
        first = _identity(finding, program)
        fingerprint = replace(first, n=seen[first]).fingerprint
        seen[first] += 1
        named.append(msgspec.structs.replace(finding, fingerprint=fingerprint))
    return tuple(named)
