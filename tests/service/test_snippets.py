"""A program that could not run is refused with its line, before anything is stored."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import warnings

import pytest

from backprobe.rules.analysis.parse_bounds import MOST_WORDS
from service.problems.errors import Problem
from service.process.compile_loop import CPU_SECONDS
from service.process.syntax_checker import CHECKERS
from service.program_checks import Snippet

SYNTAX = {
    "a bracket never closed": ("import torch\nx = torch.ones(\n", 2, "'(' was never closed"),
    "return outside a function": ("x = 1\nreturn x\n", 2, "'return' outside function"),
    "break outside a loop": ("break\n", 1, "'break' outside loop"),
    "a bad indent": ("if True:\nx = 1\n", 2, "expected an indented block"),
    "a notebook's magic": ("%matplotlib inline\n", 1, "invalid syntax"),
    "Python 2": ('print "hello"\n', 1, "Missing parentheses"),
    "an escape character": ("x = 1\n\x1b[31m\n", 2, "non-printable"),
}
TOO_DEEP = {
    "brackets": "(" * 5_000 + ")" * 5_000,
    "minus signs": "-" * 140_000 + "1",
    "not": "not " * 100_000 + "x",
    "attributes": "a" + ".b" * 70_000,
    "sums": "+".join(["a"] * 70_000),
    "lambdas": "lambda: " * 50_000 + "1",
    "else if": "if a: pass\n" + "elif a: pass\n" * 29_000,
}


def snippet(text, path="snippet.py"):
    return Snippet(files={path: text}, entry=path, pointers={path: "#/source"})


@pytest.mark.parametrize("what", SYNTAX)
def test_a_syntax_error_names_its_line(what):
    text, line, said = SYNTAX[what]
    with pytest.raises(Problem) as refused:
        snippet(text).check(1)
    assert refused.value.code == "syntax-error"
    (place,) = refused.value.places
    assert (place.line, place.pointer) == (line, "#/source")
    assert said in place.detail


@pytest.mark.parametrize("what", TOO_DEEP)
def test_nesting_beyond_the_compiler_is_a_syntax_error_in_any_thread(what):
    found = []

    def look():
        try:
            snippet(TOO_DEEP[what]).check(1)
        except Problem as problem:
            found.append(problem.code)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(60)
    assert found == ["syntax-error"]


def test_a_nul_in_any_file_is_a_syntax_error():
    files = {"a.py": "x = 1\n", "words.txt": "a\0b"}
    with pytest.raises(Problem) as refused:
        Snippet(files=files, entry="a.py", pointers={"a.py": "#/files/0/text", "words.txt": "#/files/1/text"}).check(1)
    assert refused.value.places[0].pointer == "#/files/1/text"


def test_an_invalid_escape_is_the_programs_business():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        snippet('x = "\\d"\n').check(1)
    assert heard == []


@pytest.mark.parametrize(
    "text", ["\ufeffx = 1\n", "x = 1", "# -*- coding: latin-1 -*-\n", "x = 1\r\ny = 2\r\n", "pass\f\n"]
)
def test_what_python_runs_is_taken(text):
    snippet(text).check(1)


def test_of_a_program_without_end_python_is_not_asked_here():
    files = {"a.py": "x = 1\n", "long.py": "x;" * (MOST_WORDS // 4) + "("}
    with pytest.raises(Problem, match="was never closed"):
        Snippet(files=files, entry="a.py", pointers=dict.fromkeys(files, "#")).check(1)
    files["long.py"] = "x;" * (MOST_WORDS // 2) + "("
    Snippet(files=files, entry="a.py", pointers=dict.fromkeys(files, "#")).check(1)


def test_a_nul_after_all_words_is_refused_all_the_same():
    files = {"a.py": "x;" * MOST_WORDS, "b.py": "x;" * MOST_WORDS + "\0"}
    with pytest.raises(Problem, match="null"):
        Snippet(files=files, entry="a.py", pointers=dict.fromkeys(files, "#")).check(1)


def test_a_file_that_is_not_python_is_not_compiled():
    files = {"a.py": "x = 1\n", "notes.txt": "this is ( not Python"}
    Snippet(files=files, entry="a.py", pointers=dict.fromkeys(files, "#")).check(1)


QUADRATIC = {
    "a dotted name": "import " + ".".join(["a" * 8] * 20_000),
    "a dotted name behind from": "from " + ".".join(["a" * 8] * 20_000) + " import x",
    "captures of a sequence": "match x:\n case [" + ",".join(f"a{n}" for n in range(20_000)) + "]: pass",
    "captures of a mapping": "match x:\n case {" + ",".join(f"{n}: a{n}" for n in range(20_000)) + "}: pass",
    "captures of a class": "match x:\n case A(" + ",".join(f"a{n}=b{n}" for n in range(20_000)) + "): pass",
    "private names": "class " + "A" * 100_000 + ":\n" + "".join(f" __a{n}\n" for n in range(40_000)),
    "nested names": "".join(" " * n + "class " + "A" * 3_000 + ":\n" for n in range(90))
    + (" " * 90 + "def f(): pass\n") * 6_000,
}
"""Of which CPython's parser or compiler takes gibibytes, for a few hundred kilobytes of text."""

CHECK = """
import json, resource, sys
from service.problems.errors import Problem
from service.program_checks import Snippet

for text in json.load(sys.stdin):
    resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))
    program = Snippet(files={"a.py": text}, entry="a.py", pointers={"a.py": "#"})
    try:
        program.check(1)
    except Problem as problem:
        print(problem.code)
    else:
        print("taken")
print(next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmHWM:")))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""


def test_no_text_takes_gibibytes_of_the_process_that_checks_it_and_the_next_is_checked():
    good, bad = "x = 1\n", "return\n"
    texts = [text for quadratic in QUADRATIC.values() for text in (quadratic, bad)]
    done = subprocess.run(
        [sys.executable, "-c", CHECK], input=json.dumps([good, *texts]), capture_output=True, text=True, check=True
    )
    first, *answers, own, of_children = done.stdout.split()
    assert first == "taken"
    assert answers == ["taken", "syntax-error"] * len(QUADRATIC)
    assert int(own) < 300  # MiB; 60 of them are this program's modules
    assert int(of_children) < 700


def test_a_large_process_finds_faults_as_a_small_one_does():
    large = CHECK.replace("for text in", "filled = b'x' * (400 << 20)\nfor text in").replace("900 << 20", "1500 << 20")
    nested = json.dumps([TOO_DEEP["minus signs"]])
    done = subprocess.run([sys.executable, "-c", large], input=nested, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "syntax-error"


def test_a_process_that_ended_is_started_again():
    with CHECKERS.lend(1) as checker:
        assert checker.find_fault("a.py", "x = 1\n") is None
        first = checker._process
        first.kill()
        first.wait()
        assert "outside function" in checker.find_fault("a.py", "return\n").message
        assert checker._process is not first


def test_a_tenant_has_one_process_at_a_time_and_another_tenant_has_the_other():
    mine, others = (threading.Thread(target=snippet("x = 1\n").check, args=(tenant,)) for tenant in (1, 2))
    with CHECKERS.lend(1):
        mine.start()
        others.start()
        others.join(20)
        assert (mine.is_alive(), others.is_alive()) == (True, False)
    mine.join(20)
    assert not mine.is_alive()


def test_all_files_of_a_program_together_have_the_time():
    nested = "".join(f"{' ' * at}try: pass\n{' ' * at}finally:\n" for at in range(17)) + " " * 17 + "pass\n"
    with CHECKERS.lend(1) as checker:
        assert checker.find_fault("a.py", nested) is None
        assert checker.seconds_left < CPU_SECONDS
        checker.seconds_left = 0.01
        assert checker.find_fault("a.py", nested) is None
        assert checker.find_fault("a.py", "return\n") is None, "no time is left for it"
    with CHECKERS.lend(1) as checker:
        assert checker.find_fault("a.py", "return\n") is not None


def test_a_checker_that_does_not_answer_leaves_the_program_to_its_run(monkeypatch):
    from service.process import syntax_checker

    checker = syntax_checker.SyntaxChecker()
    monkeypatch.setattr(syntax_checker, "_SCRIPT", "/dev/null")
    assert checker.find_fault("a.py", "return\n") is None
    checker.end()
