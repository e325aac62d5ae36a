"""`backprobe audit PATH... --policy policy.toml`: many programs, one verdict, for a merge to wait for."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exit_codes import CLEAN, FINDINGS, OURS, OutputLost, UsageError

if TYPE_CHECKING:
    from backprobe.cli.audit.policy_file import PolicyFile
    from backprobe.cli.audit.programs import Program
    from backprobe.cli.trials.taken_fixes import TakenFixes
    from backprobe.client import Client
    from backprobe.show.audits.report import AuditReport

_MOST_JOBS: Final = 64

_SILENT_SECONDS: Final = 30.0
"""Between two lines of progress where nobody looks at a terminal."""


def add_audit(subparsers: Subparsers) -> None:
    """Add `audit`."""
    parser = subparsers.add_parser(
        "audit",
        help="run or judge many programs by a policy",
        usage="backprobe audit [OPTION...] [PATH...]",
        description="Each PATH is a script, a folder of scripts or of records, a record (.bprec), a run of the "
        "service, or @FILE with one of these a line; without any, the policy's `entries` and `run` say what is run. "
        "The service runs them, or --local does.",
        epilog="Exit code: 0 passed, 1 the policy failed, 2 usage, 3 we failed, 130 Ctrl-C, which cancels the audit.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", metavar="PATH", nargs="*")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="TOML; without one, findings of level error fail")
    parser.add_argument("--local", action="store_true", help="run and judge here, without a service")
    parser.add_argument(
        "--jobs", type=_jobs, default=1, metavar="N", help="with --local: programs at a time (default: %(default)s)"
    )
    parser.add_argument("--url", help="of the service (default: BACKPROBE_URL, else http://127.0.0.1:8000)")
    parser.add_argument("--project", metavar="PROJECT", help="of the service")
    parser.add_argument(
        "--baseline", metavar="AUDIT", help="findings that it has are known: an audit's id, or with --local its JSON"
    )
    parser.add_argument(
        "--baseline-commit",
        metavar="COMMIT",
        help="findings of this commit are known: of its audit, or the nearest before it, on the service; with --local "
        "the programs are run as they were then",
    )
    parser.add_argument(
        "--changed-since",
        metavar="COMMIT",
        help="audit only programs whose files or imported modules changed since COMMIT",
    )
    parser.add_argument("--again", action="store_true", help="do not take the result of an audit of the same before")
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    parser.add_argument(
        "--format", action="append", default=[], dest="formats",
        choices=("text", "json", "sarif", "junit", "github", "html"), help="may be repeated, each with its --output",
    )  # fmt: skip
    parser.add_argument("--output", action="append", default=[], type=Path, dest="files", metavar="FILE")
    parser.add_argument("--try-fixes", action="store_true", help="run each program again with each fix of its findings")
    parser.add_argument(
        "--patch",
        metavar="FILE",
        type=Path,
        help="write the confirmed safe fixes of all programs as one diff; tries them",
    )
    parser.add_argument("--exit-zero", action="store_true", help="report only: exit with 0 also where the policy fails")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from backprobe.cli.audit.outputs import outputs, write
    from backprobe.cli.audit.policy_file import policy_file
    from backprobe.cli.audit.programs import programs

    asked = outputs(args.formats, args.files)
    policy = policy_file(args.policy)
    _check_baseline(args, policy)
    chosen = programs(args.paths, policy)
    if args.changed_since is not None:
        chosen = _select_changed_programs(args, chosen, policy)
    found: list[AuditReport] = []
    taken = _fixes_folder(args)
    if args.local or not chosen:
        found.append(_locally(args, chosen, policy, taken))
        code = CLEAN
    else:
        code = _on_service(args, chosen, policy, taken, found)
    if not found:
        return code
    write(found[0], asked)
    if taken is not None and args.patch is not None:
        _write_patch(taken, args.patch)
    if found[0].word == "canceled":
        return OURS
    return CLEAN if found[0].word == "passed" or args.exit_zero else FINDINGS


def _jobs(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 1 to {_MOST_JOBS}")
    return int(text)


def _check_baseline(args: argparse.Namespace, policy: PolicyFile) -> None:
    from backprobe.cli.audit.baseline import check_baseline

    if args.baseline is not None and args.baseline_commit is not None:
        raise UsageError("--baseline and --baseline-commit name two baselines: give one")
    if args.baseline is not None:
        check_baseline(args.baseline, local=args.local)
    if (args.baseline or args.baseline_commit) is not None and not policy.rules.new_only:
        said = "findings of the baseline are counted, and fail or warn as others do"
        print(f"backprobe: the policy has no `new-only = true`: {said}", file=sys.stderr)


def _select_changed_programs(
    args: argparse.Namespace, chosen: tuple[Program, ...], policy: PolicyFile
) -> tuple[Program, ...]:
    """Those that changed, with a line about the others; an audit of none passes, and writes its reports."""
    from backprobe.cli.audit.commits import changed_programs

    changed = changed_programs(chosen, args.changed_since, policy)
    print(f"backprobe: {len(changed)} of {len(chosen)} programs changed since {args.changed_since}", file=sys.stderr)
    return changed


def _write_patch(taken: TakenFixes, path: Path) -> None:
    from backprobe.show.amounts import count_noun

    try:
        path.write_text(taken.patch(), encoding="utf-8")
    except OSError as error:
        raise OutputLost(f"`{path}` was not written ({error.strerror or error})") from None
    fixes = count_noun(taken.count, "confirmed safe fix", "confirmed safe fixes")
    print(f"backprobe: {fixes} in {path}", file=sys.stderr)


def _fixes_folder(args: argparse.Namespace) -> TakenFixes | None:
    """Where confirmed safe fixes go; None: no fix is tried."""
    if not args.try_fixes and args.patch is None:
        return None
    from backprobe.cli.output import check_file
    from backprobe.cli.trials.taken_fixes import TakenFixes

    if args.patch is not None:
        check_file(args.patch)
    return TakenFixes()


def _locally(
    args: argparse.Namespace, chosen: tuple[Program, ...], policy: PolicyFile, taken: TakenFixes | None
) -> AuditReport:
    from backprobe.cli.audit.baseline import audit_commit, read_baseline
    from backprobe.cli.audit.local import run_local_audit
    from backprobe.cli.trials.audit_fixes import AuditFixes

    base = None if args.baseline is None or not args.local else read_baseline(Path(args.baseline))
    if args.baseline_commit is not None and chosen:
        base = audit_commit(args.baseline_commit, chosen, args.policy, jobs=args.jobs)
    fixes = None if taken is None else AuditFixes(taken)
    return run_local_audit(chosen, policy, base, _Progress(), fixes, args.jobs)


def _on_service(
    args: argparse.Namespace,
    chosen: tuple[Program, ...],
    policy: PolicyFile,
    taken: TakenFixes | None,
    found: list[AuditReport],
) -> int:
    from backprobe.cli.audit.commits import head_commit
    from backprobe.cli.commands.service_runs import ask, labels_of

    labels = labels_of(args.label)
    commit = head_commit()
    if commit is not None:
        labels.setdefault("commit", commit)

    def audit(client: Client) -> int:
        from backprobe.cli.audit.baseline import audit_of_commit
        from backprobe.cli.audit.remote import RemoteAudit, run_remote_audit

        base = args.baseline
        if args.baseline_commit is not None:
            base = audit_of_commit(client, args.baseline_commit, policy.name)
        more: dict[str, Any] = {"baseline": base, "labels": labels, "project": args.project}
        wanted = RemoteAudit(programs=chosen, policy=policy, again=args.again, taken=taken, **more)
        found.append(run_remote_audit(client, wanted, _Progress()))
        return CLEAN

    return ask(args, audit)


class _Progress:
    """Tells how far it is: on a terminal in one line, else every half minute."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._told_at = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._terminal:
            print(
                f"\rbackprobe: {done} of {total} done", end="\n" if done == total else "", file=sys.stderr, flush=True
            )
        elif now - self._told_at >= _SILENT_SECONDS:
            self._told_at = now
            print(f"backprobe: {done} of {total} done", file=sys.stderr, flush=True)
