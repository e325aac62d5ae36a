"""The check of gradients in the sandbox: copies of the child where a run may have several processes, and words elsewhere."""

import pytest

from backprobe.record import Record
from store.runs.limits import Limits
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("sandbox")

STEPS = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 3), torch.randn(8, 1)
for step in range(3):
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
print(float(loss))
"""
CUT = STEPS.replace("model(x) - y", "model(x) - y + model(x).detach()")


def checked(supervisor: Supervisor, source: str, *, check: bool = True) -> tuple[Outcome, Record]:
    job = Job(files={"main.py": source}, entry="main.py", limits=Limits(), check=check)
    outcome = supervisor.run(job)
    assert outcome.status == "succeeded", (outcome.error, outcome.facts.stderr)
    assert outcome.record is not None
    return outcome, outcome.record


def test_where_a_run_may_have_several_processes_its_gradients_are_compared(grouped: Supervisor) -> None:
    plain, without = checked(grouped, STEPS, check=False)
    outcome, record = checked(grouped, STEPS)
    assert {row.verdict for row in record.gradient_checks} == {"agrees"}, {row.why for row in record.gradient_checks}
    assert without.gradient_checks == ()
    assert outcome.facts.stdout == plain.facts.stdout


def test_a_written_cut_is_seen_there_and_explains_the_difference(grouped: Supervisor) -> None:
    _, record = checked(grouped, CUT)
    assert {row.verdict for row in record.gradient_checks} == {"differs"}
    assert all("detach" in (row.explained_by or "") for row in record.gradient_checks), record.gradient_checks


def test_where_it_may_not_each_row_says_that_no_copy_could_be_started(locked: Supervisor) -> None:
    plain, _ = checked(locked, STEPS, check=False)
    outcome, record = checked(locked, STEPS)
    assert {row.verdict for row in record.gradient_checks} == {"not-checked"}
    assert all("process" in row.why for row in record.gradient_checks), record.gradient_checks
    assert outcome.facts.stdout == plain.facts.stdout


ESCAPES = (
    STEPS.replace(
        "import torch\n",
        """import os
import torch
me = os.getpid()
def noted(loss):
    if os.getpid() != me:  # a copy
        for act in (lambda: open("left.txt", "a").write("x"), lambda: os.kill(me, 9), os.fork):
            try:
                act()
                open("got_through", "w").close()
            except OSError:
                pass
    return loss
""",
        1,
    ).replace("((model(x) - y) ** 2).mean()", "noted(((model(x) - y) ** 2).mean())")
    + """
print(sorted(os.listdir(".")))
"""
)


def test_a_copy_writes_nothing_ends_nobody_and_starts_nothing(grouped: Supervisor) -> None:
    outcome, record = checked(grouped, ESCAPES)
    assert outcome.facts.stdout.splitlines()[-1] == b"['main.py']"
    assert {row.verdict for row in record.gradient_checks} == {"agrees"}, {row.why for row in record.gradient_checks}


FORKS_ITSELF = STEPS + "import ctypes, os\nif (pid := ctypes.PyDLL(None).fork()):\n    os.waitpid(pid, 0)\n"


def test_where_the_program_takes_the_room_of_a_copy_its_own_process_ends_no_record(grouped: Supervisor) -> None:
    _, record = checked(grouped, FORKS_ITSELF)
    assert {row.verdict for row in record.gradient_checks} == {"agrees"}, {row.why for row in record.gradient_checks}
