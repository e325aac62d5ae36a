"""The programs of a corpus: faulty ones with their twins and what is expected of a report, and correct ones."""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

OWN = Path(__file__).parent
_HEAD = re.compile(r"#! kind=(?P<kind>\S+) severity=(?P<severity>error|warning|note) names=(?P<names>\S+)\n")
_MARK = re.compile(r"[ \t]*#! (here|also)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One planted mistake.

    Attributes:
        kinds: Further kinds by which a report may call it.
        bad, good: The programs, as they run. lines: 1-based lines of `bad` where the mistake is; also: further lines that
            a fair report may name. names: of which it should use one.
    """

    id: str
    category: str
    kind: str
    severity: str
    bad: str
    good: str
    lines: tuple[int, ...]
    also: tuple[int, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A named set of cases and correct programs (name -> text)."""

    name: str
    cases: tuple[Case, ...]
    clean: dict[str, str]


def own() -> Corpus:
    """The corpus of this folder.

    Raises:
        ValueError: a program has no head line, no mark, or a mark where none may be.
    """
    cases = tuple(_own_case(path) for path in sorted(OWN.glob("cases/*/*/bad.py")))
    clean = {path.stem: path.read_text() for path in sorted((OWN / "clean").glob("*.py"))}
    return Corpus(name="own", cases=cases, clean=clean)


def _own_case(path: Path) -> Case:
    text = path.read_text()
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"{path}: its first line must be `#! kind=... severity=... names=...`")
    marks: dict[str, list[int]] = {"here": [], "also": []}
    lines = ["", *text[head.end() :].split("\n")]
    for at, line in enumerate(lines):
        mark = _MARK.search(line)
        if mark is not None:
            marks[mark[1]].append(at + 1)
            lines[at] = line[: mark.start()]
    if not marks["here"]:
        raise ValueError(f"{path}: no line is marked `#! here`")
    good = path.with_name("good.py").read_text()
    if "#!" in good or "#!" in "\n".join(lines):
        raise ValueError(f"{path}: a mark stands where none may be")
    return Case(
        id=path.parent.name, category=path.parent.parent.name, kind=head["kind"], severity=head["severity"],
        bad="\n".join(lines), good=good, lines=tuple(marks["here"]), also=tuple(marks["also"]),
        names=tuple(head["names"].split(",")),
    )  # fmt: skip


WITH_SIDECARS = (
    "public",
    "second",
    "threads",
    "threads2",
    "round5",
    "round6",
    "round7",
    "round8",
    "round9",
    "round10",
    "round11",
)
"""Folders whose cases have their expectations in a `case.json` of their own."""


WITHOUT_LEVELS = ("round5", "round6", "round7", "round8", "round9", "round10", "round11")
"""Those whose writers knew no meaning of the levels: what does not raise counts as found at a warning."""


def with_sidecars(folder: Path) -> Corpus:
    """A corpus in which each case has a `case.json`: its README says what stands there."""
    cases: list[Case] = []
    same = tomllib.loads((OWN / "kind_names.toml").read_text())
    for path in sorted(folder.glob("cases/*/case.json")):
        told = json.loads(path.read_text())
        expected = told["expected"]
        severity = "note" if expected["severity"] == "info" else str(expected["severity"])
        if folder.name in WITHOUT_LEVELS and told["raises"] is None:
            severity = "warning"
        cases.append(
            Case(
                id=told["id"], category=told["category"], kind=expected["kind"], severity=severity,
                bad=path.with_name("bad.py").read_text(), good=path.with_name("good.py").read_text(),
                lines=tuple(expected["lines"]), also=tuple(expected["lines_also_ok"]), names=tuple(expected["names"]),
                kinds=(*expected.get("kinds_also_ok", ()), *same.get(expected["kind"], ())),
            )
        )  # fmt: skip
    clean = {path.stem: path.read_text() for path in sorted(folder.glob("clean/*.py"))}
    return Corpus(name=folder.name, cases=tuple(cases), clean=clean)
