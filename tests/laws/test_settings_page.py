"""Each environment variable that a settings class reads is described by a field, and the page of settings shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.settings_reference import BEGIN, CLASSES, list_variables, tables
from service.settings import Settings
from store.runs.limits import LIMITS
from workers.settings import WorkerSettings

PAGE = Path(__file__).parents[2] / "docs" / "operating" / "settings.md"
INTERNAL = {"BACKPROBE_PARENT_PID"}
"""Set by `serve` for its children, never by an operator."""

OF_LIMITS = {f"BACKPROBE_MOST_{name.upper()}" for name in LIMITS}


class Recorded(dict[str, str]):
    """An empty environment that notes the names it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: object = None) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.names.add(name)
        return default


@pytest.fixture(scope="module")
def names_read(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    environment = Recorded()
    Settings.from_environment(environment, tmp_path_factory.mktemp("home"))
    WorkerSettings.from_environment(environment)
    return environment.names


def names_described() -> set[str]:
    return {variable.name for settings in CLASSES.values() for variable, _ in list_variables(settings)}


def test_each_variable_that_is_read_is_described(names_read: set[str]) -> None:
    assert names_read - names_described() - INTERNAL - OF_LIMITS == set()


def test_each_variable_that_is_described_is_read(names_read: set[str]) -> None:
    assert names_described() - names_read == set()


def test_the_page_has_each_table() -> None:
    text = PAGE.read_text()
    assert [name for name in tables() if BEGIN.format(name) not in text] == []
