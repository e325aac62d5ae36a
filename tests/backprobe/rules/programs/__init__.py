"""Programs beyond the manuals, one text file per family of rules: each condition of a rule has one that fails without it.

A faulty program carries `# <- CODE` at each line that a finding at warning or above must stand at; no mark: silence.
"""

from pathlib import Path

from tests.sections import read_sections

PROGRAMS = {
    title: text
    for path in sorted(Path(__file__).parent.glob("*.txt"))
    for title, text in read_sections(path).items()
}
"""`rule-name: title` -> the program's text."""
