"""With the check on a program computes the same bits, and what its copies would write or send is not there."""

import os

import psutil
import pytest

from backprobe.rules.manual_programs import programs

PROGRAM = """\
import torch, random
from torch import nn
target, source = {target!r}, {source!r}
file = open(source)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(8), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
told = []
for step in range(4):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    out = net(x)
    said = file.readline()
    with open(target, "a") as kept:
        kept.write(f"{{step}} {{said.strip()}} {{random.random()}}\\n")
    torch.save(net.state_dict(), target + ".pt")
    loss = (out - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    told.append(loss.item().hex())
told += [float(one.double().sum()).hex() for one in net.state_dict().values()]
with open(target, "a") as kept:
    print(*told, file=kept)
"""


@pytest.fixture
def texts(tmp_path):
    """What the program left in its file, without and with the check, and the rows of the check."""
    source = tmp_path / "lines.txt"
    source.write_text("".join(f"line {n}\n" for n in range(2000)))
    left = []
    for check in (False, True):
        target = tmp_path / f"left-{check}"
        program = PROGRAM.format(target=str(target), source=str(source))
        record = programs().captured(program, check=check)
        assert record.end is not None
        assert record.end.exit_code == 0
        left.append(target.read_text())
        assert target.with_name(target.name + ".pt").stat().st_size > 1000
    return left, record.gradient_checks


def test_output_files_and_parameters_are_the_same_bit_for_bit(texts) -> None:
    (without, with_check), rows = texts
    assert with_check == without
    assert rows


QUIET = """\
import os, torch
pair = os.pipe()
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = (w * w).sum()
    try:
        os.write(pair[1], b"x")
        print("a step")
        os.remove({target!r})
    except OSError:
        pass
    loss.backward()
    optimizer.step()
os.close(pair[1])
read = os.read(pair[0], 1000)
assert read == b"xxx", read
"""


def test_a_copy_sends_nothing_through_a_pipe_and_removes_no_file_before_the_program_does(tmp_path) -> None:
    target = tmp_path / "kept"
    target.write_text("here")
    record = programs().captured(QUIET.format(target=str(target)), check=True)
    assert record.end is not None
    assert record.end.exit_code == 0
    assert {row.verdict for row in record.gradient_checks} == {"agrees"}
    assert not target.exists()


def test_a_copy_that_hangs_is_dropped_and_said(tmp_path) -> None:
    program = (
        "import os, time, torch\nfrom backprobe.capture.gradient_check import measuring\n"
        "measuring.MOST_SECONDS = 2\nfirst = os.getpid()\nw = torch.ones(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for step in range(1):\n    optimizer.zero_grad()\n    loss = (w * w).sum()\n"
        "    while os.getpid() != first:\n        time.sleep(1)\n    loss.backward()\n    optimizer.step()\n"
    )
    record = programs().captured(program, check=True)
    assert record.end is not None
    assert record.end.exit_code == 0
    assert [row.verdict for row in record.gradient_checks] == ["not-checked"]
    assert "in time" in (record.gradient_checks[0].why or "")


WRITES_MEANWHILE = """\
import os, threading, time, torch
first, ended = os.getpid(), threading.Event()
written = open({target!r}, "wb", buffering=0)
def write():
    while not ended.wait(0.02):
        written.write(b"x")
        count.append(1)
count = []
thread = threading.Thread(target=write)
thread.start()
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = (w * w).sum()
    if os.getpid() != first:
        time.sleep(0.1)
    loss.backward()
    optimizer.step()
ended.set()
thread.join()
assert os.path.getsize({target!r}) == len(count), (os.path.getsize({target!r}), len(count))
"""


def test_what_another_thread_writes_while_a_copy_runs_is_kept(tmp_path) -> None:
    record = programs().captured(WRITES_MEANWHILE.format(target=str(tmp_path / "log")), check=True)
    assert record.end is not None
    assert record.end.exit_code == 0
    assert "agrees" in {row.verdict for row in record.gradient_checks}


FORKS_BENEATH = """\
import ctypes, os, time, torch
library, first = ctypes.PyDLL(None), os.getpid()
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
loss = (w * w).sum()
if os.getpid() != first and library.fork() == 0:
    library.prctl(15, {mark!r})
    {then}
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize("then", ["time.sleep(600)", "pass"])
def test_what_native_code_forks_in_a_copy_tells_nothing_and_ends_with_it(then) -> None:
    mark = f"bp{os.getpid()}{then[0]}"
    record = programs().captured(FORKS_BENEATH.format(mark=mark.encode(), then=then), check=True)
    assert [row.verdict for row in record.gradient_checks] == ["agrees"], record.gradient_checks
    named = [row for row in psutil.process_iter(["name", "status"]) if row.info["name"] == mark]
    assert not [row for row in named if row.info["status"] != psutil.STATUS_ZOMBIE]


FORKS_ITSELF = """\
import ctypes, os, torch
w = torch.ones(3, requires_grad=True)
(w * w).sum().backward()
pid = ctypes.PyDLL(None).fork()
w.grad.add_(1)
if pid:
    os.waitpid(pid, 0)
    (w * 3).sum().backward()
"""


def test_a_process_that_native_code_forks_writes_nothing_into_the_record() -> None:
    record = programs().captured(FORKS_ITSELF)
    assert record.end is not None
    assert len(record.backward_calls) == 2
