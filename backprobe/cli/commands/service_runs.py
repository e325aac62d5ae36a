"""`submit`, `runs`, `compare`: the service from the command line. No torch, no server library."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from backprobe.cli.arguments import Subparsers
from backprobe.cli.capture_options import DEEP, add_sampling
from backprobe.cli.exit_codes import CLEAN, FINDINGS, OURS, SCRIPT, UsageError
from backprobe.cli.project_settings import add_judging
from backprobe.cli.run_progress import submit_run
from backprobe.isolation import ISOLATION_LEVELS
from backprobe.severity import LEVELS
from backprobe.show.plain_text import cut, plain
from backprobe.tiers import EVERY_TIER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backprobe.client import Client, Run

DEFAULT_URL: Final = "http://127.0.0.1:8000"
WHOLE_SECONDS: Final = 7 * 86_400
"""How long `--wait` alone waits: a week, beyond what any limit lets a run last."""

_WHOSE: Final = {"program": "the program failed", "limit": "a limit stopped it", "ours": "the service failed"}


def add_submit(subparsers: Subparsers) -> None:
    """Add `submit`."""
    parser = subparsers.add_parser(
        "submit", help="send a program to the service; `--wait` for its findings", allow_abbrev=False
    )
    _service(parser, "text", "json", "sarif")
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="the program first, then what it imports or reads"
    )
    parser.add_argument(
        "-m", dest="module", metavar="MODULE", help="run this module of the files, as `python -m` would"
    )
    parser.add_argument(
        "--wait", type=_seconds, default=0.0, metavar="[SECONDS]", help="for the end of the run; alone: however long"
    )
    parser.add_argument("--queue", choices=("cpu", "gpu"), help="whose workers run it (default: by --device)")
    parser.add_argument("--project", metavar="PROJECT", help="where it belongs (default: the key's project)")
    parser.add_argument("--isolation", choices=ISOLATION_LEVELS, default="none")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--tier", choices=EVERY_TIER, default="full", help=DEEP)
    add_sampling(parser)
    add_judging(parser)
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    parser.add_argument("--fail-on", choices=LEVELS, default="warning", help="exit with 1 on findings this bad")
    parser.set_defaults(run=_submit)


def add_runs(subparsers: Subparsers) -> None:
    """Add `runs`."""
    parser = subparsers.add_parser("runs", help="the runs of the service, newest first", allow_abbrev=False)
    _service(parser)
    parser.add_argument("--status", metavar="STATUS", help="queued, running, succeeded, failed, ...; several by commas")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (default: %(default)s)")
    parser.set_defaults(run=_runs)


def add_address(parser: argparse.ArgumentParser) -> None:
    """Where the service is; its key comes from the environment."""
    parser.add_argument("--url", help=f"of the service (default: BACKPROBE_URL, else {DEFAULT_URL})")


def address(url: str | None) -> str:
    """Return the service's address without a slash at its end: as given, else BACKPROBE_URL, else this machine."""
    return (url or os.environ.get("BACKPROBE_URL") or DEFAULT_URL).rstrip("/")


def api_key() -> str | None:
    """Return the key to the service from the environment; None if there is none."""
    return os.environ.get("BACKPROBE_API_KEY") or None


def _service(parser: argparse.ArgumentParser, *formats: str) -> None:
    add_address(parser)
    parser.add_argument("--format", choices=formats or ("text", "json"), default="text")


def with_seconds(argv: Sequence[str]) -> list[str]:
    """Write out the seconds of a bare `--wait` in the words of `submit`: the next word may be the program."""
    words = list(argv)
    for at, word in enumerate(words):
        if word == "--wait" and not re.fullmatch(r"-?\d+(\.\d*)?", " ".join(words[at + 1 : at + 2])):
            words[at] = f"--wait={WHOLE_SECONDS}"
    return words


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= WHOLE_SECONDS:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of seconds from 0 to {WHOLE_SECONDS}")
    return seconds


def ask(args: argparse.Namespace, what: Callable[[Client], int]) -> int:
    """Ask the service; what it refuses is exit 2, what it could not do is exit 3.

    Raises:
        UsageError: httpx is not installed, or the address is none.
    """
    try:
        from backprobe.client import ApiError, Client, ServiceAway
    except ModuleNotFoundError as error:
        raise UsageError(f"`{args.command}` needs {error.name}: `pip install 'backprobe[client]'`") from None
    url = address(args.url)
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"`{url}` is no address of a service: it begins with http:// or https://")
    try:
        with Client(url, api_key()) as client:
            return what(client)
    except ApiError as error:
        print(f"backprobe: {plain(str(error))}", file=sys.stderr)
        return OURS if error.status >= 500 or error.status == 429 else 2
    except ServiceAway as error:
        print(f"backprobe: the service at {plain(url)} does not answer: {plain(str(error))}", file=sys.stderr)
        return OURS


def labels_of(given: list[str]) -> dict[str, str]:
    """Labels as they are written: NAME=VALUE.

    Raises:
        UsageError: one is not.
    """
    labels: dict[str, str] = {}
    for label in given:
        name, equals, value = label.partition("=")
        if not equals or not name:
            raise UsageError(f"a label is NAME=VALUE, not `{label}`")
        labels[name] = value
    return labels


def _files(paths: list[Path]) -> list[dict[str, str]]:
    """Read the files, by their path below the current folder, else by their name."""
    found: list[dict[str, str]] = []
    here = Path.cwd()
    for path in paths:
        try:
            text = path.read_bytes().decode()
        except OSError as error:
            raise UsageError(f"cannot read `{path}`: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise UsageError(f"`{path}` is not UTF-8 text") from None
        whole = path.absolute()
        name = (
            whole.relative_to(here).as_posix() if whole.is_relative_to(here) and ".." not in path.parts else path.name
        )
        found.append({"path": name, "text": text})
    return found


def _submit(args: argparse.Namespace) -> int:
    if args.format == "sarif" and not args.wait:
        raise UsageError("--format sarif needs --wait: a run has findings only once it has ended")
    files = _files(args.paths)
    body: dict[str, Any] = {
        "files": files,
        "entry": args.module or files[0]["path"],
        "isolation": args.isolation,
        "device": args.device,
        "labels": labels_of(args.label),
        "capture": {"tier": args.tier, "every": args.every, "histograms": args.histograms},
        "seed": args.seed,
    }
    body.update({name: getattr(args, name) for name in ("queue", "project") if getattr(args, name) is not None})
    chosen = {name: getattr(args, name) for name in ("select", "ignore", "min_confidence")}
    rules = {name: value for name, value in chosen.items() if value is not None}
    if rules:
        body["rules"] = rules
    return ask(args, lambda client: _submit_and_print(client, args, body))


def _submit_and_print(client: Client, args: argparse.Namespace, body: dict[str, Any]) -> int:
    run = submit_run(client, body, args.wait)
    findings = list(client.findings(run.id, suppressed=False)) if run.ended else []
    if args.format == "json":
        print(json.dumps({"run": run.told, "findings": findings}, indent=2))
    elif args.format == "sarif" and run.ended:
        print(json.dumps(client.call("GET", f"/v1/runs/{run.id}/findings", format="sarif"), indent=2))
    else:
        for finding in findings:
            print(finding_line(finding))
        print(_summary(run))
        if run.error is not None:
            print(_why(run.error))
    return _exit(run, findings, args.fail_on)


def _exit(run: Run, findings: list[dict[str, Any]], fail_on: str) -> int:
    if run.status == "lost":
        return OURS
    if run.ended and run.status != "succeeded":
        return SCRIPT
    bad = LEVELS[: LEVELS.index(fail_on) + 1]
    return FINDINGS if any(finding["level"] in bad for finding in findings) else CLEAN


def finding_line(row: Mapping[str, Any]) -> str:
    """One finding of the service on a line."""
    place, rule = row["location"], row["rule"]
    at = f"{plain(place['path'])}:{place['region']['start_line']}:{place['region']['start_col']}"
    first = plain(row["message"].split("\n")[0])
    return f"{at}: {plain(rule['name'])} {plain(rule['code'])} {plain(row['level'])}: {first}"


def _summary(run: Run) -> str:
    counts = ", ".join(f"{run.findings[level]} {level}" for level in LEVELS if run.findings.get(level))
    said = counts or ("no finding" if run.ended else "not judged yet")
    told = f"{plain(run.id)}  {plain(run.status):9}  {plain(run.created_at)}"
    return f"{told}  {cut(plain(run.display_name), 40)}  {said}"


def _why(error: Mapping[str, Any]) -> str:
    """Why a run did not succeed: whose it was, the exception, its place and its whole message, indented."""
    place = f" at {plain(str(error['path']))}:{error['line']}" if error.get("path") and error.get("line") else ""
    what = plain(str(error.get("type") or error["code"]))
    message = plain(str(error["message"]), keep_newlines=True).replace("\n", "\n  ")
    return f"{_WHOSE.get(error['whose'], 'error')}: {what}{place}\n  {message}"


def _runs(args: argparse.Namespace) -> int:
    if args.limit < 1:
        raise UsageError("--limit takes a number from 1")
    return ask(args, lambda client: _list_runs(client, args))


def _list_runs(client: Client, args: argparse.Namespace) -> int:
    told = []
    for _, run in zip(range(args.limit), client.runs(status=args.status, limit=min(args.limit, 1000)), strict=False):
        told.append(run.told)
        if args.format == "text":
            print(_summary(run))
    if args.format == "json":
        print(json.dumps(told, indent=2))
    elif not told:
        print("no runs", file=sys.stderr)
    return CLEAN
