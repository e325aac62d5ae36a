"""Hostile programs at every level that this machine can give: nothing of the host, of a sibling or of us is reached.

The programs are in `baseline.txt` and in `programs`, or in the folder that BACKPROBE_HOSTILE names. An ordinary test run
takes all of the baseline and the first of each family of the others; `make hostile` takes all, and prints what came of
each (BACKPROBE_HOSTILE_ALL).
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backprobe.isolation import IsolationLevel
from backprobe.record.encoding.codec import encode
from store.runs.limits import Limits
from tests.hostile.field import LIMITS, SECRET, SECRET_NAME, UID, Field, limits_for
from tests.hostile.program_texts import BASELINE, OWN, Program, read_programs
from tests.support.isolation import confined, several_processes
from workers.sandbox.levels.names import Confinement
from workers.sandbox.process import landlock, private_root
from workers.sandbox.remote.boot import Link, exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

MUST_BREACH = {
    "files_other_runs", "files_read_host", "floods_disk_fill", "native_ptrace_others", "network_tcp_connect",
    "network_unix_sockets", "secrets_environment", "secrets_own_memory", "signals_kill_others",
}  # fmt: skip
"""What gets through where nothing but limits hold: a detector that stays silent there sees nothing anywhere."""

STAYS = "setsid sleep 60 & exit 0"
"""A process that outlives the one that was started; of `processes_fork_bomb` a quick machine leaves none behind."""

ALSO_OK = {"record_forged_valid": ("failed record",)}
"""A whole stream is refused: its header, sent before any user code, is there already. What follows a header can be forged."""

ALSO_OK_TO_GUEST = {
    "leftovers_deep_folders": ("succeeded",),
    "record_empty_statistics": ("failed record",),
    "record_smallest_rows": ("failed record",),
    "secrets_own_memory": ("failed signal",),
}
"""At `gvisor` a big write to a pipe may be partial, so that a program that does not look sends broken frames; and not
every page that /proc/self/maps lists can be read. Its filesystem counts bytes and not files: 20,000 folders are made there
by a machine that is fast enough."""

BUSY_THERE = ("exceeded cpu", "exceeded wall")
"""Any program at `gvisor`: its kernel takes several times the CPU time for a system call or a page fault, and counts it."""

TOOK_THE_ROOM = ("exceeded processes", "exceeded cpu")
"""A program at `namespace` whose gradients are checked: where there is room for a copy it can fork as well, and in a copy
that is made of it too. What a copy writes goes nowhere, so that one that floods spends the processor time first. Never
`failed record`, for a process that it forked writes none."""

TRIES_OF_LATE = 3
"""How often a run that only came back late is looked at again: a machine with other work is late now and then."""

GOOD = "import torch\ntorch.manual_seed(0)\nw = torch.randn(4, 3, requires_grad=True)\n(w * w).sum().backward()\nprint(float(w.grad.norm()))\n"


HEADER = re.compile(r"# EXPECT: (.+)\n# OUTCOME: (.+)\n# CONTROL: (breaches|silent: .+)\n")
EVERY = bool(os.environ.get("BACKPROBE_HOSTILE_ALL"))
CHECK = bool(os.environ.get("BACKPROBE_HOSTILE_CHECK"))
CHECKED = "import torch as _t; _w = _t.nn.Parameter(_t.ones(2)); _o = _t.optim.SGD([_w], lr=0.1); _y = (_w * 2).sum().backward()\n"
"""With the check of gradients on: a copy of the process begins at the product, and goes on in the hostile program."""

ROOMY = replace(LIMITS, wall_seconds=60, cpu_seconds=60)
"""For the good program with an optimizer before it: at `gvisor` to import what that needs takes 5 s of processor time."""

SEVERAL = 4
"""Processes that the programs may have at one time, in the arena of that name."""

ALLOWED_TO_SEVERAL = {
    "descriptors_all_taken": "256 descriptors are the limit there",
    "descriptors_sent": "tensors travel so; what is under way is counted by the uid, which is its slot's",
    "native_machine_code": "it may fork", "native_other_filter": "it may fork", "processes_multiprocessing": "it may fork",
    "processes_raw_clone": "it may fork", "processes_raw_fork": "it may fork", "processes_vfork": "it may fork",
    "network_odd_families": "NETLINK_ROUTE, by which gloo lists interfaces, of its own network namespace",
    "network_out_of_a_pair": "sockets of its own network namespace",
    "signals_outlive_parent": "its cgroup and its pid namespace end it",
}  # fmt: skip
"""What these print as a success of theirs is no breach where a run may have several processes, and why."""

ALLOWED_TO_GUEST = {
    "floods_small_files": "files of its own kernel, whose memory the supervisor bounds",
    "secrets_of_the_kernel": "the command line of its own kernel, which is the same for all",
}
"""What these print as a success of theirs is no breach at `gvisor`, and why."""

ARENAS = ["process", "namespace", *(["several"] if EVERY else []), "gvisor"]


def programs() -> list[Program]:
    if os.environ.get("BACKPROBE_HOSTILE"):
        return read_programs(Path(os.environ["BACKPROBE_HOSTILE"]))
    own = read_programs(OWN)
    if not EVERY:
        own = list({program.family: program for program in reversed(own)}.values())
    return sorted([*read_programs(BASELINE), *own])


def must_breach(program: Program) -> bool:
    """It gets through where nothing but limits hold; of our own programs, each says so itself."""
    return program.name in MUST_BREACH or "\n# CONTROL: breaches\n" in program.text


@pytest.mark.parametrize("program", read_programs(OWN), ids=lambda program: program.name)
def test_a_program_of_our_own_says_what_it_is_for_and_why_it_may_be_silent(program) -> None:
    assert HEADER.match(program.text)
    assert len(program.name.partition("_")[2]) > 3


def run(supervisor: Supervisor, source: str, limits: Limits = LIMITS) -> Outcome:
    text = CHECKED + source if CHECK else source
    return supervisor.run(Job(files={"main.py": text}, entry="main.py", limits=limits, check=CHECK))


@pytest.fixture(scope="module", params=ARENAS)
def arena(request) -> Iterator[tuple[Supervisor, Field, bytes]]:
    level: IsolationLevel = "namespace" if request.param == "several" else request.param
    chosen = confined(level, UID)
    if request.param == "several":
        several_processes(chosen)
    yield from opened(Supervisor(lambda: exec_zygote("", chosen, further=False), confinement=chosen, ahead=False))


def opened(supervisor: Supervisor) -> Iterator[tuple[Supervisor, Field, bytes]]:
    with supervisor:
        assert supervisor.wait_warm(60), supervisor.failure
        good = supervisor.run(Job(files={"main.py": GOOD}, entry="main.py", limits=LIMITS))
        assert good.status == "succeeded", (good.error, good.facts.stderr)
        assert good.record is not None
        field = Field(supervisor, b"".join(encode(good.record)))
        try:
            yield supervisor, field, good.facts.stdout
        finally:
            field.close()


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_a_hostile_program_is_contained_and_ends_as_it_should(arena, program, request, tell) -> None:
    supervisor, field, answer = arena
    several = request.node.callspec.params["arena"] == "several"
    tries = 0
    while True:
        field.before()
        limits = replace(limits_for(program.text), processes=SEVERAL if several else 1)
        outcome = run(supervisor, field.filled(program.text), limits)
        found, tries = field.breaches(outcome, limits), tries + 1
        only_late = bool(found) and all(one.startswith("came back after") for one in found)
        if not only_late or tries == TRIES_OF_LATE:
            break  # only lateness may be the machine's; what is late by itself is late each time
    came = f"breached: {'; '.join(found)}" if found else f"contained: {outcome.status} {outcome.reason}"
    arena_name = request.node.callspec.params["arena"]
    has_room = CHECK and arena_name == "namespace"
    allowed = {"several": ALLOWED_TO_SEVERAL, "gvisor": ALLOWED_TO_GUEST}.get(arena_name, {})
    allowed = ALLOWED_TO_SEVERAL if has_room else allowed
    if program.name in allowed and found == ["printed a canary"]:
        found, came = [], f"allowed: {allowed[program.name]}"
    tell(program.name, arena_name, came)
    assert found == []
    after = run(supervisor, GOOD, ROOMY if CHECK else LIMITS)
    assert (after.status, after.facts.stdout) == ("succeeded", answer), after.facts.stderr
    if (
        several or program.name in allowed
    ):  # it gets further: that nothing is reached is the same, how it ends need not be
        assert outcome.status != "lost", outcome.error
    else:
        also = (*ALSO_OK_TO_GUEST.get(program.name, ()), *BUSY_THERE) if arena_name == "gvisor" else ()
        also = (*also, *TOOK_THE_ROOM) if has_room else also
        ends_as_it_should(program, outcome, also)


def ends_as_it_should(program: Program, outcome: Outcome, also: tuple[str, ...]) -> None:
    (line,) = re.findall(r"^# OUTCOME: (.*)$", program.text, re.MULTILINE)
    wanted = [tuple(one.split()) for one in line.split("|")]
    ended = (outcome.status, outcome.reason)
    wanted += [tuple(one.split()) for one in (*ALSO_OK.get(program.name, ()), *also)]
    if ("exceeded", "cpu") in wanted:
        wanted.append(("exceeded", "wall"))  # which of the two clocks ends a busy program first is the machine's load
    assert any(ended[: len(one)] == one for one in wanted), (ended, outcome.error, outcome.facts.stderr[-500:])


def bare_zygote() -> Link:
    """Limits only, under a uid of its own, with the whole host in sight and a secret in its environment."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [
        sys.executable,
        "-P",
        "-s",
        "-m",
        "workers.sandbox.process.zygote",
        str(theirs.fileno()),
        "--uid",
        str(UID),
    ]
    shown = ["--dev-bind", "/", "/", *private_root._folders(landlock.python_paths())]
    environment = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", SECRET_NAME: SECRET}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    with theirs:
        process = subprocess.Popen(
            ["bwrap", "--die-with-parent", *shown_over_homes(), *shown[3:], "--", *words],
            env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
    ours.setblocking(False)
    return Link(control=ours, process=process)


def shown_over_homes() -> list[str]:
    """The host as it is, with an empty folder over each home that would hide the interpreter from another uid.

    Never over /tmp itself, where what a program leaves is looked for: over that folder of it in which a clone lies.
    """
    outside = [Path(one).parts for one in landlock.python_paths() if not one.startswith("/usr")]
    hidden = {Path(*parts[: 3 if parts[1] == "tmp" else 2]) for parts in outside}
    covered = [word for one in sorted(hidden) for word in ("--perms", "0755", "--tmpfs", str(one))]
    return ["--dev-bind", "/", "/", *covered]


@pytest.fixture(scope="module")
def control(require) -> Iterator[tuple[Supervisor, Field, bytes]]:
    require("bubblewrap")
    if os.geteuid() != 0:
        pytest.skip("only root becomes a uid of its own, which the control does")
    # no child made ahead: the field would take it, and its folder, for what the program left behind
    yield from opened(Supervisor(bare_zygote, confinement=Confinement(uid=UID), ahead=False))


@pytest.mark.parametrize("program", list(filter(must_breach, programs())), ids=lambda program: program.name)
def test_where_only_limits_hold_it_gets_through_and_is_seen(control, program, tell) -> None:
    supervisor, field, _answer = control
    field.before()
    limits = limits_for(program.text)
    found = field.breaches(run(supervisor, field.filled(program.text), limits), limits)
    tell(program.name, "control", f"breached: {'; '.join(found)}" if found else "silent")
    assert found


def test_a_process_that_stays_is_seen(control) -> None:
    supervisor, field, _answer = control
    field.before()
    subprocess.run(["/bin/sh", "-c", STAYS], user=UID, cwd="/", env={"PATH": "/usr/bin:/bin"}, check=True)
    assert "left 1 processes" in field.breaches(run(supervisor, GOOD), LIMITS)
    field.before()
    assert not [one for one in field.breaches(run(supervisor, GOOD), LIMITS) if "processes" in one]
