"""What a stranger's text may cost a process that parses it: memory grows with the text, whatever it repeats or nests.

Each text is parsed in a fork of a small process, whose largest resident memory is compared with that of half the text:
no clock is looked at.
"""

import json
import subprocess
import sys

import pytest

from backprobe.rules.analysis import parse_bounds
from backprobe.rules.analysis.parse_bounds import MOST_DOTS, is_bounded, parse_bounded

PIECES = {
    "dotted import": ("import a", ".a", ""),
    "dotted from": ("from a", ".a", " import x"),
    "relative import": ("from ", ".", " import x"),
    "dotted import with blanks": ("import a", " .\\\n a", ""),
    "dotted import of letters that are no word": ("import a", ".á", ""),
    "attributes": ("x = a", ".a", ""),
    "decorator": ("@a", ".a", "\ndef f(): pass"),
    "decorators": ("", "@a\n", "def f(): pass"),
    "pattern's name": ("match x:\n case a", ".a", ": pass"),
    "pattern's captures": ("match x:\n case [", "a,", "]: pass"),
    "pattern's alternatives": ("match x:\n case 1", "|1", ": pass"),
    "cases": ("match x:\n", " case 1: pass\n", ""),
    "calls": ("a", "()", ""),
    "subscripts": ("a", "[0]", ""),
    "brackets": ("", "(", ""),
    "sums": ("x = a", "+a", ""),
    "powers": ("x = a", "**a", ""),
    "comparisons": ("x = a", "<a", ""),
    "signs": ("x = ", "-", "1"),
    "negations": ("x = ", "not ", "1"),
    "lambdas": ("x = ", "lambda:", "1"),
    "conditions": ("x = a", " if a else a", ""),
    "elif": ("if a: pass\n", "elif a: pass\n", ""),
    "handlers": ("try: pass\n", "except a: pass\n", ""),
    "targets": ("", "a=", "1"),
    "texts side by side": ("x = ", "'a' ", ""),
    "bytes side by side": ("x = ", "b'a' ", ""),
    "pieces of an f-string": ("x = f'", "{a}", "'"),
    "formats of an f-string": ("x = f'", "{a:{b}}", "'"),
    "formats in a format": ("x = f'{a:", "{b}", "}'"),
    "lines of an f-string": ("x = f'''", "{a}\n", "'''"),
    "f-strings side by side": ("x = ", "f'{a}' ", ""),
    "names to import": ("from a import a", ",a", ""),
    "star imports": ("", "from a import *\n", ""),
    "global names": ("def f():\n global a", ",a", ""),
    "parameters": ("def f(", "a,", "): pass"),
    "keywords": ("f(", "a=1,", ")"),
    "starred keywords": ("f(", "**a,", ")"),
    "with items": ("with a", ",a", ": pass"),
    "for in a comprehension": ("[a ", "for a in b ", "]"),
    "if in a comprehension": ("[a for a in b ", "if a ", "]"),
    "digits of a hexadecimal number": ("x = 0x", "ffffffff", ""),
    "digits of a number": ("x = 1", "00000000", ""),
    "digits of a fraction": ("x = 1.", "77777777", ""),
    "statements on a line": ("", "x;", ""),
    "empty lines": ("", "\n", "x"),
    "continued lines": ("x = ", "\\\n", "1"),
    "comments": ("", "#a\n", ""),
    "escapes": ("x = '", "\\n", "'"),
    "named characters": ("x = '", "\\N{BULLET}", "'"),
    "an error behind a call's arguments": ("f(", "a,", " b c"),
    "an error behind a sum": ("x = a", "+a", " 1 1"),
    "a text without an end": ("x = '''", "a\n", ""),
}
"""By construct: what begins a text, what is repeated, what ends it."""

MEASURE = """
import json, os, resource, sys
from backprobe.rules.analysis.parse_bounds import parse_bounded

def peak_kib(text):
    reading, writing = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        parse_bounded(text)
        os.write(writing, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before).encode())
        os._exit(0)
    os.close(writing)
    os.wait()
    return int(os.read(reading, 100) or 1 << 30)

print(json.dumps([[peak_kib(text) for text in pair] for pair in json.load(sys.stdin)]))
"""


def test_memory_of_a_parse_grows_with_the_text_and_not_with_its_square():
    pairs = [[first + piece * count + last for count in (8_000, 32_000)] for first, piece, last in PIECES.values()]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], input=json.dumps(pairs), capture_output=True, text=True, check=True
    )
    measured = dict(zip(PIECES, json.loads(done.stdout), strict=True))
    assert len(measured) == len(PIECES)
    quadratic = {name: peaks for name, peaks in measured.items() if peaks[1] > 6 * peaks[0] + (20 << 10)}
    assert quadratic == {}


@pytest.mark.parametrize(
    "text",
    [
        "import a" + ".b" * MOST_DOTS,
        "# " + "." * 500,
        "# " + ". " * 500,
        "x[..., " + "..., " * 500 + "]",
        "x = y" + ".view(1)" * 500,
        "from " + "." * 500 + " import x",
        "'one. two. three.\\n'\n" * 500,
    ],
)
def test_what_people_write_keeps_the_bounds(text):
    assert is_bounded(text)


@pytest.mark.parametrize("part", [".b", " . b", ". \\\n b", ".\\\r\nb", ".á", ".b\u0301", ".b\f"])
def test_a_longer_dotted_name_is_not_parsed_however_it_is_written(part):
    assert is_bounded(f"import a{part * MOST_DOTS}")
    assert not is_bounded(f"import a{part * (MOST_DOTS + 1)}")
    assert parse_bounded(f"import a{part * (MOST_DOTS + 1)}") is None


def test_braces_times_characters_have_a_bound(monkeypatch):
    text = "f'" + "{a}" * 10 + "'"
    monkeypatch.setattr(parse_bounds, "MOST_COPIED_BYTES", 10 * len(text))
    assert is_bounded(text)
    assert not is_bounded(text + " ")


def test_what_is_no_python_has_no_tree():
    assert [parse_bounded(text) for text in ("(", "a\0b", "(" * 1_000, "1" * 5_000, "x = '\ud800'")] == [None] * 5
    assert parse_bounded("x = 1\n") is not None
