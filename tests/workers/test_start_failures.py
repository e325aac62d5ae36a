"""A worker that cannot start says in one line which Python module is not installed."""

import argparse
import importlib.util

import pytest

from store.database.settings import StoreSettings
from workers import commands
from workers.app import make_app
from workers.process import CannotStart, reach_broker


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mongodb://:hush@127.0.0.1:1/0", "cannot be used: the Python module `pymongo` is not installed"),
        ("nonsense://:hush@127.0.0.1:1/0", "names no kind of broker"),
    ],
)
def test_a_broker_that_cannot_be_used_ends_the_start_with_its_reason(tmp_path, url, said):
    store = StoreSettings.from_environment({"BACKPROBE_BROKER_URL": url}, home=tmp_path)
    with pytest.raises(CannotStart) as refused:
        reach_broker(make_app(store))
    assert said in str(refused.value)
    assert "hush" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["worker", "executor"])
def test_without_torch_neither_worker_nor_executor_starts(monkeypatch, capsys, tmp_path, name):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None if module == "torch" else find(module))
    monkeypatch.setenv("BACKPROBE_HOME", str(tmp_path))
    monkeypatch.delenv("BACKPROBE_EXECUTOR", raising=False)
    monkeypatch.setattr(commands.signal, "signal", lambda *_: None)  # the test process keeps its own
    parser = argparse.ArgumentParser()
    getattr(commands, name)(parser.add_subparsers())
    words = [name, *(["--socket", str(tmp_path / "socket")] if name == "executor" else [])]
    arguments = parser.parse_args(words)
    assert arguments.run(arguments) == commands.FAILED
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"backprobe {name}: the Python module `torch` is not installed: pip install 'backprobe[torch]'"
