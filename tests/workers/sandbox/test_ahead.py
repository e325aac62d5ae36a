"""The child that is forked and locked down in a pause, before anybody needs it."""

import os
import time
from collections.abc import Iterator

import psutil
import pytest

from store.runs.limits import Limits
from tests.support.isolation import confined
from workers.sandbox.levels import attestation as attest
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor import streams
from workers.sandbox.supervisor.attempt import Attempt
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("sandbox")

WHO = "import os\nprint(os.getpid(), os.getsid(0), sorted(os.listdir('/proc/self/fd')) if os.getpid() == 1 else '')"
RANDOM = """\
import random, torch
print(torch.initial_seed() == torch.default_generator.initial_seed(), torch.get_default_dtype(), torch.is_grad_enabled())
print(torch.rand(2).tolist(), random.random() != random.random())
torch.manual_seed(0)
x = torch.randn(3, requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist(), torch.random.initial_seed())
"""


@pytest.fixture(scope="module", params=["none", "process", "namespace"])
def ours(request, wait_until) -> Iterator[Supervisor]:
    """One that makes its next child ahead, at each level; it is warm to the last."""
    chosen = confined(request.param)
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen) as supervisor:
        assert supervisor.wait_warm(120), supervisor.failure
        wait_until(lambda: waiting(supervisor), "a child is made ahead")
        yield supervisor


def waiting(supervisor: Supervisor) -> Attempt | None:
    """The one that waits for its program; None: there is none now."""
    made = supervisor._watch._ahead.made
    return made if made is not None and made.parked else None


def program(supervisor: Supervisor, source: str = "print(1)", stdin: bytes | None = None, **limits: int) -> Outcome:
    return supervisor.run(Job(files={"main.py": source}, entry="main.py", stdin=stdin, limits=Limits(**limits)))


def serial_of_next(supervisor: Supervisor, wait_until) -> int:
    return wait_until(lambda: waiting(supervisor), "a child that waits").serial


def serials(supervisor: Supervisor, monkeypatch) -> list[int]:
    """Of each run whose outcome is made from here on."""
    seen: list[int] = []
    usual = Attempt.facts

    def facts(attempt: Attempt):
        if not attempt.ahead:
            seen.append(attempt.serial)
        return usual(attempt)

    monkeypatch.setattr(Attempt, "facts", facts)
    return seen


def test_a_run_gets_the_child_that_waits_and_the_next_one_is_made(ours, wait_until, monkeypatch):
    program(ours)  # so that the next is made for the usual limits
    used = serials(ours, monkeypatch)
    for _ in range(3):
        serial = serial_of_next(ours, wait_until)
        outcome = program(ours, WHO)
        assert outcome.status == "succeeded", outcome.facts.stderr
        assert used.pop() == serial
        assert (outcome.isolation["attested"], outcome.facts.tries) == (ours.confinement.level != "none", 1)


def test_what_it_rehearsed_shows_in_nothing(ours, wait_until):
    serial_of_next(ours, wait_until)
    ahead = program(ours, RANDOM)
    with_input = program(ours, RANDOM, stdin=b"")  # nothing is made ahead for one that reads
    assert ahead.facts.stdout == with_input.facts.stdout
    assert ahead.record is not None
    assert with_input.record is not None
    told = [
        (len(row.tensors), len(row.moments), [site.line for site in row.sites], [source.path for source in row.sources])
        for row in (ahead.record, with_input.record)
    ]
    assert told[0] == told[1]


def test_its_time_counts_from_go_and_is_the_programs_own(ours, wait_until):
    made = wait_until(lambda: waiting(ours), "a child that waits")
    time.sleep(max(0.0, made.started_at + 2.0 - time.monotonic()))  # it is that old
    outcome = program(ours, "print(1)", wall_seconds=ours._watch._ahead._like.limits.wall_seconds)
    assert outcome.facts.wall_seconds < 2.0
    assert outcome.facts.lockdown_cpu_seconds > 0
    assert outcome.facts.cpu_seconds < outcome.facts.lockdown_cpu_seconds + 1


@pytest.mark.parametrize(
    ("stdin", "limits"), [(b"text", {}), (None, {"cpu_seconds": 7}), (None, {"memory_bytes": 600 << 20})]
)
def test_a_run_that_is_limited_otherwise_or_reads_gets_a_child_of_its_own(ours, wait_until, monkeypatch, stdin, limits):
    program(ours)  # so that the next is made for the usual limits
    used, serial = serials(ours, monkeypatch), serial_of_next(ours, wait_until)
    asked = "import resource\nprint(resource.getrlimit(resource.RLIMIT_CPU)[0], open(0).read())"
    outcome = program(ours, asked, stdin, **limits)
    assert outcome.status == "succeeded", outcome.facts.stderr
    assert used == [used[0]]
    assert used[0] != serial
    cpu = limits.get("cpu_seconds", Limits().cpu_seconds)
    assert outcome.facts.stdout.decode().split() == [str(cpu), *([stdin.decode()] if stdin else [])]
    wait_until(
        lambda: waiting(ours) and waiting(ours).job.limits == Limits(**limits), "the next is for limits like these"
    )


def test_one_that_dies_while_it_waits_costs_nothing(ours, wait_until):
    made = wait_until(lambda: waiting(ours), "a child that waits")
    zygote = next(zygote for zygote in zygotes_of_this(ours))
    for child in zygote.children(recursive=True):
        child.kill()
    wait_until(lambda: ours._watch._ahead.made is not made, "it is forgotten")
    outcome = program(ours)
    assert (outcome.status, outcome.facts.stdout, outcome.facts.tries) == ("succeeded", b"1\n", 1)
    wait_until(lambda: waiting(ours), "another")


def test_one_goes_with_its_warm_process_and_the_next_warm_process_makes_another(ours, wait_until):
    made = wait_until(lambda: waiting(ours), "a child that waits")
    next(zygote for zygote in zygotes_of_this(ours)).kill()
    wait_until(lambda: ours._watch._ahead.made is not made, "it is forgotten")
    assert program(ours).facts.stdout == b"1\n"
    wait_until(lambda: waiting(ours), "another", 120)


def test_while_it_waits_nobody_looks_at_a_clock(ours, wait_until):
    serial_of_next(ours, wait_until)
    wait_until(lambda: ours._watch.pool.settled, "nothing comes or goes")
    time.sleep(0.2)
    turned = ours._watch.turned_at
    time.sleep(0.5)
    assert ours._watch.turned_at == turned


@pytest.mark.parametrize("ours", ["process", "namespace"], indirect=True)
def test_one_that_is_not_as_prescribed_never_runs_and_is_not_made_again_and_again(
    ours, wait_until, monkeypatch, caplog
):
    looked = []

    def refuse(child, order, confinement, cgroup=None):
        if order.ahead:
            looked.append(order.serial)
            raise attest.Differs("told so by a test")
        return attest.attest(child, order, confinement, cgroup)

    monkeypatch.setattr(streams, "attest", refuse)
    serial_of_next(ours, wait_until)
    assert program(ours, stdin=b"").status == "succeeded"  # takes no child of those made before
    wait_until(lambda: looked, "one was made and looked at")
    wait_until(lambda: ours._watch._ahead.made is None, "it is given up")
    time.sleep(0.5)
    assert len(looked) == 1
    assert "told so by a test" in caplog.text
    assert program(ours).status == "succeeded"
    monkeypatch.undo()
    assert program(ours).status == "succeeded"
    wait_until(lambda: waiting(ours), "after another run it is tried again")


def test_nothing_is_left_of_many_runs_with_pauses(ours, wait_until):
    program(ours)
    serial_of_next(ours, wait_until)
    before = len(os.listdir("/proc/self/fd"))
    [zygote] = zygotes_of_this(ours)
    family, opened = len(zygote.children(recursive=True)), zygote.num_fds()
    for number in range(20):
        program(ours, "x = 1" if number % 3 else "import os\nos._exit(1)")
        if number % 2:
            serial_of_next(ours, wait_until)
    serial_of_next(ours, wait_until)
    wait_until(lambda: len(zygote.children(recursive=True)) == family, "as many processes as before")
    wait_until(lambda: len(os.listdir("/proc/self/fd")) == before, "as many descriptors as before")
    assert zygote.num_fds() == opened


def test_it_ends_with_its_supervisor(wait_until):
    with Supervisor(lambda: exec_zygote(further=False)) as supervisor:
        assert supervisor.wait_warm(120)
        wait_until(lambda: waiting(supervisor), "a child that waits", 120)
        below = psutil.Process().children(recursive=True)
        [zygote] = zygotes_of_this(supervisor)
        below = [zygote, *zygote.children(recursive=True)]
        assert len(below) == 2
    wait_until(lambda: not any(process.is_running() for process in below), "all have ended")


def test_one_that_is_being_made_when_its_supervisor_ends_is_told_nowhere(wait_until, caplog):
    """It did not fail: the worker's last line is why it ended."""
    with Supervisor(lambda: exec_zygote(further=False)) as supervisor:
        assert supervisor.wait_warm(120)
        serial_of_next(supervisor, wait_until)
        supervisor._watch._ahead.made.parked = False  # as in the moment between its fork and its lockdown
    assert "no child is made ahead" not in caplog.text


def test_where_it_is_not_wanted_none_is_made(wait_until):
    with Supervisor(exec_zygote, ahead=False) as supervisor:
        assert supervisor.wait_warm(120)
        zygote = supervisor._watch.pool.current
        wait_until(lambda: zygote.ready is not None and not zygote.ready.warms_on, "warm to the last", 120)
        assert program(supervisor).status == "succeeded"
        time.sleep(0.5)
        assert supervisor._watch._ahead.made is None


def zygotes_of_this(supervisor: Supervisor) -> list[psutil.Process]:
    """The warm process of one supervisor: below the private root's two processes, where it has one."""
    current = supervisor._watch.pool.current
    assert current is not None
    assert current.link.process is not None
    first = psutil.Process(current.link.process.pid)
    return zygotes_of_family([first, *first.children(recursive=True)])


def zygotes_of_family(family: list[psutil.Process]) -> list[psutil.Process]:
    """Those that are warm processes and no children of one."""
    found = [
        process
        for process in family
        if "workers.sandbox.process.zygote" in process.cmdline() and process.name() != "bwrap"
    ]
    known = {process.pid for process in found}
    return [process for process in found if process.ppid() not in known]
