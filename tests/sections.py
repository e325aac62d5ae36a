"""Text files of sections: a line `=== title` begins a section, and its text follows up to the next such line."""

import re
from collections.abc import Mapping
from pathlib import Path

_HEADER = re.compile(r"^=== (.+)\n", re.MULTILINE)


def read_sections(path: Path) -> dict[str, str]:
    """Read the texts of a file by their titles; what stands before the first title explains the file.

    Raises:
        ValueError: Two sections have the same title.
    """
    _introduction, *parts = _HEADER.split(path.read_text(encoding="utf-8"))
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    if len(sections) != len(parts) // 2:
        titles = sorted({title for title in parts[::2] if parts[::2].count(title) > 1})
        raise ValueError(f"{path} has two sections of the title {', '.join(titles)}. Rename one of them.")
    return sections


def write_sections(path: Path, introduction: str, sections: Mapping[str, str]) -> None:
    """Write a file that `read_sections` reads back as `sections`."""
    texts = (f"=== {title}\n{text}" for title, text in sections.items())
    path.write_text(f"{introduction}\n\n{''.join(texts)}", encoding="utf-8")
