"""Programs written otherwise do the same, and each line is found again where it stands now."""

import contextlib
import io

import pytest

from tests.corpus.variants import KINDS, Variant, as_attributes, in_a_function, in_a_method, renamed, split

PROGRAM = """\
import math


def area(r, scale=1.0):
    return math.pi * abs(r) ** 2 * scale


class Sum:
    start = 1

    def __init__(self):
        self.total = self.start

    def add(self, x):
        self.total += round(area(x, scale=0.5), 3)
        return self


scale, many = 2, [number + 1 for number in range(3)]
kept = Sum()
for radius in many:
    kept.add(radius * scale).add(abs(-radius))
    if radius > 1:
        scale = max(scale - radius, len(many))
print(kept.total, scale)
print(f"{scale:.2f}")
"""


def printed(program: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(program, "train.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_written_otherwise_does_the_same(kind) -> None:
    variant = KINDS[kind](PROGRAM)
    assert variant is not None
    assert variant.text != PROGRAM
    assert printed(variant.text) == printed(PROGRAM)


def lines_of(variant: Variant | None, line: int) -> list[str]:
    assert variant is not None
    text = variant.text.splitlines()
    return [text[at - 1].strip() for at in variant.places(line)]


def test_each_line_is_found_again() -> None:
    loop = PROGRAM.splitlines().index("    kept.add(radius * scale).add(abs(-radius))") + 1
    assert lines_of(in_a_function(PROGRAM), loop) == ["kept.add(radius * scale).add(abs(-radius))"]
    assert lines_of(in_a_method(PROGRAM), loop) == ["kept.add(radius * scale).add(abs(-radius))"]
    assert lines_of(renamed(PROGRAM), loop) == ["v1.add(v2 * scale).add(abs(-v2))"]
    assert lines_of(as_attributes(PROGRAM), loop) == ["job.kept.add(job.radius * scale).add(abs(-job.radius))"]
    assert lines_of(split(PROGRAM), loop) == [
        "t5 = radius * scale", "t6 = kept.add(t5)", "t7 = -radius", "t8 = abs(t7)", "t6.add(t8)"
    ]  # fmt: skip


def test_the_head_of_a_block_is_found_without_its_body() -> None:
    head = PROGRAM.splitlines().index("    if radius > 1:") + 1
    assert lines_of(split(PROGRAM), head) == ["if radius > 1:"]
    decorated = "import functools\n\n\n@functools.cache\ndef one():\n    return abs(max(-1, 0))\n"
    assert lines_of(split(decorated), 4) == ["@functools.cache"]
    assert lines_of(split(decorated), 6) == ["t1 = max(-1, 0)", "return abs(t1)"]


@pytest.mark.parametrize(
    "program",
    ["x = 1\ndef f():\n    global x\n    x = 2\nf()\n", "from math import *\nx = pi\n", 'x = """two\nlines"""\n', "x = len(locals())\n"],
)  # fmt: skip
def test_what_cannot_be_moved_into_a_function_is_left_out(program) -> None:
    assert in_a_function(program) is None
    assert in_a_method(program) is None


def test_names_whose_places_are_not_all_known_stay() -> None:
    variant = renamed("def f(rate):\n    return rate\n\n\nrate = 3\nother = f(rate=rate)\nprint(f'{other}', rate)\n")
    assert variant is None  # `rate` is an argument too, `other` is read in an f-string
