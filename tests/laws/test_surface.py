"""What `import backprobe` gives and what it leaves unloaded."""

import subprocess
import sys

import pytest

import backprobe

MOST_NAMES = 12
SURFACE = {"Finding", "Judgement", "Record", "__version__", "judge", "load", "load_ipython_extension", "run", "watch"}


def loaded_after(statement: str, *modules: str) -> set[str]:
    """Those of `modules` that a fresh interpreter has loaded after the statement."""
    code = f"import sys\n{statement}\nprint(*sorted(set({modules!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_the_public_surface_is_pinned():
    assert set(backprobe.__all__) == SURFACE
    assert len(SURFACE) <= MOST_NAMES


def test_every_public_name_is_there():
    assert [name for name in backprobe.__all__ if not hasattr(backprobe, name)] == []


@pytest.mark.parametrize(
    "statement",
    [
        "import backprobe",
        "import backprobe.record",
        "import backprobe.rules",
        "import backprobe.show",
        "import backprobe.cli",
    ],
)
def test_torch_and_servers_stay_unloaded(statement):
    assert loaded_after(statement, "torch", "flask", "sqlalchemy", "celery", "kombu", "redis") == set()


@pytest.mark.parametrize(
    "statement",
    ["import service.app", "import service.commands.server", "import workers.pipeline", "import store.runs.lifecycle"],
)
def test_torch_stays_unloaded_outside_capture(statement):
    assert loaded_after(statement, "torch") == set()


def test_the_check_sees_a_loaded_module():
    assert loaded_after("import json", "json", "torch") == {"json"}
