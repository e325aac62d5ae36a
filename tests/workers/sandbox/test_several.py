"""Runs that may have several processes: what torch does with them works locked down, and reaches nothing outside."""

import pytest

LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(64.0).reshape(16, 4), torch.arange(16.0))
net, seen = torch.nn.Linear(4, 1), 0
for x, y in DataLoader(data, batch_size=4, num_workers=2):
    net(x).sum().backward()
    seen += int(y.sum())
print(seen)
"""

GLOO = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
def work(rank):
    os.environ.update(MASTER_ADDR="{address}", MASTER_PORT="29500")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    net = DistributedDataParallel(torch.nn.Linear(2, 1))
    net(torch.full((1, 2), float(rank + 1))).sum().backward()
    assert net.module.weight.grad.tolist() == [[1.5, 1.5]]
    del net  # before its group: the other way round, torch's destructors now and then wait for each other
    dist.destroy_process_group()
torch.multiprocessing.start_processes(work, nprocs=2, start_method="fork")
print("both agree")
"""


def test_workers_of_a_data_loader_work(grouped, start):
    outcome = start(grouped, LOADER, processes=3)
    assert (outcome.status, outcome.facts.stdout) == ("succeeded", b"120\n"), outcome.facts.stderr
    assert len(outcome.record.backward_calls) == 4


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost"])
def test_two_ranks_talk_over_gloo(address, grouped, start):
    outcome = start(grouped, GLOO.format(address=address), processes=3, cpu_seconds=120, wall_seconds=200)
    assert (outcome.status, outcome.facts.stdout) == ("succeeded", b"both agree\n"), outcome.facts.stderr


@pytest.mark.parametrize("program", [LOADER, GLOO.format(address="127.0.0.1")], ids=["loader", "gloo"])
def test_at_a_lower_level_it_does_not_start_and_says_what_it_needs(program, locked, start):
    outcome = start(locked, program, processes=3)
    assert (outcome.status, outcome.reason, outcome.limit_hit) == ("failed", "processes", "processes")
    assert "isolation `namespace`" in outcome.error.message
    assert "this worker gives process" in outcome.error.message
    assert outcome.facts.stdout == b""


OUTSIDE = """
import os, socket, ctypes
libc = ctypes.CDLL(None, use_errno=True)
if os.fork() == 0:
    for family, address in ((socket.AF_INET, ("{host}", {port})), (socket.AF_UNIX, "{path}"), (socket.AF_UNIX, "\\0{path}")):
        with socket.socket(family) as one:
            one.settimeout(2)
            try:
                one.connect(address)
                print("reached", address, flush=True)
            except OSError as error:
                print(type(error).__name__, flush=True)
    for what, call in (
        ("exec", lambda: os.execv("/usr/bin/true", ["true"])),
        ("packet", lambda: socket.socket(17, 3)),
        ("vsock", lambda: socket.socket(40, 1)),
        ("audit", lambda: socket.socket(16, 2, 9)),
        ("namespace", lambda: 1 / (libc.unshare(0x10000000) < 0) and None or os.stat("/nowhere")),
        ("all", lambda: os.kill(-1, 0)),
    ):
        try:
            call()
            print("could", what, flush=True)
        except OSError:
            pass
    os._exit(0)
os.wait()
"""


def test_sockets_end_at_its_own_loopback(grouped, start, tmp_path):
    import socket

    tmp_path.chmod(0o777)
    path = str(tmp_path / "sock")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as named:
        named.bind(path)
        (tmp_path / "sock").chmod(0o777)
        named.listen()
        source = OUTSIDE.format(host="127.0.0.1", port=tcp.getsockname()[1], path=path)
        outcome = start(grouped, source, processes=3)
        for listener in (tcp, named):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()
    said = outcome.facts.stdout.decode().splitlines()
    assert said[:3] == ["ConnectionRefusedError", "FileNotFoundError", "ConnectionRefusedError"], outcome.facts
    assert [line for line in said[3:] if line != "could all"] == []  # its own processes are all that there are


def test_nothing_that_a_program_forked_lives_on(grouped, start, wait_until):
    source = "import os, time\nfor _ in range(2):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(3600)\nprint('end')"
    outcome = start(grouped, source, processes=3)
    assert (outcome.status, outcome.facts.stdout) == ("succeeded", b"end\n"), outcome
    assert outcome.facts.wall_seconds < 600
