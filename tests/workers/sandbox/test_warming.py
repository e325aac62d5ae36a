"""A zygote goes on warming up in its pauses; that is no wear."""

from workers.sandbox.boot import exec_zygote
from workers.sandbox.job import Job
from workers.sandbox.supervisor import Supervisor

DYNAMO_MAPPED = 60 << 20
"""Resident bytes that the first optimizer adds at least: torch imports its compiler then."""


def test_warming_up_in_a_pause_does_not_wear_a_zygote_out(zygotes, until):
    known = set(zygotes())
    with Supervisor(exec_zygote) as supervisor:
        assert supervisor.wait_warm(60)
        [zygote] = set(zygotes()) - known
        at_first = zygote.memory_info().rss
        until(lambda: zygote.memory_info().rss > at_first + DYNAMO_MAPPED, "warmer")
        for _ in range(4):
            assert supervisor.run(Job(files={"main.py": "import torch"}, entry="main.py")).status == "succeeded"
        assert set(zygotes()) - known == {zygote}
