"""A program that runs where others ran leaves the record that it leaves in a fresh process."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from backprobe.capture.forks.plain_programs import is_plain
from backprobe.record import Record
from backprobe.rules import RULES
from backprobe.rules.manual_programs import Programs
from backprobe.rules.testing import example, wants_check

COUNTED = {"seq", "first_seq", "lo", "hi"}
"""Fields with a number that autograd counts from the start of the process."""

TRAINING = """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(2):
    loss = net(torch.randn(5, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

LEAVES = {
    "gradients switched off": "import torch\ntorch.set_grad_enabled(False)\n",
    "gradients switched off by a generator": (
        "import torch\n@torch.no_grad()\ndef off():\n    pass\ndef steps():\n    with torch.no_grad():\n"
        "        yield 1\nkept = steps()\nnext(kept)\n"
    ),
    "a generator that nothing can collect": (
        "import torch, functools\ndef steps():\n    with torch.no_grad():\n        yield 1\n"
        "torch.Tensor.kept = kept = steps()\nnext(kept)\n"
    ),
    "another default": "import torch\ntorch.set_default_dtype(torch.float64)\n",
    "a patched class": "from torch import nn\nnn.Dropout.forward = lambda self, x: x\n",
    "a patched class by another name": "from torch import nn\nkind = nn.Module\nkind.forgotten = 1\nkind.train = None\n",
    "a hook of all modules": (
        "from torch.nn.modules.module import register_module_forward_hook as hook\n"
        "hook(lambda module, given, made: made * 0)\n"
    ),
    "a variable of the environment": "import os\nos.environ['TORCH_LEFT'] = '1'\n",
    "a thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
    "random numbers drawn": "import random, torch\ntorch.randn(7), random.random()\n",
    "another seed": "import torch\ntorch.manual_seed(7)\n",
    "what torch tells once in a process": (
        "import torch\nx = torch.ones(2, requires_grad=True) * 2\nx.sum().backward()\ny = x.grad\n"
    ),
    "an exception": "import torch\nx = torch.ones(2, requires_grad=True)\nx.exp().add_(1).backward()\n",
}
"""What a program leaves behind -> a program that does."""


def normalize(value: Any, first: int) -> Any:
    """A record without its times, its counted numbers from the program's first one on."""
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if not name.endswith("_ns") and name != "started_at"]
        return {name: renumber(name, getattr(value, name), first) for name in names}
    if isinstance(value, tuple | list):
        return [normalize(item, first) for item in value]
    return {key: normalize(item, first) for key, item in value.items()} if isinstance(value, dict) else repr(value)


def renumber(name: str, value: Any, first: int) -> Any:
    return value - first if name in COUNTED and isinstance(value, int) else normalize(value, first)


def first_number(record: Record) -> int:
    (number,) = [thread.first_seq for thread in record.threads if thread.main] or [0]
    return number or 0


def same(record: Record, alone: Record) -> None:
    first, other = normalize(record, first_number(record)), normalize(alone, first_number(alone))
    differ = {name: differing_rows(first[name], other[name]) for name in first if first[name] != other[name]}
    assert not differ, f"shared and lone: {differ}"


def differing_rows(first: Any, other: Any) -> Any:
    """Whole rows, which pytest's own comparison cuts."""
    if isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        return [pair for pair in zip(first, other, strict=True) if pair[0] != pair[1]]
    return first, other


def with_known_memory(program: str) -> str:
    """A program whose tensors of uninitialized memory are of zeros, so that two runs have the same values."""
    return re.sub(r"empty(_like)?\(", r"zeros\1(", program)


@pytest.fixture(scope="module")
def runs():
    with Programs() as opened:
        yield opened


def test_programs_that_share_a_process_leave_the_records_of_lone_ones(runs) -> None:
    chosen = [(with_known_memory(example(rule)[0]), wants_check(rule)) for rule in RULES[::12]]
    shared = [runs.captured(text, check=check) for text, check in chosen]
    alone = [runs.captured(text, check=check, alone=True) for text, check in chosen]
    for first, other in zip(shared, alone, strict=True):
        same(first, other)
    later = [first for first, other in zip(shared, alone, strict=True) if first_number(first) > first_number(other)]
    assert len(later) > len(chosen) / 2  # most did share one


@pytest.mark.parametrize("left", LEAVES)
def test_what_a_program_leaves_behind_is_not_seen_by_the_next(left, runs) -> None:
    after = f"{TRAINING}# after {left}\nx = torch.ones(2, requires_grad=True) * 2\nx.sum().backward()\ng = x.grad\n"
    assert is_plain(after)
    runs.captured(f"{TRAINING}# before {left}\n")
    runs.captured(LEAVES[left])
    same(runs.captured(after), runs.captured(after, alone=True))


@pytest.mark.parametrize(("seed", "drawn"), [(0, "random.random()"), (None, "0.5")], ids=["seeded", "as it comes"])
def test_random_numbers_are_those_of_a_lone_program(seed, drawn, runs) -> None:
    """Without a seed Python's own `random` is another in each fork."""
    text = f"import random\nimport torch\nx = torch.rand(3)\ny = torch.tensor({drawn})\n"
    runs.captured(f"import torch\ntorch.rand(5)\n# {seed}\n", seed=seed)
    shared, alone = (runs.captured(text, seed=seed, alone=is_alone) for is_alone in (False, True))
    assert [row.elements for row in shared.small_values] == [row.elements for row in alone.small_values]
    same(shared, alone)


def test_a_program_that_ends_its_process_ends_no_other(runs) -> None:
    runs.captured(f"{TRAINING}# first\n")
    with pytest.raises(RuntimeError, match="wait status 9"):
        runs.captured("import torch\nfrom random import _os\n_os.kill(_os.getpid(), 9)\n")
    assert runs.captured(f"{TRAINING}# second\n").end.ending == "ended"
