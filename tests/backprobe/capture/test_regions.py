"""What torch runs in another way than line by line: compiled regions, transforms of `torch.func`, several processes."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from backprobe.record import Record, loads
from tests.backprobe.capture.in_process import line_of, recorded
from tests.support.forks import run

COMPILED = """
import torch
def f(x, w):
    y = x * w
    return (y * 2).sum()
compiled = torch.compile(f, backend=BACKEND, fullgraph=True)
x = torch.tensor([3.0, 4.0])
w = torch.ones(2, requires_grad=True)
for _ in range(2):
    loss = compiled(x, w)
    loss.backward()
"""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_region_stands_at_the_line_that_called_it_and_its_compiler_calls_nothing(backend: str) -> None:
    record = recorded(COMPILED.replace("BACKEND", repr(backend)))
    made = [node for node in record.nodes if node.type != "AccumulateGrad"]
    assert {line_of(record, node.site) for node in made} == {10}, "not at the line of its `def`"
    assert [node.type for node in made if node.custom] == ["CompiledFunctionBackward"] * 2 * (backend == "aot_eager")
    called = [(row.entry, line_of(record, row.site)) for row in record.backward_calls]
    assert called == [("Tensor.backward", 11)] * 2, "the pass that the compiler traces is not the program's"
    assert last_gradient(record, "w") == pytest.approx(2 * 2 * 5), "norm of 2 (x * 2)"


def last_gradient(record: Record, name: str) -> float | None:
    """The norm of `.grad` as last seen of what a name held."""
    tensor = next(row.tensor for row in record.bindings if row.name == name)
    rows = [row.grad_stats for row in record.snapshots if row.tensor == tensor and row.grad_stats is not None]
    return rows[-1].norm


TRANSFORMED = """
import torch
from torch.func import grad, hessian, jacrev, vmap
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
def f(x):
    y = x * w
    return y.sum()
x = torch.ones(3)
g = grad(f)(x)
v = vmap(f)(torch.ones(4, 3))
j = jacrev(torch.sin)(x)
h = hessian(f)(x)
(g.sum() + v.sum()).backward()
"""


def test_a_transform_shows_its_call_the_operations_inside_and_what_comes_out() -> None:
    record = recorded(TRANSFORMED)
    calls = [(row.entry, line_of(record, row.site), row.outcome) for row in record.backward_calls]
    assert calls == [
        ("func.grad", 9, "finished"),
        ("func.grad", 11, "finished"),
        ("func.grad", 12, "finished"),
        ("Tensor.backward", 13, "finished"),
    ]
    inside = [row for row in record.operations if row.function == "*"]
    assert [row.shape for row in inside[:2]] == [(3,), (3,)], "under vmap the shape that the function sees"
    tensors = {row.tensor: row for row in record.tensors}
    shapes = {row.name: tensors[row.tensor].shape for row in record.bindings}
    assert (shapes["g"], shapes["v"], shapes["j"], shapes["h"]) == ((3,), (4,), (3, 3), (3, 3))
    assert last_gradient(record, "w") == pytest.approx(5 * math.sqrt(3)), "1 through g, 4 through v"


RANKS = """\
import datetime, os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
pid = os.fork()
rank = 0 if pid else 1
try:
    dist.init_process_group(
        "gloo", init_method="file://" + os.path.abspath("meeting"), rank=rank, world_size=2,
        timeout=datetime.timedelta(seconds=120),
    )
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(3, 1, bias=False))
    loss = model(torch.full((2, 3), rank + 1.0)).sum()
    loss.backward()
    os.write(1, f"{rank} {model.module.weight.grad.tolist()}\\n".encode())  # at once: the ranks share the stream
    del model, loss
    dist.destroy_process_group()
finally:
    if not pid:
        os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.usefixtures("fresh_python")
def test_a_rank_of_ddp_shows_the_gradient_that_arrived_and_the_mean_that_is_kept(tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(RANKS)
    done = subprocess.run(
        [sys.executable, "-m", "backprobe", "run", "--save", "r.bprec", "--exit-zero", "ranks.py"],
        check=False, cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()[:2]) == ["0 [[3.0, 3.0, 3.0]]", "1 [[3.0, 3.0, 3.0]]"], done.stderr
    record = loads((tmp_path / "r.bprec").read_bytes())
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    weight = next(row for row in record.tensors if row.fqn is not None and row.fqn.endswith("weight"))
    assert weight.fqn == "model.module.weight"
    sink = next(row.node for row in record.nodes if row.variable == weight.tensor)
    arrived = next(row.grad_output for row in record.node_passes if row.node == sink)
    assert arrived is not None
    assert arrived.norm == pytest.approx(2 * math.sqrt(3)), "of this rank's two rows of ones"
    kept = [row.grad_stats for row in record.snapshots if row.tensor == weight.tensor and row.grad_stats is not None]
    assert kept[-1].norm == pytest.approx(3 * math.sqrt(3)), "the mean of 2 and of the other rank's 4"
    assert [row.chain for row in record.module_calls] == ["model#0", "model#0.module#0"]
    called = [row.function for row in record.watched_calls if row.function != "="]
    assert called == ["torch.nn.parallel.DistributedDataParallel.forward"]


WRAPPED = """
import tempfile
import torch
from torch.nn.parallel import DistributedDataParallel
torch.distributed.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
model = DistributedDataParallel(torch.nn.Linear(2, 2))
model(torch.ones(1, 2)).sum().backward()
torch.distributed.destroy_process_group()
"""


def test_a_wrapper_of_a_process_group_is_not_destroyed_when_the_recorder_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "captures.py"
    path.write_text(
        "import gc\n"
        "from torch.nn.parallel import DistributedDataParallel\n"
        "from backprobe.capture.program.launch import run_source\n"
        f"assert run_source({WRAPPED!r}).end.exit_code == 0\n"
        "gc.collect()\n"
        "print(sum(isinstance(found, DistributedDataParallel) for found in gc.get_objects()))\n"
    )
    (ran,) = run([("plain", path, [])])
    assert (ran["out"], ran["code"]) == ("1\n", 0), ran["err"]
