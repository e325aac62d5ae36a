"""What the editor sets, checked once; what is unknown or of the wrong kind is reported, and the rest holds."""

from __future__ import annotations

import difflib
import fnmatch
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from backprobe.language_server.hints import KINDS, Kind
from backprobe.tiers import EVERY_TIER

USUAL_SECONDS: Final = 10.0
"""A run that is waited for beside typing is stopped then, and tells what it saw."""

USUAL_SERVICE_SECONDS: Final = 60.0
MOST_SECONDS: Final = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What may run when it is saved.

    Attributes:
        program: Pattern of paths, relative to the workspace.
        arguments: Of each program that it matches. environment: variables that it has beside those of the editor.
    """

    program: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the editor wants it.

    Attributes:
        trusted: The workspace's code may be run. Until the editor says so, stored results are shown and nothing runs.
        run_on_save: A save of an entry point runs it. entries: those; the first that matches a file holds.
        interpreter: Of the workspace; it has torch and Backprobe. seconds: a local run is stopped so long
            after its first statement.
        tier: How much is recorded; None: as the project says.
        url: Of a service; None: programs run here. isolation: the least level that a service must give.
        service_seconds: For the end of a run of the service, from its submission on.
        hints: Kinds that are shown.
    """

    trusted: bool = False
    run_on_save: bool = True
    entries: tuple[Entry, ...] = ()
    interpreter: str = sys.executable
    seconds: float = USUAL_SECONDS
    tier: str | None = None
    url: str | None = None
    isolation: str = "none"
    service_seconds: float = USUAL_SERVICE_SECONDS
    hints: frozenset[Kind] = frozenset(KINDS)


NAMES: Final = {
    "trusted": "trusted",
    "runOnSave": "run_on_save",
    "entries": "entries",
    "interpreter": "interpreter",
    "seconds": "seconds",
    "tier": "tier",
    "service": "service",
    "hints": "hints",
}
"""Settings as an editor writes them."""


def settings_from(told: Any, environment: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Read the settings; return them, and what is wrong with them, one sentence each.

    Args:
        told: A JSON object, or None. environment: BACKPROBE_URL names the service where the editor names none.
    """
    wrong: list[str] = []
    found: dict[str, Any] = {"url": environment.get("BACKPROBE_URL") or None}
    if told is not None and not isinstance(told, Mapping):
        return Settings(**found), ["the settings must be an object"]
    for name, value in (told or {}).items():
        if name not in NAMES:
            near = difflib.get_close_matches(str(name), NAMES, n=1)
            wrong.append(f"`{name}` is no setting" + (f"; did you mean `{near[0]}`?" if near else ""))
            continue
        if value is None:
            continue
        checked, problem = _CHECKS[NAMES[name]](value)
        found |= checked
        if problem:
            wrong.append(f"`{name}` {problem}, not {value!r}")
    if found["url"] is not None and not str(found["url"]).startswith(("http://", "https://")):
        wrong.append(f"`service.url` begins with http:// or https://, not {found['url']!r}")
        found["url"] = None
    return Settings(**found), wrong


def _flag(name: str) -> Any:
    return lambda value: ({name: value}, "") if isinstance(value, bool) else ({}, "is true or false")


def _text(name: str) -> Any:
    return lambda value: ({name: value}, "") if isinstance(value, str) and value else ({}, "is a text")


def _entries(value: Any) -> tuple[dict[str, Any], str]:
    found = [_entry(told) for told in value] if isinstance(value, list | tuple) else [None]
    if None in found:
        return {}, "is a list of patterns, or of objects of `program`, `args`, `env`"
    return {"entries": tuple(found)}, ""


def _entry(told: Any) -> Entry | None:
    """Read a pattern, or an object with the names of VS Code's `launch.json`; None if it is neither."""
    if isinstance(told, str):
        return Entry(program=told)
    if not isinstance(told, Mapping) or set(told) - {"program", "args", "env"} or not told.get("program"):
        return None
    program, arguments, environment = told["program"], told.get("args") or (), told.get("env") or {}
    texts = (program, *arguments, *environment, *environment.values())
    if not isinstance(arguments, list | tuple) or not all(isinstance(text, str) for text in texts):
        return None
    return Entry(program=program, arguments=tuple(arguments), environment=dict(environment))


def _seconds(name: str) -> Any:
    def check_seconds(value: Any) -> tuple[dict[str, Any], str]:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_SECONDS:
            return {name: float(value)}, ""
        return {}, "is a number of seconds, above 0"

    return check_seconds


def _tier(value: Any) -> tuple[dict[str, Any], str]:
    return ({"tier": value}, "") if value in EVERY_TIER else ({}, f"is one of {', '.join(EVERY_TIER)}")


def _service(value: Any) -> tuple[dict[str, Any], str]:
    if not isinstance(value, Mapping) or set(value) - {"url", "isolation", "seconds"}:
        return {}, "is an object of `url`, `isolation`, `seconds`"
    found = {name: value[name] for name in ("url", "isolation") if isinstance(value.get(name), str) and value[name]}
    if value.get("seconds") is None:
        return found, ""
    seconds, problem = _seconds("service_seconds")(value["seconds"])
    return found | seconds, problem and f".seconds {problem}"


def _hints(value: Any) -> tuple[dict[str, Any], str]:
    if isinstance(value, bool):
        return {"hints": frozenset(KINDS if value else ())}, ""
    if not isinstance(value, Mapping) or set(value) - set(KINDS):
        return {}, f"is true, false, or an object of {', '.join(KINDS)}"
    return {"hints": frozenset(kind for kind in KINDS if value.get(kind, True) is not False)}, ""


_CHECKS: Final[dict[str, Any]] = {
    "trusted": _flag("trusted"),
    "run_on_save": _flag("run_on_save"),
    "entries": _entries,
    "interpreter": _text("interpreter"),
    "seconds": _seconds("seconds"),
    "tier": _tier,
    "service": _service,
    "hints": _hints,
}


JUDGING: Final = ("select", "ignore", "severity", "per-file-ignores", "thresholds", "min-confidence")
"""Settings of a project that say which rules judge, and how."""


def judging(project: Mapping[str, Any]) -> dict[str, Any]:
    """Which rules judge, as `POST /v1/runs` takes them, from `[tool.backprobe]`."""
    return {name.replace("-", "_"): project[name] for name in JUDGING if name in project}


def entry_of(path: str, folder: Path, entries: Iterable[Entry]) -> Entry | None:
    """Find the first entry that matches a file's path relative to a folder; `*` matches slashes too."""
    name = Path(os.path.relpath(path, folder)).as_posix()
    return next((entry for entry in entries if fnmatch.fnmatchcase(name, entry.program)), None)


def plain_object(told: Any) -> Any:
    """Convert a JSON value to dicts and lists, in whichever form pygls passes it."""
    if isinstance(told, Mapping):
        return {str(name): plain_object(value) for name, value in told.items()}
    if isinstance(told, list | tuple):
        fields = getattr(told, "_asdict", None)
        return plain_object(fields()) if fields is not None else [plain_object(value) for value in told]
    return plain_object(vars(told)) if hasattr(told, "__dict__") and not callable(told) else told
