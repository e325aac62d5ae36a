"""Run a program of known result in a worker's own sandbox, then attack the sandbox: what holds may be offered."""

from __future__ import annotations

from typing import Final

from store.runs import lifecycle
from workers.sandbox.levels.probe import prove
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

_CANARY: Final = """\
import sys, torch
x = torch.arange(3.0, requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [0.0, 2.0, 4.0]
devices = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if "cuda" in sys.argv else []
print(torch.__version__, *devices, sep="\\n")
"""


def run_canary(supervisor: Supervisor, queue: lifecycle.Queue) -> list[str] | str:
    """Return torch's version and the names of the devices; a text: why the sandbox does not work or hold.

    Args:
        supervisor: Gets the id of the proof as its `probe_id` where its level holds; level `none` promises nothing.
        queue: The program lists CUDA devices for `gpu`.
    """
    arguments = ("cuda",) if queue == "gpu" else ()
    outcome = supervisor.run(Job(files={"canary.py": _CANARY}, entry="canary.py", arguments=arguments))
    lines = outcome.facts.stdout.decode("utf-8", "replace").splitlines()
    if outcome.status != "succeeded" or not lines:
        error = outcome.facts.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][-200:]
        ending = f"a program of one line ended {outcome.status} {outcome.reason}{f': {error}' if error else ''}"
        return outcome.facts.broken or ending
    level = supervisor.confinement.level
    if level == "none":
        return lines
    proof = prove(supervisor)
    supervisor.probe_id = proof.probe_id
    return lines if proof.holds else f"isolation {level} does not hold: {'; '.join(proof.breaches)}"
