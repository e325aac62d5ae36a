"""The text format of a corpus: claims in a header of comments, programs below it.

# /// case                          the header: claims in TOML, behind `# `
# kind = "leaf-lost-by-rebinding"
# ///
weight = weight - step  #- here     here: a line of the mistake; #-: the repair removes the line
#+ weight -= step                   #+: the repair adds the line
slope = weight.grad  #! also        also: a fair report may name the line; #!: the repair keeps it
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

CASE: Final = "# /// case"
CORRECT: Final = "# /// correct "
END: Final = "# ///"
_MARK: Final = re.compile(r"(?:^|  )(#-|#- here|#- also|#! here|#! also)$")
_LIKE_A_MARK: Final = re.compile(r"#[-+!]")


class MalformedFile(ValueError):
    """A file does not follow the format. Whoever wrote it must change the line that the text names."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        super().__init__(f"{path}:{line}: {text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The two programs of a case file.

    Attributes:
        lines: 1-based lines of `faulty` that are marked `here`. also: those that are marked `also`.
    """

    faulty: str
    repaired: str
    lines: tuple[int, ...]
    also: tuple[int, ...]


def read_case(path: Path) -> tuple[dict[str, Any], Programs]:
    """Read the claims and the programs of a case file.

    Raises:
        MalformedFile: a line does not follow the format.
    """
    lines = _read_lines(path)
    if lines[0] != CASE:
        raise MalformedFile(path, 1, f"a case file must begin with a header. Make `{CASE}` its first line.")
    claims, start = _read_header(path, lines, 0)
    return claims, _read_programs(path, lines, start)


def read_correct_programs(path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Read each correct program of a file: its name, its claims and its text.

    Raises:
        MalformedFile: a line does not follow the format.
    """
    lines = _read_lines(path)
    starts = [at for at, line in enumerate(lines) if line.startswith(CORRECT)]
    if starts[:1] != [0]:
        raise MalformedFile(path, 1, f"no program is named here. Make `{CORRECT}NAME` the first line.")
    names: set[str] = set()
    for start, end in pairwise([*starts, len(lines)]):
        name = lines[start].removeprefix(CORRECT)
        if name in names:
            raise MalformedFile(path, start + 1, f"`{name}` is the name of a program above. Choose another name.")
        names.add(name)
        claims, first = _read_header(path, lines, start)
        yield name, claims, _join(lines[first:end])


def _read_lines(path: Path) -> list[str]:
    text = path.read_text()
    lines = text.split("\n")
    if lines.pop():
        raise MalformedFile(path, len(lines) + 1, "the last line has no newline. Add one.")
    return lines or [""]


def _read_header(path: Path, lines: Sequence[str], start: int) -> tuple[dict[str, Any], int]:
    """Read the claims of the header that begins at index `start`; return them and the index of the line below it."""
    if END not in lines[start:]:
        raise MalformedFile(path, start + 1, f"the header is not closed. Add a line `{END}` below its claims.")
    end = lines.index(END, start)
    for number, line in enumerate(lines[start:end], start + 1):
        if not f"{line} ".startswith("# "):
            raise MalformedFile(path, number, f"a line of a header must begin with `# `; `{END}` closes the header.")
    toml = ["" for _ in lines[: start + 1]] + [line[2:] for line in lines[start + 1 : end]]
    try:
        return tomllib.loads("\n".join(toml)), end + 1
    except tomllib.TOMLDecodeError as error:
        raise MalformedFile(path, start + 1, f"the header is not TOML. Correct it: {error}") from None


def _read_programs(path: Path, lines: Sequence[str], start: int) -> Programs:
    faulty: list[str] = []
    repaired: list[str] = []
    places: Mapping[str, list[int]] = {"": [], "here": [], "also": []}
    for number, line in enumerate(lines[start:], start + 1):
        if f"{line} ".startswith("#+ "):
            text = line[3:]
            repaired.append(text)
        else:
            found = _MARK.search(line)
            text, mark = (line[: found.start()], found[1]) if found else (line, "")
            faulty.append(text)
            places[mark[3:]].append(len(faulty))
            if not mark.startswith("#-"):
                repaired.append(text)
        if _LIKE_A_MARK.search(text):
            raise MalformedFile(
                path, number,
                "`#-`, `#+` and `#!` belong to marks alone. A line must begin with `#+ `, or end with two spaces and "
                "`#-`, `#- here`, `#- also`, `#! here` or `#! also`.",
            )  # fmt: skip
    if not places["here"]:
        raise MalformedFile(
            path, start + 1, "no line is marked. End each line of the mistake with `#- here` or `#! here`."
        )
    if faulty == repaired:
        raise MalformedFile(path, start + 1, "the repair changes nothing. Mark its lines with `#-` and `#+ `.")
    return Programs(
        faulty=_join(faulty), repaired=_join(repaired), lines=tuple(places["here"]), also=tuple(places["also"])
    )


def _join(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
