"""`[tool.backprobe]`: the settings of a project, from the nearest `pyproject.toml`, and what flags put in their place.

1. A flag comes first, then the file, then the default.
2. What is not known is refused with the nearest name, before anything is run.
"""

from __future__ import annotations

import argparse
import difflib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from backprobe.cli.exit_codes import UsageError
from backprobe.severity import CONFIDENCES, LEVELS
from backprobe.tiers import EVERY_TIER

if TYPE_CHECKING:
    from backprobe.rules import JudgeOptions

JUDGING: Final = ("select", "ignore", "severity", "per-file-ignores", "thresholds", "min-confidence")
CHOICES: Final = {"fail-on": LEVELS, "tier": EVERY_TIER}
"""Settings with a flag of the same name, and what they may be."""

EDITING: Final = ("entries",)
"""Patterns of the paths of programs that a language server runs when they are saved."""

DEFAULTS: Final = {"fail-on": "warning", "tier": "full"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The table `[tool.backprobe]` of a project.

    Attributes:
        path: The file; None: there is none, or it has no such table.
        settings: As written, with dashes in the names.
    """

    path: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


def project(start: Path | None = None) -> Project:
    """Read the settings that hold in a folder; by default in the working directory.

    Raises:
        UsageError: the file is no TOML, or a setting is unknown or of the wrong kind.
    """
    folder = (start or Path.cwd()).absolute()
    beside = (parent / "pyproject.toml" for parent in (folder, *folder.parents))
    path = next((candidate for candidate in beside if candidate.is_file()), None)
    if path is None:
        return Project()
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text).get("tool", {}).get("backprobe") if "backprobe" in text else None
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read ({error.strerror})") from None
    except ValueError as error:  # bad TOML, or no UTF-8
        raise UsageError(f"`{path}` is no TOML: {error}") from None
    except AttributeError:
        raise UsageError(f"`{path}`: `tool` must be a table") from None
    if found is None:
        return Project()
    if not isinstance(found, dict):
        raise UsageError(f"`{path}`: `tool.backprobe` must be a table, not {found!r}")
    table = cast("dict[str, Any]", found)
    return Project(path=path, settings={_check_setting(path, key, value): value for key, value in table.items()})


def _check_setting(path: Path, key: str, value: Any) -> str:
    name = key.replace("_", "-")
    if name in CHOICES and value not in CHOICES[name]:
        raise UsageError(f"`{path}`: `{key}` must be one of {', '.join(CHOICES[name])}, not {value!r}")
    if name in EDITING and not (isinstance(value, list) and all(isinstance(item, str) for item in cast("Any", value))):
        raise UsageError(f"`{path}`: `{key}` must be a list of patterns of paths, not {value!r}")
    if name not in (*CHOICES, *JUDGING, *EDITING):
        near = difflib.get_close_matches(name, [*CHOICES, *JUDGING, *EDITING], n=1, cutoff=0.5)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise UsageError(f"`{path}`: `{key}` is no setting of Backprobe{hint}")
    return name


def add_judging(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose rules. They replace the file's settings of the same names."""
    for name, what in (("select", "judge with these rules only"), ("ignore", "leave these rules out")):
        parser.add_argument(
            f"--{name}", metavar="RULE,...", type=_names, help=f"{what}: names, codes or beginnings of codes (BP3)"
        )
    parser.add_argument("--min-confidence", choices=CONFIDENCES, help="leave out findings less sure than this")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def build_judge_options(args: argparse.Namespace) -> JudgeOptions:
    """Build the options to judge by; fill in what the flags left open of `fail_on` and `tier`.

    Raises:
        UsageError: a setting cannot be followed.
    """
    from backprobe.rules import BadOption, options_from
    from backprobe.rules.framework.manual import every_rule

    of = project()
    for name, default in DEFAULTS.items():
        key = name.replace("-", "_")
        if hasattr(args, key) and getattr(args, key) is None:
            setattr(args, key, of.settings.get(name, default))
    if getattr(args, "entry", None) == "watch" and args.tier == "deep":
        args.tier = "full"  # a job is not run a second time
    chosen = {name: of.settings[name] for name in JUDGING if name in of.settings}
    flags = {name: getattr(args, name.replace("-", "_"), None) for name in ("select", "ignore", "min-confidence")}
    where = "" if of.path is None else f"`{of.path}`: "
    rules = every_rule()
    try:
        options_from(chosen, rules)
        where = ""
        return options_from({**chosen, **{name: value for name, value in flags.items() if value is not None}}, rules)
    except BadOption as error:
        raise UsageError(f"{where}{error}") from None
