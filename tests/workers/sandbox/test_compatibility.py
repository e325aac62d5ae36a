"""What of torch works under lockdown, by level: the table that the documents show (docs/threat-model.md)."""

import pytest

from store.runs.limits import Limits
from tests.support.isolation import confined
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("sandbox")

START = "import torch\nfrom torch import nn\ntorch.manual_seed(0)\nx = torch.randn(4, 3)\n"

EVERYWHERE = {
    "Linear and Adam": "m = nn.Linear(3, 1)\no = torch.optim.Adam(m.parameters())\nfor _ in range(3):\n    o.zero_grad(); m(x).pow(2).mean().backward(); o.step()",
    "SGD with momentum": "m = nn.Linear(3, 1)\no = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)\nm(x).sum().backward(); o.step()",
    "convolution": "m = nn.Conv2d(1, 2, 3)\nm(torch.randn(1, 1, 8, 8)).sum().backward()",
    "batch norm and dropout": "m = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))\nm(x).sum().backward()",
    "LSTM": "m = nn.LSTM(3, 5)\nm(torch.randn(7, 2, 3))[0].sum().backward()",
    "attention": "m = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)\nm(torch.randn(2, 5, 8)).sum().backward()",
    "embedding and cross entropy": "m = nn.Embedding(9, 4)\nnn.functional.cross_entropy(m(torch.arange(4)), torch.arange(4)).backward()",
    "detect_anomaly": "w = torch.ones(2, requires_grad=True)\nwith torch.autograd.detect_anomaly():\n    (w * 2).sum().backward()",
    "torch.func": "from torch.func import grad, jacrev, vmap\nvmap(grad(lambda v: (v ** 2).sum()))(x); jacrev(torch.sin)(x)",
    "gradcheck": "w = torch.randn(3, dtype=torch.double, requires_grad=True)\nassert torch.autograd.gradcheck(torch.tanh, w)",
    "checkpoint": "from torch.utils.checkpoint import checkpoint\nw = torch.ones(3, requires_grad=True)\ncheckpoint(lambda v: (v * v).sum(), w, use_reentrant=False).backward()",
    "custom Function": "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a): return a * 2\n    @staticmethod\n    def backward(ctx, g): return g * 2\nF.apply(torch.ones(2, requires_grad=True)).sum().backward()",
    "hooks": "w = torch.ones(2, requires_grad=True)\nw.register_hook(lambda g: g * 2)\n(w * w).sum().backward()",
    "double backward": "w = torch.ones(2, requires_grad=True)\n(g,) = torch.autograd.grad((w ** 3).sum(), w, create_graph=True)\ng.sum().backward()",
    "deterministic mode": "torch.use_deterministic_algorithms(True)\nw = torch.ones(3, requires_grad=True)\nw[torch.tensor([0, 0, 1])].sum().backward()",
    "autocast to bfloat16": "m = nn.Linear(3, 1)\nwith torch.autocast('cpu', dtype=torch.bfloat16):\n    m(x).float().sum().backward()",
    "DataLoader without workers": "from torch.utils.data import DataLoader, TensorDataset\nfor (b,) in DataLoader(TensorDataset(x), 2, shuffle=True): b.sum()",
    "several threads": "torch.set_num_threads(2)\n(torch.randn(300, 300, requires_grad=True) @ torch.randn(300, 300)).sum().backward()",
    "numpy and back": "import numpy\nassert numpy.allclose(x.numpy(), torch.from_numpy(x.numpy().copy()).numpy())",
    "profiler": "from torch.profiler import profile\nwith profile() as seen: (x @ x.T).sum()\nassert seen.key_averages()",
    "torch.compile with aot_eager": "f = torch.compile(lambda v: (v * v).sum(), backend='aot_eager')\nf(torch.ones(3, requires_grad=True)).backward()",
    "the user's name": "import getpass\nassert getpass.getuser() == 'nobody'",
    "save and load in memory": "import io\nheld = io.BytesIO()\ntorch.save({'x': x}, held); held.seek(0)\nassert torch.equal(torch.load(held)['x'], x)",
}  # fmt: skip
"""Work at every level."""

NEEDS_A_FOLDER = {
    "save and load in /tmp": "torch.save({'x': x}, '/tmp/x.pt')\nassert torch.equal(torch.load('/tmp/x.pt')['x'], x)",
}  # fmt: skip
"""Work where there is a private folder: not at `process`."""

NEEDS_PROCESSES = {
    "DataLoader with workers": "from torch.utils.data import DataLoader, TensorDataset\nfor (b,) in DataLoader(TensorDataset(x), 2, num_workers=2): b.sum()",
    "its own program": "import subprocess\nsubprocess.run(['/usr/bin/true'], check=True)",
    "torch.compile with inductor": "f = torch.compile(lambda v: torch.sin(v) * v)\nf(torch.ones(3, requires_grad=True)).sum().backward()",
}  # fmt: skip
"""Not while one process is all that a run may have: they fail with an exception of the program's own, and nothing hangs."""


SHARED = {"process": "locked", "namespace": "apart", "gvisor": "guest"}
"""Level -> the fixture with its warm process."""


@pytest.fixture(scope="module", params=SHARED)
def level(request: pytest.FixtureRequest) -> Supervisor:
    return request.getfixturevalue(SHARED[request.param])


@pytest.mark.parametrize("name", [*EVERYWHERE, *NEEDS_A_FOLDER, *NEEDS_PROCESSES])
def test_what_of_torch_works_is_what_the_table_says(level, name) -> None:
    source = START + (EVERYWHERE | NEEDS_A_FOLDER | NEEDS_PROCESSES)[name] + "\nprint('works')\n"
    folder = level.confinement.level != "process"
    limits = Limits(cpu_seconds=60, wall_seconds=240, disk_bytes=(16 << 20) * folder)
    outcome = level.run(Job(files={"main.py": source}, entry="main.py", limits=limits))
    told = (outcome.status, outcome.reason, outcome.facts.stdout, outcome.facts.stderr[-600:])
    if name in EVERYWHERE or (folder and name in NEEDS_A_FOLDER):
        assert told[:3] == ("succeeded", "ended", b"works\n"), told
    else:
        assert told[:3] == ("failed", "exception", b""), told


@pytest.mark.parametrize("level", ["process", "namespace"])
@pytest.mark.parametrize("disk_bytes", [0, 1 << 20])
def test_the_first_optimizer_of_a_process_that_is_not_warm_yet_works_too(level, disk_bytes) -> None:
    """It imports what writes a cache: in the first seconds of a worker, before that was loaded ahead."""
    chosen = confined(level)
    if disk_bytes and level == "process":
        return  # nothing can be written there
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen) as supervisor:
        job = Job(
            files={"main.py": START + EVERYWHERE["Linear and Adam"]},
            entry="main.py",
            limits=Limits(disk_bytes=disk_bytes, wall_seconds=240),
        )
        outcome = supervisor.run(job)
    assert outcome.status == "succeeded", outcome.facts.stderr
