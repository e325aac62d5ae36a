"""Each moment has the calls in the user's files that led to the function of its statement."""

from __future__ import annotations

from backprobe.record import Moment, Record
from tests.backprobe.capture.in_process import line_of, recorded

TRAINING = """\
import torch
net = torch.nn.Linear(2, 1)
def freeze(part):
    part.requires_grad_(False)
def step(optimizer):
    optimizer.zero_grad()
    loss = net(torch.ones(1, 2)).sum()
    loss.register_hook(double)
    loss.backward()
    optimizer.step()
def double(gradient):
    doubled = gradient * 2
    return doubled
def fit():
    optimizer = torch.optim.SGD([net.weight], lr=0.1)
    for _ in range(2):
        step(optimizer)
freeze(net.bias)
fit()
"""


def lines(record: Record, stack: int | None) -> list[int | None]:
    """The lines of a stack's calls, the innermost first."""
    rows = {row.stack: row for row in record.stacks}
    found: list[int | None] = []
    while stack is not None:
        found.append(line_of(record, rows[stack].site))
        stack = rows[stack].parent
    return found


def stacks_at_line(record: Record, line: int) -> list[list[int | None]]:
    """The stacks of the moments at a line, each once."""
    chosen: list[Moment] = [row for row in record.moments if line_of(record, row.site) == line]
    return [list(frames) for frames in dict.fromkeys(tuple(lines(record, row.stack)) for row in chosen)]


def test_clear_hook_backward_call_and_step_have_the_calls_that_led_there() -> None:
    record = recorded(TRAINING)
    assert [stacks_at_line(record, line) for line in (6, 8, 9, 10)] == [[[17, 19]]] * 4
    kinds = {row.kind: lines(record, row.stack) for row in record.moments}
    assert kinds["before-backward"] == kinds["after-backward"] == kinds["optimizer-step"] == [17, 19]
    assert [lines(record, record.moments[row.moment].stack) for row in record.hooks if row.moment is not None] == [
        [17, 19], [17, 19]
    ]  # fmt: skip


def test_a_flag_that_a_function_changes_has_the_call_of_the_function() -> None:
    record = recorded(TRAINING)
    changed = [row for row in record.snapshots if line_of(record, record.moments[row.moment].site) == 4]
    assert [row.requires_grad for row in changed] == [False]
    assert stacks_at_line(record, 4) == [[18]]


def test_a_hook_is_called_from_the_backward_call() -> None:
    assert stacks_at_line(recorded(TRAINING), 12) == [[9, 17, 19]]


def test_the_top_level_has_no_calls() -> None:
    record = recorded(TRAINING)
    assert stacks_at_line(record, 2) == stacks_at_line(record, 19) == [[]]
    assert {row.stack for row in record.moments if row.kind == "end"} == {None}


def test_each_chain_is_told_once() -> None:
    record = recorded(TRAINING)
    assert len({(row.site, row.parent) for row in record.stacks}) == len(record.stacks)


def test_a_comprehension_and_a_recursion_count_once() -> None:
    record = recorded(
        "import torch\ndef inner(depth):\n    if depth:\n        return inner(depth - 1)\n"
        "    made = torch.ones(2)\n    return made\ndef outer():\n    kept = [inner(depth) for depth in (0, 40)]\nouter()\n"
    )
    assert stacks_at_line(record, 5) == [[8, 9], [4, 8, 9]]


def test_a_deep_chain_keeps_its_innermost_calls() -> None:
    functions = "".join(f"def f{n}():\n    return f{n + 1}()\n" for n in range(60))
    record = recorded(f"import torch\n{functions}def f60():\n    made = torch.ones(2)\nf0()\n")
    (found,) = stacks_at_line(record, 123)
    assert found == [121 - 2 * n for n in range(32)]


def test_a_thread_begins_a_chain_of_its_own() -> None:
    record = recorded(
        "import threading\nimport torch\ndef work():\n    made = torch.ones(2)\n"
        "def start():\n    thread = threading.Thread(target=work)\n    thread.start()\n    thread.join()\nstart()\n"
    )
    assert stacks_at_line(record, 4) == [[]]
