"""`backprobe config`: the settings that hold in this folder, each with where it comes from."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Any

from backprobe.cli.arguments import Subparsers
from backprobe.cli.commands.service_runs import DEFAULT_URL, address, api_key
from backprobe.cli.exit_codes import CLEAN
from backprobe.cli.project_settings import DEFAULTS, JUDGING, build_judge_options, project
from backprobe.show.plain_text import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting.

    Attributes:
        value: What holds; of a secret only whether it is set; None: nothing is set, and nothing is left out for it.
        source: `default`, `environment BACKPROBE_URL`, or the file.
    """

    name: str
    value: Any
    source: str


def add_config(subparsers: Subparsers) -> None:
    """Add `config`."""
    parser = subparsers.add_parser(
        "config",
        help="the settings that hold here, each with its source",
        description="Settings come from flags, then the environment, then `[tool.backprobe]` of the nearest "
        "pyproject.toml, then the defaults. An unknown key of the file is an error, with the nearest one.",
        allow_abbrev=False,
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=_config)


def _config(args: argparse.Namespace) -> int:
    build_judge_options(argparse.Namespace())  # refuses what a run would refuse
    found = effective()
    if args.format == "json":
        print(json.dumps([asdict(setting) for setting in found], indent=2))
        return CLEAN
    values = ["-" if setting.value is None else plain(_format_value(setting.value)) for setting in found]
    wide = [max(len(setting.name) for setting in found), max(map(len, values))]
    for setting, value in zip(found, values, strict=True):
        print(f"{setting.name:{wide[0]}}  {value:{wide[1]}}  {plain(setting.source)}")
    return CLEAN


def effective() -> list[Setting]:
    """All settings in the working directory.

    Raises:
        UsageError: the file cannot be followed.
    """
    of = project()
    found: list[Setting] = []
    for name in (*DEFAULTS, *JUDGING):
        if name in of.settings:
            found.append(Setting(name=name, value=of.settings[name], source=str(of.path)))
        else:
            found.append(Setting(name=name, value=DEFAULTS.get(name), source="default"))
    url, key = address(None), api_key()
    of_url = "default" if url == DEFAULT_URL else "environment BACKPROBE_URL"
    of_key = "default" if key is None else "environment BACKPROBE_API_KEY"
    found.append(Setting(name="url", value=url, source=of_url))
    found.append(Setting(name="api-key", value="not set" if key is None else "set", source=of_key))
    return found


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
