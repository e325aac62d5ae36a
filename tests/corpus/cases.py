"""The programs of a corpus: faulty ones with their repaired twins and what a report should say, and correct ones."""

import tomllib
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.corpus.case_files import MalformedFile, read_case, read_correct_programs

CORPORA: Final = Path(__file__).parent
SETS: Final = (
    "own", "public", "second", "threads", "threads2", "round5", "round6", "round7", "round8", "round9", "round10", "round11",
    "third",
)  # fmt: skip
"""Folders of `CORPORA`, in the order of their writing."""

CORRECT: Final = "correct.py"
"""The file of a set that has its correct programs; every other one is a case."""

Level = Literal["error", "warning", "note"]


class Thread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A public thread in which people described the mistake."""

    url: str
    title: str = ""


class Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the header of a case file says.

    Attributes:
        category: Family of the mistake. kind: a kind of kinds.toml, or a name of the writer's that kind_names.toml knows.
        kinds_also_ok: Further kinds by which a report may call the mistake.
        severity: A report must be at least so loud. severity_by_writer: what a writer chose who did not know what the
            levels mean, if it differs.
        names: Of which a report should use one.
        symptom: What plain torch shows. symptom_check: an expression over the program's final globals, true of the
            faulty program and false of the repaired one. raises, raises_message: exception type and part of its
            message. warns: part of a warning. None: it has none.
        difficulty: For a tool.
        evidence: Threads that describe it.
    """

    category: str
    kind: str
    severity: Level
    names: tuple[str, ...]
    kinds_also_ok: tuple[str, ...] = ()
    severity_by_writer: Level | None = None
    title: str = ""
    difficulty: Literal["easy", "medium", "hard"] | None = None
    symptom: str = ""
    symptom_check: str | None = None
    raises: str | None = None
    raises_message: str | None = None
    warns: str | None = None
    cause: str = ""
    fix: str = ""
    evidence: tuple[Thread, ...] = ()


class Case(Claims, frozen=True, kw_only=True):
    """One planted mistake.

    Attributes:
        bad, good: The programs, as they run. lines: 1-based lines of `bad` where the mistake is; also: further lines that
            a fair report may name.
        kinds: `kinds_also_ok`, and what kind_names.toml adds to them.
    """

    id: str
    bad: str
    good: str
    lines: tuple[int, ...]
    also: tuple[int, ...]
    kinds: tuple[str, ...] = ()


class Resemblance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a correct program looks like: families of mistakes, and why."""

    families: tuple[str, ...] = ()
    resembles: str = ""


class CorrectProgram(Resemblance, frozen=True, kw_only=True):
    """A program without a mistake."""

    name: str
    text: str


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of cases and correct programs."""

    name: str
    cases: tuple[Case, ...]
    correct: tuple[CorrectProgram, ...]


def load_corpus(folder: Path) -> Corpus:
    """Load the case files of a folder, and the correct programs if it has any.

    Raises:
        MalformedFile: a file does not follow the format.
    """
    # the kinds of `own` are those of kinds.toml: no report calls them otherwise
    kind_names = {} if folder.name == "own" else tomllib.loads((CORPORA / "kind_names.toml").read_text())
    paths = sorted(folder.glob("*.py"), key=lambda path: path.stem)
    cases = tuple(_load_case(path, kind_names) for path in paths if path.name != CORRECT)
    correct = _load_correct_programs(folder / CORRECT) if (folder / CORRECT).exists() else ()
    return Corpus(name=folder.name, cases=cases, correct=correct)


def load_set(name: str) -> Corpus:
    """Load a set of `SETS`."""
    return load_corpus(CORPORA / name)


def _load_case(path: Path, kind_names: dict[str, list[str]]) -> Case:
    header, programs = read_case(path)
    try:
        claims = msgspec.convert(header, Claims)
    except msgspec.ValidationError as error:
        raise MalformedFile(path, 1, f"a claim is not right. Correct the header: {error}") from None
    return Case(
        **msgspec.structs.asdict(claims),
        id=path.stem, bad=programs.faulty, good=programs.repaired, lines=programs.lines, also=programs.also,
        kinds=(*claims.kinds_also_ok, *kind_names.get(claims.kind, ())),
    )  # fmt: skip


def _load_correct_programs(path: Path) -> tuple[CorrectProgram, ...]:
    programs: list[CorrectProgram] = []
    for name, header, text in read_correct_programs(path):
        try:
            resemblance = msgspec.convert(header, Resemblance)
        except msgspec.ValidationError as error:
            raise MalformedFile(path, 1, f"a claim of `{name}` is not right. Correct its header: {error}") from None
        programs.append(CorrectProgram(**msgspec.structs.asdict(resemblance), name=name, text=text))
    return tuple(programs)
