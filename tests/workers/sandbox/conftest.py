"""A supervisor at level `namespace`, and the runs that tests make in it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.runs.limits import Limits
from tests.support.addresses import own_uid
from tests.support.isolation import confined, several_processes, warm
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome
from workers.sandbox.supervisor.supervisor import Supervisor

UID = own_uid()
"""First of those that runs of these tests become."""


@pytest.fixture(scope="session")
def apart(sandbox: None) -> Iterator[Supervisor]:
    """At level `namespace`."""
    with warm(confined("namespace", UID), ahead=False, further=True) as supervisor:
        yield supervisor


@pytest.fixture(scope="session")
def grouped(apart: Supervisor) -> Supervisor:
    """At level `namespace`, with a cgroup for each run."""
    several_processes(apart.confinement)
    return apart


@pytest.fixture(scope="session")
def locked(sandbox: None) -> Iterator[Supervisor]:
    """At level `process`."""
    with warm(confined("process", UID), ahead=False, further=True) as supervisor:
        yield supervisor


@pytest.fixture(scope="session")
def guest(sandbox: None) -> Iterator[Supervisor]:
    """At level `gvisor`: booting its kernel takes 10 s and more of processor time."""
    with warm(confined("gvisor", UID)) as supervisor:
        yield supervisor


@pytest.fixture(scope="session")
def start() -> Callable[..., Outcome]:
    """Run a program: `start(supervisor, source, **limits)`."""

    def run_program(supervisor: Supervisor, source: str, **limits: int) -> Outcome:
        return supervisor.run(Job(files={"main.py": source}, entry="main.py", limits=Limits(**limits)))

    return run_program


SEVERAL = {
    "main.py": (
        "import sys, os, json\n"
        "from sub import net\n"
        "exec(open('configurator.py').read())\n"
        "told = {'file': os.path.basename(__file__), 'absolute': os.path.isabs(__file__), 'argv': sys.argv,\n"
        "        'path0': sys.path[0] == os.getcwd() == os.path.dirname(__file__), 'configured': configured,\n"
        "        'data': json.load(open('data/numbers.json')), 'net': open(net.__file__).read().count('x'),\n"
        "        'listed': sorted(os.listdir()), 'main': sys.modules['__main__'].__dict__ is globals(),\n"
        "        'package': __package__, 'spec': __spec__}\n"
        "print(json.dumps(told))\n"
    ),
    "configurator.py": "configured = 5\n",
    "data/numbers.json": "[1, 2]\n",
    "sub/net.py": "x = 1\n",
}
MODULE = {
    "pkg/__init__.py": "loaded = True\n",
    "pkg/train.py": (
        "import sys\nfrom . import net\nfrom pkg import loaded\nimport pkg.net as same\n"
        "print(net.x, loaded, same is net, __name__, __package__, __spec__.name, sys.argv[1:], sys.argv[0] == __file__)\n"
    ),
    "pkg/net.py": "x = 3\n",
}


def plainly(files: dict[str, str], folder: Path, *words: str) -> str:
    """What plain Python prints for these files in this folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.fixture(scope="session")
def of_several_files(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Asserts that a program of several files finds them as under plain Python."""
    expected = plainly(SEVERAL, tmp_path_factory.mktemp("several"), "main.py", "--fast")

    def check(supervisor: Supervisor) -> None:
        outcome = supervisor.run(Job(files=SEVERAL, entry="main.py", arguments=("--fast",)))
        assert (outcome.status, outcome.facts.stdout.decode()) == ("succeeded", expected), outcome.facts.stderr

    return check


@pytest.fixture(scope="session")
def of_a_module(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Asserts that a module is run as by `python -m`."""
    expected = plainly(MODULE, tmp_path_factory.mktemp("module"), "-m", "pkg.train", "--fast")

    def check(supervisor: Supervisor, **limits: int) -> None:
        job = Job(files=MODULE, entry="pkg.train", arguments=("--fast",), limits=Limits(**limits))
        outcome = supervisor.run(job)
        assert (outcome.status, outcome.facts.stdout.decode()) == ("succeeded", expected), outcome.facts.stderr
        assert "pkg/net.py" in {source.path for source in outcome.record.sources}

    return check
