"""What people read of the finding of each rule's Example: `python -m tests.backprobe.rules.gold` writes `gold.txt` again."""

from pathlib import Path

from backprobe.record import Record
from backprobe.rules import RULES, Finding, judge
from backprobe.rules.manual_programs import programs
from backprobe.rules.testing import example, wants_check
from backprobe.show.formats.finding_text import finding_lines
from backprobe.show.terminal_style import Ink
from tests.sections import read_sections, write_sections

PATH = Path(__file__).with_name("gold.txt")

INTRODUCTION = """\
What people read of the finding of each rule's Example, by the rule's code. To renew this file after a change of a rule or
of a text, run `python -m tests.backprobe.rules.gold` and read what `git diff` shows."""


def read_gold() -> dict[str, str]:
    """Read the texts of the file by the codes of their rules."""
    return read_sections(PATH)


def render_finding(record: Record, finding: Finding) -> str:
    """Render a finding as a terminal without colors shows it."""
    return "\n".join(finding_lines(record, finding, Ink())) + "\n"


def render_examples() -> dict[str, str]:
    """Render what is found in the Example of each rule, by the rule's code."""
    texts = {}
    for module in RULES:
        source, _line = example(module)
        record = programs().captured(source, check=wants_check(module))
        texts[module.RULE.code] = "".join(render_finding(record, finding) for finding in judge(record).findings)
    return texts


if __name__ == "__main__":
    write_sections(PATH, INTRODUCTION, render_examples())
