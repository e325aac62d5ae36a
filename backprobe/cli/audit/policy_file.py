"""`policy.toml`: which findings fail an audit, which programs it runs, and how each one is started.

[policy]
name = "pre-merge"
entries = ["jobs/*.py"]
fail = ["BP1", "needless-retain-graph", "level:error"]

[run."jobs/gpt.py"]
arguments = ["--steps", "20"]
files = ["jobs/words.txt"]
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from backprobe.cli.exit_codes import UsageError
from backprobe.isolation import ISOLATION_LEVELS
from backprobe.rules.policy import Rules, unknown_pattern
from backprobe.severity import CONFIDENCES
from backprobe.tiers import EVERY_TIER, Tier

_RULES: Final = ("fail", "warn", "min-confidence", "new-only", "not-run", "min-backward-calls")
_MORE: Final = ("name", "entries", "limits", "isolation", "device", "tier", "every", "seed")
_RUN: Final = ("name", "arguments", "files", "limits", "device", "tier", "every", "seed")
_CHOICES: Final[Mapping[str, Sequence[Any]]] = {
    "min-confidence": CONFIDENCES,
    "new-only": (True, False),
    "not-run": ("fail", "warn"),
    "isolation": ISOLATION_LEVELS,
    "device": ("cpu", "cuda"),
    "tier": EVERY_TIER,
}
_TEXTS: Final = ("fail", "warn", "entries", "arguments", "files")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a program is started.

    Attributes:
        name: Of its item; None: its path. files: patterns of files that it reads, from the folder of the policy.
        limits: By name, as `POST /v1/runs` has them. None: as the policy, or the service, says.
    """

    name: str | None = None
    arguments: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    device: str | None = None
    tier: Tier | None = None
    every: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """A policy, and the programs that it is for.

    Attributes:
        name: On the service it is the tenant's only one of this name.
        entries: Patterns of programs, from `folder`. runs: by path, one for each time that a program is started.
        isolation: The least level that is accepted on the service; None: as the service says.
    """

    name: str = "audit"
    rules: Rules = field(default_factory=Rules)
    entries: tuple[str, ...] = ()
    defaults: RunSettings = field(default_factory=RunSettings)
    runs: Mapping[str, tuple[RunSettings, ...]] = field(default_factory=dict[str, tuple[RunSettings, ...]])
    isolation: str | None = None
    folder: Path = field(default_factory=Path.cwd)
    is_given: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """As `POST /v1/policies` takes it."""
        told = asdict(self.rules)
        return {"name": self.name, **told, "fail": list(self.rules.fail), "warn": list(self.rules.warn)}


def policy_file(path: Path | None) -> PolicyFile:
    """Read the policy of a file. None: the default policy, by which findings of level error fail.

    Raises:
        UsageError: it cannot be read, or something in it is unknown or cannot be; the message says what can.
    """
    if path is None:
        return PolicyFile()
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the policy `{path}`: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"`{path}` is no TOML: {error}") from None
    _check_known(path, "", told, ("policy", "run"))
    policy, runs = told.get("policy", {}), told.get("run", {})
    for what, table in (("policy", policy), ("run", runs)):
        if not isinstance(table, dict):
            raise UsageError(f"`{path}`: `{what}` must be a table")
    _check_known(path, "policy", policy, (*_RULES, *_MORE))
    rules = Rules(**{name.replace("-", "_"): policy[name] for name in _RULES if name in policy})
    for pattern in (*rules.fail, *rules.warn):
        said = unknown_pattern(pattern)
        if said is not None:
            raise UsageError(f"`{path}`: {said}")
    return PolicyFile(
        name=policy.get("name", path.stem),
        rules=rules,
        entries=tuple(policy.get("entries", ())),
        defaults=_settings(path, "policy", {key: value for key, value in policy.items() if key in _RUN[3:]}),
        runs={script: _several(path, script, run) for script, run in runs.items()},
        isolation=policy.get("isolation"),
        folder=path.absolute().parent,
        is_given=True,
    )


def _several(path: Path, script: str, told: Any) -> tuple[RunSettings, ...]:
    ones = told if isinstance(told, list) else [told]
    if not all(isinstance(entry, dict) for entry in ones):
        raise UsageError(
            f'`{path}`: `run."{script}"` must be a table `[run."{script}"]` or an array of tables `[[run."{script}"]]`'
        )
    return tuple(_settings(path, f'run."{script}"', entry) for entry in ones)


def _settings(path: Path, where: str, told: Mapping[str, Any]) -> RunSettings:
    if where != "policy":
        _check_known(path, where, told, _RUN)
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
    return RunSettings(**given)


def _check_known(path: Path, where: str, told: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse what is unknown, or of another kind than it must be."""
    for key, value in told.items():
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
            hint = f"; did you mean `{near[0]}`?" if near else f"; there are {', '.join(names)}"
            raise UsageError(f"`{path}`: `{where}{'.' * bool(where)}{key}` is unknown{hint}")
        fault = _fault(key, value)
        if fault is not None and where:
            raise UsageError(f"`{path}`: `{where}.{key}` must be {fault}, not {value!r}")


def _fault(key: str, value: Any) -> str | None:
    """Say what a value must be; None if it is that."""
    if key in _TEXTS:
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return None if fits else "a list of texts"
    if key in _CHOICES:
        return None if value in _CHOICES[key] else f"one of {', '.join(map(str, _CHOICES[key]))}"
    if key == "limits":
        fits = isinstance(value, dict) and all(type(number) is int and number > 0 for number in value.values())
        return None if fits else "a table of numbers from 1, such as { wall_seconds = 120 }"
    if key in ("every", "seed", "min-backward-calls"):
        return None if type(value) is int and value >= (key == "every") else "a number"
    if key == "name":
        return None if isinstance(value, str) and 0 < len(value) <= 100 else "a text of 1 to 100 characters"
    return None
