"""The tables of `docs/operating/settings.md`, made of the settings classes and of the limits of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, Final

from service.auth.oidc_settings import OidcSettings
from service.settings import LIMIT_VARIABLE, RateLimits, Settings
from store.database.environment_variables import Variable
from store.database.settings import StoreSettings
from store.runs.limits import LIMITS
from workers.settings import WorkerSettings

CLASSES: Final[dict[str, type[Any]]] = {
    "shared": StoreSettings,
    "api": Settings,
    "oidc": OidcSettings,
    "worker": WorkerSettings,
    "rates": RateLimits,
}
"""The settings classes by the name of their table in the page."""

BEGIN: Final = "<!-- settings {}: written by `make docs` -->"
END: Final = "<!-- end of settings {} -->"


def list_variables(settings: type[Any]) -> Iterator[tuple[Variable, str]]:
    """Yield each variable of a settings class with its default as text."""
    for each in fields(settings):
        for variable in each.metadata.get("variables", ()):
            yield variable, _format_default(each) if variable.default is None else variable.default


def _format_default(each: Field[Any]) -> str:
    if each.default is MISSING or each.default is None:
        return "unset"
    if isinstance(each.default, tuple):
        return f"`{','.join(each.default)}`"
    if isinstance(each.default, float) and each.default.is_integer():
        return f"{each.default:.0f}"
    return f"`{each.default}`" if isinstance(each.default, str) else str(each.default)


def settings_table(settings: type[Any]) -> str:
    """Return the table of a settings class."""
    lines = ["| name | default | meaning |", "|---|---|---|"]
    lines += [f"| `{found.name}` | {default} | {found.meaning} |" for found, default in list_variables(settings)]
    return "\n".join(lines)


def limits_table() -> str:
    """Return the table of the limits of a run, with the variable that lowers each maximum."""
    lines = ["| limit | counts | default | least | most | lowers the most |", "|---|---|---|---|---|---|"]
    for limit in LIMITS.values():
        numbers = " | ".join(_format_amount(limit.name, value) for value in (limit.default, limit.least, limit.most))
        lines.append(f"| `{limit.name}` | {limit.unit} | {numbers} | `{LIMIT_VARIABLE.format(limit.name.upper())}` |")
    return "\n".join(lines)


def _format_amount(name: str, amount: int) -> str:
    if name.endswith("_bytes"):
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if amount and amount % size == 0:
                return f"{amount // size} {unit}"
    return f"{amount:,}"


def tables() -> dict[str, str]:
    """Return each table of the page by its name."""
    return {name: settings_table(settings) for name, settings in CLASSES.items()} | {"limits": limits_table()}
