"""Each extra brings what its modules import, in a fresh environment without any development tool.

An environment is made by `pip install 'backprobe[EXTRAS]' -c constraints.txt` from a wheel of this checkout. There each of
our modules is imported that these extras serve, and each module of others is looked for that their sources name, also inside
of functions. A module of Backprobe that no row of `NEEDS` names needs the base install alone.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.addresses import free_port, own_uid
from tests.support.processes import Processes
from tests.support.resources import ROOT, lack

pytestmark = pytest.mark.timeout(1200)
"""An environment with torch takes minutes on a busy machine, to install and to remove."""

USERS_OWN = "the user's own"
NEEDS = {
    "backprobe.capture": "torch",
    "backprobe.cli.audit.remote": "client",
    "backprobe.cli.audit.remote_trials": "client",
    "backprobe.client": "client",
    "backprobe.integrations.lightning": USERS_OWN,
    "backprobe.integrations.transformers": USERS_OWN,
    "backprobe.language_server": "lsp",
    "backprobe.mcp_server": "mcp",
    "backprobe.notebook": "notebook",
    "store": "service or workers",
    "service": "service",
    "workers": "workers",
}
"""By the beginning of a module's name: the extra without which it cannot be imported."""

TORCH_TOO = (
    "backprobe.notebook",
    "workers.sandbox.gpu.oneshot",
    "workers.sandbox.gvisor.guest",
    "workers.sandbox.process",
)
"""Modules that capture in their own process, and those of warm processes: they import torch besides."""

OTHERS = {
    "postgres": ("psycopg", "psycopg_binary", "sqlalchemy.dialects.postgresql.psycopg"),
    "redis": ("kombu.transport.redis",),
    "service": ("kombu.transport.pyamqp",),
    "workers": ("kombu.transport.pyamqp", "celery.concurrency.thread"),
    "oidc": ("authlib.integrations.flask_client", "requests"),
    "otel": ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"),
    "parquet": ("pyarrow.parquet",),
}
"""Modules that an extra brings and that are named by a URL or a string only."""

OF_USERS = {
    "_pytest",
    "accelerate",
    "ipykernel",
    "lightning",
    "pluggy",
    "pytest",
    "pytorch_lightning",
    "transformers",
    "triton",
}
"""What integrations look for in the user's environment; no extra installs it."""

ENVIRONMENTS = (
    "", "torch", "service", "workers", "service,postgres", "workers,redis", "service,oidc", "service,otel",
    "service,parquet", "torch,notebook", "client", "lsp", "mcp",
)  # fmt: skip

LOOK = """\
import ast, importlib, importlib.util, json, pkgutil, sys
from pathlib import Path
asked = json.load(sys.stdin)
failed, named = {}, set()
for package in ("backprobe", "store", "service", "workers"):
    root = Path(importlib.util.find_spec(package).submodule_search_locations[0])
    for path in sorted(root.rglob("*.py")):
        module = ".".join((package, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        if module.endswith("__main__") or module.startswith("backprobe.pytest_plugin"):
            continue
        needs = next((asked["needs"][name] for name in asked["needs"] if (module + ".").startswith(name + ".")), "")
        if needs and not set(needs.split(" or ")) & set(asked["extras"]):
            continue
        if module.startswith(tuple(asked["torch_too"])) and "torch" not in asked["extras"]:
            continue
        try:
            importlib.import_module(module)
        except Exception as error:
            failed[module] = repr(error)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                named.update((alias.name.split(".")[0], module) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                named.add((node.module.split(".")[0], module))
for module in asked["others"]:
    try:
        importlib.import_module(module)
    except Exception as error:
        failed[module] = repr(error)
known = set(sys.stdlib_module_names) | {"backprobe", "store", "service", "workers", "migrations", *asked["of_users"]}
absent = sorted((name, by) for name, by in named if name not in known | set(sys.modules) and not importlib.util.find_spec(name))
print(json.dumps({"failed": failed, "absent": absent, "has": [m for m in asked["tools"] if importlib.util.find_spec(m)]}))
"""

TOOLS = ("pytest", "ruff", "hypothesis", "playwright")

SNIPPET = """\
import torch

x = torch.ones(3, requires_grad=True)
h = x * 2
h.sum().backward()
print(h.grad)
"""


def _clean() -> dict[str, str]:
    """The environment of this process without what shows a process this checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BACKPROBE_"))}


def _pip(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *words]
    return subprocess.run(command, cwd="/", env=_clean(), capture_output=True, text=True, check=False, timeout=1500)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, full_tier: None) -> Path:
    """A wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    reached = _pip("download", "-q", "--no-deps", "-d", str(folder), "-c", str(ROOT / "constraints.txt"), "packaging")
    if reached.returncode:
        lack("package-index", f"pip reaches no package index: {reached.stderr.strip()[-200:]}")
    built = _pip("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT))
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("backprobe-*.whl")
    return found


@pytest.fixture
def environment(wheel) -> Iterator[Callable[[str], Path]]:
    """`environment("service,postgres")`: the interpreter of a new environment with these extras."""
    folder = Path(tempfile.mkdtemp(prefix="backprobe-test-", dir="/tmp"))
    folder.chmod(0o755)  # programs run as another user, which imports from here

    def make(extras: str) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, env=_clean())
        python = folder / "bin" / "python"
        wanted = f"{wheel}[{extras}]" if extras else str(wheel)
        constraints = str(ROOT / "constraints.txt")
        done = _pip("--python", str(python), "install", "-q", "--no-compile", "-c", constraints, wanted)
        assert done.returncode == 0, done.stderr
        return python

    yield make
    shutil.rmtree(folder)


def look(python: Path, extras: list[str], others: list[str]) -> dict:
    """What cannot be imported there."""
    asked = {
        "needs": NEEDS, "torch_too": TORCH_TOO, "extras": extras, "others": others, "of_users": sorted(OF_USERS),
        "tools": TOOLS,
    }  # fmt: skip
    done = subprocess.run(
        [str(python), "-c", LOOK], input=json.dumps(asked), cwd="/", env=_clean(), capture_output=True, text=True,
        check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("extras", ENVIRONMENTS, ids=lambda extras: extras.replace(",", "+") or "base")
def test_an_extra_brings_what_its_modules_import(environment, extras):
    python = environment(extras)
    names = [name for name in extras.split(",") if name]
    found = look(python, names, [module for name in names for module in OTHERS.get(name, ())])
    assert (found["failed"], found["has"]) == ({}, [])


def test_a_broker_whose_transport_lacks_a_module_is_described_with_it(environment):
    python = environment("workers,redis")
    assert _pip("--python", str(python), "uninstall", "-q", "-y", "packaging").returncode == 0
    source = (
        "from store.database.settings import StoreSettings\n"
        "from store.telemetry.broker_probe import find_failure\n"
        "print(find_failure(StoreSettings.from_environment({'BACKPROBE_BROKER_URL': 'redis://:hush@127.0.0.1:1/0'})))\n"
    )
    done = subprocess.run(
        [str(python), "-c", source], cwd="/", env=_clean(), capture_output=True, text=True, check=True
    )
    assert "the Python module `packaging` is not installed: pip install 'backprobe[redis]'" in done.stdout
    assert "hush" not in done.stdout


def test_all_extras_import_every_module_and_run_a_snippet_over_files_redis_and_rabbitmq(
    environment, empty_postgres_url, redis_url, rabbitmq_url, open_folder
):
    python = environment("all")
    extras = sorted({*OTHERS, *(extra for needs in NEEDS.values() for extra in needs.split(" or "))} - {USERS_OWN})
    found = look(python, extras, [module for modules in OTHERS.values() for module in modules])
    assert found == {"failed": {}, "absent": [], "has": []}
    stacks = {
        "embedded": {},
        "postgresql and redis": {"BACKPROBE_DATABASE_URL": empty_postgres_url, "BACKPROBE_BROKER_URL": redis_url},
        "rabbitmq": {"BACKPROBE_BROKER_URL": rabbitmq_url},
    }
    for name, environ in stacks.items():
        status, codes = result_of_a_run(python, open_folder / name.replace(" ", "-"), environ)
        assert (status, codes) == ("succeeded", ["BP101"]), name


def result_of_a_run(python: Path, folder: Path, environ: dict[str, str]) -> tuple[str, list[str]]:
    """Start `backprobe serve` of that environment, submit a snippet, and return its status and findings at its end."""
    folder.mkdir(mode=0o755)
    processes, port = Processes(folder), free_port()
    url = f"http://127.0.0.1:{port}"
    own = {"BACKPROBE_SANDBOX_UID": str(own_uid()), "BACKPROBE_WARM_FURTHER": "0"}
    command = [str(python.parent / "backprobe"), "serve", "--port", str(port), "--home", str(folder / "home")]
    processes.start(command, _clean() | own | environ, name="serve", cwd="/")
    try:
        processes.wait_until(lambda: _answer(f"{url}/readyz"), "serve is ready", 180)
        body = json.dumps({"source": SNIPPET}).encode()
        run = _answer(urllib.request.Request(f"{url}/v1/runs", body, {"Content-Type": "application/json"}))
        assert run is not None

        def has_ended() -> dict | None:
            now = _answer(f"{url}/v1/runs/{run['id']}")
            return now if now and now["ended"] else None

        status = processes.wait_until(has_ended, "the run has ended", 180)["status"]
        findings = _answer(f"{url}/v1/runs/{run['id']}/findings")
        return status, [finding["rule"]["code"] for finding in (findings or {"items": []})["items"]]
    finally:
        for process in processes.started:
            processes.stop(process)


def _answer(asked: str | urllib.request.Request) -> dict | None:
    """The JSON of an answer; None: it was refused, or nobody listens yet."""
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.loads(answer.read())
    except OSError:
        return None
