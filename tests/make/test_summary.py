"""What a run of the tests says at its end of a test that was run again."""

from types import SimpleNamespace

from tests.support.summary import WHY_LINES, run_again


def test_a_test_that_was_run_again_says_why_it_failed_at_first():
    said = "\n".join(f"line {n}" for n in range(WHY_LINES + 1))
    first, *lines = run_again([SimpleNamespace(nodeid="tests/a.py::test_b", duration=3.2, longrepr=said)])
    assert first == "run again: tests/a.py::test_b, after 3 s"
    assert lines == [f"    line {n}" for n in range(1, WHY_LINES + 1)]
