"""Name the Python module that an import did not find, and the command that installs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

EXTRAS: Final[Mapping[str, str]] = {
    "authlib": "oidc",
    "opentelemetry": "otel",
    "packaging": "redis",
    "psycopg": "postgres",
    "redis": "redis",
    "requests": "oidc",
    "torch": "torch",
}
"""By top-level module: the extra of this distribution that installs it."""

_WITHOUT_NAME: Final = re.compile(r"Missing (\w+) library")
"""kombu's own ImportError for a client library that is not installed; its `name` is not set."""


def missing_module(error: BaseException) -> str | None:
    """Return the module that an import did not find; None if the error has another cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ImportError):
            match = _WITHOUT_NAME.match(str(cause))
            return cause.name or (match[1] if match else None)
        cause = cause.__cause__ or cause.__context__
    return None


def describe_missing(module: str) -> str:
    """Say that a module is not installed, and which command installs it."""
    extra = EXTRAS.get(module.partition(".")[0])
    command = "" if extra is None else f": pip install 'backprobe[{extra}]'"
    return f"the Python module `{module}` is not installed{command}"


def describe_class(error: BaseException) -> str:
    """Return the class of an error, and the module that is missing if there is one. The text may be a stranger's."""
    module = missing_module(error)
    return type(error).__name__ if module is None else f"{type(error).__name__}: {describe_missing(module)}"
