"""The hostile programs: `baseline.txt`, and one text file per family in `programs`."""

from pathlib import Path
from typing import Final, NamedTuple

from tests.sections import read_sections

BASELINE: Final = Path(__file__).with_name("baseline.txt")
OWN: Final = Path(__file__).with_name("programs")


class Program(NamedTuple):
    """A program; the part of its name before the first underscore is its family."""

    name: str
    text: str

    @property
    def family(self) -> str:
        """Return the name of the family."""
        return self.name.partition("_")[0]


def read_programs(place: Path) -> list[Program]:
    """Read programs in order of their names: the sections of a text file, or of a folder's `*.txt` and its `*.py` files."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in place.glob("*.py")}
    for path in place.glob("*.txt") if place.is_dir() else [place]:
        texts |= read_sections(path)
    return [Program(name, text) for name, text in sorted(texts.items())]
