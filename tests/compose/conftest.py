"""docker-compose.yml as a value, with its variables put in as compose does it."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

COMPOSE = Path(__file__).parents[2] / "docker-compose.yml"
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[?-])(?P<rest>[^}]*))?\}")


class VariableUnset(Exception):
    """compose refuses to start: a variable with `:?` is unset or empty."""


def interpolated(value: Any, environ: Mapping[str, str]) -> Any:
    """The value with `${NAME}`, `${NAME:-default}` and `${NAME:?message}` put in, everywhere below it; `$$` is `$`.

    Raises:
        VariableUnset: the message after `:?`.
    """
    if isinstance(value, dict):
        return {key: interpolated(inner, environ) for key, inner in value.items()}
    if isinstance(value, list):
        return [interpolated(inner, environ) for inner in value]
    if not isinstance(value, str):
        return value

    def put_in(match: re.Match[str]) -> str:
        found = environ.get(match["name"], "")
        if found or match["kind"] is None:
            return found
        if match["kind"] == "?":
            raise VariableUnset(match["rest"])
        return match["rest"]

    return VARIABLE.sub(put_in, value).replace("$$", "$")


@pytest.fixture(scope="session")
def compose_as_written() -> dict[str, Any]:
    return yaml.safe_load(COMPOSE.read_text())


@pytest.fixture(scope="session")
def compose_with(compose_as_written) -> Callable[[Mapping[str, str]], dict[str, Any]]:
    """`compose_with(environ)`: the file as compose would see it in that environment."""
    return lambda environ: interpolated(compose_as_written, environ)


@pytest.fixture(scope="session")
def unset() -> type[Exception]:
    """What is raised for a variable that must be set."""
    return VariableUnset
