"""What a child must have done to itself before it goes: each step left out, each field that is read changed or absent."""

import codecs
import contextlib
import ctypes
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backprobe.isolation import IsolationLevel
from store.runs.limits import Limits
from tests.support import addresses
from tests.support.isolation import confined
from workers.sandbox.levels import attestation, probe
from workers.sandbox.process import landlock
from workers.sandbox.process.lockdown import STEPS, own_uid
from workers.sandbox.remote import boot
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("sandbox")

RT_SIGACTION = {"x86_64": 13, "aarch64": 134}[platform.machine()]
CANCEL = 32
UID = addresses.own_uid()
CONFINED: tuple[IsolationLevel, ...] = ("process", "namespace")
RAN = 'print("user code ran")'

TEST_BUILD = """
from workers.sandbox.process import child, lockdown, orphans, landlock as readable, zygote

def lock(around):
    orphans.die_with(around.zygote)
    steps = lockdown.STEPS[around.level]
    left_out = around.order.threads - 2
    for n, step in enumerate(steps):
        if n != left_out:
            step(around)
    if left_out == len(steps):
        raise OSError("no such thing here")

{change}
zygote.main()
"""
CHOSEN = "child.lock = lock"
"""A test build: how many threads a run asks for says which step is left out; 1: none, one above the last: it raises."""

UNSEEN = {
    "bare_environment": "what a process did to its environment is nowhere in /proc",
    "few_files": "Landlock is nowhere in /proc; a private root has NO_NEW_PRIVS already",
}
"""Steps that no one outside can see, and why; of those it is shown what holds without them, or what finds it."""


@contextlib.contextmanager
def supervisor_at(level: IsolationLevel, change: str = "") -> Iterator[Supervisor]:
    """At a level; with a change to what the warm process and its children run."""
    chosen, usual = confined(level, UID), subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        if change and "workers.sandbox.process.zygote" in command:
            at = command.index("workers.sandbox.process.zygote")
            command = [*command[: at - 1], "-c", TEST_BUILD.format(change=change), *command[at + 1 :]]
        return usual(command, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boot.subprocess, "Popen", popen)
        with Supervisor(lambda: exec_zygote("", chosen, further=False), confinement=chosen) as supervisor:
            assert supervisor.wait_warm(120), supervisor.failure
            yield supervisor


@pytest.fixture(scope="module", params=CONFINED)
def incomplete(request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    with supervisor_at(request.param, CHOSEN) as supervisor:
        yield supervisor


def tried(supervisor: Supervisor, source: str = RAN, threads: int = 1) -> Outcome:
    limits = Limits(disk_bytes=0, threads=threads)
    return supervisor.run(Job(files={"main.py": source}, entry="main.py", limits=limits))


def run_without_step(supervisor: Supervisor, step: str | None, source: str = RAN) -> Outcome:
    """A run whose child leaves a step out; None: a step of it raises."""
    steps = [row.__name__ for row in STEPS[supervisor.confinement.level]]
    return tried(supervisor, source, threads=2 + (len(steps) if step is None else steps.index(step)))


def assert_did_not_run(outcome: Outcome) -> None:
    assert (outcome.status, outcome.reason) == ("lost", "sandbox"), outcome.facts
    assert outcome.facts.stdout == b""
    assert outcome.record is None
    assert outcome.error is not None
    assert outcome.error.whose == "ours"


@pytest.mark.parametrize(
    ("incomplete", "step"),
    [(level, step.__name__) for level in CONFINED for step in STEPS[level] if step.__name__ not in UNSEEN],
    indirect=["incomplete"],
)
def test_without_any_one_step_user_code_does_not_run(incomplete, step) -> None:
    assert_did_not_run(run_without_step(incomplete, step))
    assert tried(incomplete).status == "succeeded"


def test_a_step_that_raises_ends_the_child_and_says_why(incomplete) -> None:
    outcome = run_without_step(incomplete, None)
    assert_did_not_run(outcome)
    assert "no such thing here" in (outcome.facts.broken or "")


def test_even_with_its_first_environment_a_child_knows_no_secret(incomplete) -> None:
    outcome = run_without_step(incomplete, "bare_environment", "import os\nprint(*sorted(os.environ))")
    names = set(outcome.facts.stdout.decode().split())
    assert "PYTHONPATH" in names  # of the warm process: so the step was left out
    assert not [name for name in names if name.startswith("BACKPROBE") or name in ("HOME", "USER", "DATABASE_URL")], (
        names
    )


@pytest.mark.parametrize("level", CONFINED)
def test_files_that_nothing_refuses_are_found_by_the_probe(level) -> None:
    with supervisor_at(level, "readable.landlock = lambda *_, **__: orphans.prctl(38, 1)") as supervisor:
        assert [breach for breach in probe.prove(supervisor, ["files"]).breaches if breach.startswith("files")]


STATUS = (
    "CapEff",
    "CapPrm",
    "NoNewPrivs",
    "Seccomp",
    "Threads",
    "Uid",
    "Gid",
    "NSpid",
    "SigBlk",
    "SigIgn",
    "SigCgt",
    "Umask",
)
LIMITS = ("Max cpu time", "Max open files", "Max core file size", "Max file size", "Max address space")


def changed(file: str, name: str, value: str | None) -> tuple[str, re.Pattern[str], str]:
    """A line of a file in /proc that says something else, or is not there."""
    if file == "status":
        return file, re.compile(rf"^{name}:\t.*\n", re.MULTILINE), "" if value is None else f"{name}:\t{value}\n"
    return file, re.compile(rf"^{name} .*\n", re.MULTILINE), "" if value is None else f"{name:26}{value:21}{value:21}\n"


FIELDS = {
    **{f"{name} absent": changed("status", name, None) for name in STATUS},
    **{f"{name} absent": changed("limits", name, None) for name in LIMITS},
    "a capability": changed("status", "CapEff", "0000000000200000"),
    "a permitted capability": changed("status", "CapPrm", "0000000000000001"),
    "may gain privileges": changed("status", "NoNewPrivs", "0"),
    "no filter": changed("status", "Seccomp", "0"),
    "two threads": changed("status", "Threads", "2"),
    "root": changed("status", "Uid", "0\t0\t0\t0"),
    "root when it likes": changed("status", "Uid", f"{UID}\t{UID}\t0\t{UID}"),
    "root's group": changed("status", "Gid", "0\t0\t0\t0"),
    "a blocked signal": changed("status", "SigBlk", "0000000000004000"),
    "an ignored signal": changed("status", "SigIgn", "0000000001005000"),
    "the warm process's handler": changed("status", "SigCgt", "0000000000004002"),
    **{f"{name} unlimited": changed("limits", name, "unlimited") for name in LIMITS},
}
APART = {
    "not pid 1": changed("status", "NSpid", "77\t2"),
    "no tmpfs": ("mountinfo", re.compile(r"^.* /tmp .*\n", re.MULTILINE), ""),
    "no tmpfs for shared memory": ("mountinfo", re.compile(r"^.* /dev/shm .*\n", re.MULTILINE), ""),
    "a folder of the host": ("mountinfo", re.compile(r"(?<= /tmp )(.*) - tmpfs"), r"\1 - ext4"),
}


def test_a_signal_of_libcs_own_that_was_ignored_all_along_is_no_difference() -> None:
    """As under a shell or a tool whose runtime ignores it: it is inherited, and no call of libc can change it."""
    mask = ctypes.create_string_buffer(152)  # struct kernel_sigaction: handler 1, SIG_IGN, and more than its rest
    mask[0] = 1
    libc, before = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(152)
    assert libc.syscall(RT_SIGACTION, CANCEL, mask, before, 8) == 0, ctypes.get_errno()
    try:
        with supervisor_at("process") as supervisor:
            assert tried(supervisor).status == "succeeded"
    finally:
        libc.syscall(RT_SIGACTION, CANCEL, before, None, 8)


@pytest.fixture(scope="module", params=CONFINED)
def locked(request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    with supervisor_at(request.param) as supervisor:
        yield supervisor


LIMITS_ASKED = """
import os, resource
files = resource.RLIMIT_NOFILE
mine = resource.getrlimit(files)
for call in (
    lambda: resource.prlimit(0, files),
    lambda: resource.setrlimit(files, mine),
    lambda: resource.prlimit(os.getpid(), files),
    lambda: resource.prlimit(os.getpid(), files, mine),
):
    try:
        print(call() == mine)
    except (OSError, ValueError) as error:  # of an EPERM where a limit is set Python makes a ValueError
        print("refused")
"""


def test_a_program_reads_its_own_limits_and_sets_none(locked) -> None:
    outcome = tried(locked, LIMITS_ASKED)
    assert outcome.status == "succeeded", outcome.facts
    assert outcome.facts.stdout.decode().split() == ["True", "refused", "refused", "refused"]


@pytest.mark.parametrize("name", [*FIELDS, *APART])
def test_a_child_of_which_one_field_differs_or_is_absent_does_not_go(locked, name, monkeypatch) -> None:
    if name in APART and locked.confinement.level != "namespace":
        assert tried(locked).status == "succeeded"  # that level does not prescribe it
        return
    file, pattern, instead = (FIELDS | APART)[name]
    usual, met = attestation.text_of, []

    def text(folder: int, asked: str) -> str:
        read = usual(folder, asked)
        if asked != file:
            return read
        met.append(pattern.search(read))
        return pattern.sub(instead, read)

    monkeypatch.setattr(attestation, "text_of", text)
    outcome = tried(locked)
    if name == "NSpid absent" and locked.confinement.level == "process":
        assert outcome.status in ("lost", "succeeded")  # read at both levels, prescribed at one
    else:
        assert_did_not_run(outcome)
    assert any(met), "the test changed nothing"
    monkeypatch.undo()
    assert tried(locked).status == "succeeded"


@pytest.mark.parametrize("extra", ["5", None], ids=["one more", "one less"])
def test_a_child_with_other_descriptors_does_not_go(locked, extra, monkeypatch) -> None:
    usual = attestation._list_folder

    def list_folder(folder: int, name: str) -> list[str]:
        found = usual(folder, name)
        return found if name != "fd" else [*found, extra] if extra else found[1:]

    monkeypatch.setattr(attestation, "_list_folder", list_folder)
    assert_did_not_run(tried(locked))


@pytest.mark.parametrize("locked", ["namespace"], indirect=True)  # level process has none
@pytest.mark.parametrize("name", attestation.NAMESPACES)
def test_a_child_in_a_namespace_of_ours_does_not_go(locked, name, monkeypatch) -> None:
    usual = os.readlink

    def readlink(path: str, *, dir_fd: int | None = None) -> str:
        return usual(Path("/proc/self", path)) if path == f"ns/{name}" and dir_fd else usual(path, dir_fd=dir_fd)

    monkeypatch.setattr(attestation.os, "readlink", readlink)
    assert_did_not_run(tried(locked))


def test_a_child_that_cannot_be_read_does_not_go(locked, monkeypatch) -> None:
    def text(folder: int, name: str) -> str:
        raise PermissionError(name)

    monkeypatch.setattr(attestation, "text_of", text)
    assert_did_not_run(tried(locked))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a child another uid")
def test_with_its_own_uid_go_the_groups_and_the_way_back_to_privileges() -> None:
    codecs.lookup("ascii")  # with that uid the child may not be able to read Python's own files any more
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([0, 4242])
            own_uid(SimpleNamespace(order=SimpleNamespace(uid=UID)))
            os.write(writing, Path("/proc/self/status").read_bytes())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as said:
        told = dict(line.split(":\t", 1) for line in said.read().decode().splitlines())
    os.waitpid(child, 0)
    assert told["Uid"].split() == [str(UID)] * 4
    assert told["Groups"].split() == []
    assert told["NoNewPrivs"] == "1"


def test_without_a_network_of_its_own_a_child_is_not_told_what_the_machine_is_connected_to():
    source = """
import os
from workers.sandbox.process import landlock as readable
readable.landlock((*readable.system_folders(), *readable.python_paths()), (), apart=False)
me = os.getpid()
for path in (f"/proc/{me}/net/tcp", f"/proc/{me}/net/unix", f"/proc/{me}/task/{me}/net/tcp", "/proc/net/tcp"):
    try:
        print("told", path, open(path).read()[:40])
    except PermissionError:
        print("refused")
print(len(os.listdir("/proc/self/fd")) > 2, "VmSize" in open("/proc/self/status").read(), bool(open("/proc/self/maps").read()))
"""
    if landlock.landlock_abi() < landlock.LEAST_ABI:
        pytest.skip("there is no Landlock here")
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["refused"] * 4 + ["True True True"]
