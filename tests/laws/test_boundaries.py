"""Who may open connections, read the environment, load pickles: laws that an import contract cannot see."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service", "migrations")

CONNECTS = {"create_engine", "psycopg.connect", "sqlite3.connect"}
MAY_CONNECT = {
    "store/database/session.py": "the one place that opens a database",
    "migrations/env.py": "Alembic opens its own when it is started by hand",
    "store/database/migrator.py": "copies the SQLite file before a migration",
}
READS_ENVIRONMENT = {"os.environ", "os.getenv", "os.environb"}
MAY_READ_ENVIRONMENT: dict[str, str] = {
    "store/database/settings.py": "StoreSettings, once per process",
    "service/settings.py": "Settings, once per process",
    "workers/settings.py": "WorkerSettings, once per process",
    "workers/sandbox/process/zygote.py": "which GPUs its children may see; its supervisor built the rest from nothing",
    "workers/sandbox/remote/warm_environment.py": "hands on where packages and a device's libraries lie, and nothing else",
    "workers/sandbox/process/lockdown.py": "empties the child's environment before user code",
    "backprobe/capture/program/header.py": "the variables that steer torch are facts of the record",
    "backprobe/capture/torch_access/native.py": "BACKPROBE_CORE, once per process: which core serves",
    "backprobe/cli/larger_stack.py": "carries the former stack limit into the interpreter that it replaces itself with",
    "backprobe/cli/commands/service_runs.py": "where the service is that a command asks, and the key to it",
    "backprobe/cli/commands/language_server.py": "once: where the service is, and what a program that is run here inherits",
    "backprobe/cli/output.py": "NO_COLOR and FORCE_COLOR are asked of every command line",
    "backprobe/notebook/magics.py": "where `%%backprobe --submit` sends a record, and the key to it",
    "backprobe/cli/trials/program_start.py": "hands its own environment on to the programs that it starts",
    "backprobe/mcp_server/engines.py": "hands its own environment on to the programs that it starts, without the key",
    "backprobe/cli/audit/outputs.py": "GITHUB_STEP_SUMMARY, where a workflow wants the table",
    "backprobe/recorder/target.py": "what a cluster says of the recorder: service, key, project, rank, home",
    "store/telemetry/logs.py": "how a process logs, which it must before it can complain of its settings",
    "service/server/serve.py": "hands its own environment on to the parts that it starts",
}
LOADS_OBJECTS = {"pickle.load", "pickle.loads", "torch.load", "marshal.loads", "shelve.open", "eval"}


def dotted(node: ast.AST) -> str:
    """`a.b.c` of an attribute chain or a name, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


WATCHED = CONNECTS | READS_ENVIRONMENT | LOADS_OBJECTS
LAST_WORDS = {name.rpartition(".")[2] for name in WATCHED}


@cache
def watched(path: Path) -> list[tuple[str, int, bool]]:
    """Which of all the names a file uses, on which line, and whether what is there is a call; read once for all laws."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        seen, called = (node.func, True) if isinstance(node, ast.Call) else (node, False)
        last = seen.attr if isinstance(seen, ast.Attribute) else seen.id if isinstance(seen, ast.Name) else ""
        if last in LAST_WORDS:
            name = dotted(seen)
            found += [
                (watched, node.lineno, called) for watched in WATCHED if name == watched or name.endswith(f".{watched}")
            ]
    return found


def uses(root: Path, names: set[str], *, calls_only: bool) -> dict[str, list[int]]:
    """Files below the packages that use one of the names, with their lines; a name may be the tail of a chain."""
    found: dict[str, list[int]] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for name, line, called in watched(path):
                if name in names and called == calls_only:
                    found.setdefault(str(path.relative_to(root)), []).append(line)
    return found


def test_only_the_session_and_the_migrations_open_connections():
    assert set(uses(ROOT, CONNECTS, calls_only=True)) <= set(MAY_CONNECT)


def test_the_environment_is_read_by_settings_only():
    found = uses(ROOT, READS_ENVIRONMENT, calls_only=False)
    assert {path: lines for path, lines in found.items() if path not in MAY_READ_ENVIRONMENT} == {}


def test_nothing_unpickles():
    assert uses(ROOT, LOADS_OBJECTS, calls_only=True) == {}


@pytest.mark.parametrize(
    ("path", "text", "names", "calls_only"),
    [
        ("workers/pipeline.py", "import sqlite3\nsqlite3.connect('x')", CONNECTS, True),
        ("store/runs/lifecycle.py", "from sqlalchemy import create_engine\ncreate_engine('x')", CONNECTS, True),
        ("service/wake_up.py", "import os\nos.environ['HOME']", READS_ENVIRONMENT, False),
        ("backprobe/capture/x.py", "import os\nos.getenv('HOME')", READS_ENVIRONMENT, False),
        ("workers/sandbox/x.py", "import pickle\npickle.loads(b'')", LOADS_OBJECTS, True),
        ("backprobe/record/x.py", "import torch\ntorch.load('x')", LOADS_OBJECTS, True),
    ],
)
def test_a_planted_use_is_found(tmp_path, path, text, names, calls_only):
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    assert set(uses(tmp_path, names, calls_only=calls_only)) == {path}
