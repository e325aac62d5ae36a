"""The hostile programs: one text file per family in `baseline` and in `programs`."""

from pathlib import Path
from typing import Final, NamedTuple

from tests.sections import read_sections

BASELINE: Final = Path(__file__).with_name("baseline")
OWN: Final = Path(__file__).with_name("programs")


class Program(NamedTuple):
    """A program; the part of its name before the first underscore is its family."""

    name: str
    text: str

    @property
    def family(self) -> str:
        """Return the name of the family."""
        return self.name.partition("_")[0]


def read_programs(folder: Path) -> list[Program]:
    """Read the programs of a folder in order of their names: the sections of its `*.txt` files, and its `*.py` files."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    for path in folder.glob("*.txt"):
        texts |= read_sections(path)
    return [Program(name, text) for name, text in sorted(texts.items())]
