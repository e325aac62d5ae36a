"""`--baseline` of an audit: on a service an audit's id, with `--local` the JSON report of one.

`--baseline-commit` finds the one or makes the other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backprobe.cli.audit.commits import commit_and_ancestors, repository, tree_of
from backprobe.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from backprobe.cli.audit.programs import Program
    from backprobe.client import Client

_AUDIT: Final = re.compile("aud_[0-7][0-9A-HJKMNP-TV-Z]{25}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What an audit before has found.

    Attributes:
        fingerprints: Of its findings, by the name of its item.
    """

    fingerprints: Mapping[str, frozenset[str]]

    @property
    def all_fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of all items."""
        return frozenset().union(*self.fingerprints.values())

    def count_missing(self, audited: Sequence[str], current: frozenset[str]) -> int:
        """Return how many are missing now, of the items that were audited to their end again."""
        return len(frozenset().union(*(self.fingerprints.get(name, ()) for name in audited)) - current)


def check_baseline(given: str, *, local: bool) -> None:
    """Refuse a baseline of the other kind.

    Raises:
        UsageError: a service is asked and it is no audit's id, or none is and it is one.
    """
    is_audit = _AUDIT.fullmatch(given) is not None
    if not local and not is_audit:
        said = "on a service `--baseline` is an audit's id (aud_..., in the last line of its output)"
        raise UsageError(f"{said}, not `{given}`: a JSON report is for --local")
    if local and is_audit and not Path(given).exists():
        raise UsageError(
            f"with --local `--baseline` is the JSON report of an audit, not `{given}`: ids are for a service"
        )


def read_baseline(path: Path) -> Baseline:
    """Read the findings from the JSON of an earlier audit, without those that a comment suppresses.

    Raises:
        UsageError: it cannot be read, or is something else.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Baseline(
            fingerprints={
                item["name"]: frozenset(
                    found["fingerprint"] for found in item["findings"] if found.get("suppressed") is None
                )
                for item in told["items"]
            }
        )
    except OSError as error:
        raise UsageError(f"cannot read the baseline `{path}`: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"`{path}` is not what `backprobe audit --format json` writes") from None


def audit_commit(revision: str, programs: Sequence[Program], policy: Path | None, *, jobs: int) -> Baseline:
    """Run the programs as they were at a commit, by the policy of today.

    Args:
        revision: As git takes it.
        programs: Of today; those that were not there yet have no known finding.
        policy: Its file; None: there is none.
        jobs: Programs at a time.

    Raises:
        UsageError: there is no such commit, or no repository.
    """
    root = repository()
    with tree_of(revision) as tree:
        here = tree / Path.cwd().resolve().relative_to(root.resolve())
        paths = dict.fromkeys(program.path for program in programs if program.path is not None)
        there = [path.relative_to(Path.cwd()) for path in paths if path.is_relative_to(Path.cwd())]
        chosen = [path for path in there if (here / path).is_file()]
        if not chosen:
            return Baseline(fingerprints={})
        report = tree / "backprobe-baseline.json"
        command = [sys.executable, "-m", "backprobe", "audit", "--local", "--exit-zero", "--jobs", str(jobs)]
        command += ["--format", "json", "--output", str(report)]
        if policy is not None:
            command += ["--policy", str(_copy_policy(policy, root, tree))]
        print(f"backprobe: the programs as they were at {revision} are run first", file=sys.stderr, flush=True)
        done = subprocess.run(
            [*command, *map(str, chosen)], cwd=here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
        )
        if done.returncode != 0:
            raise UsageError(f"the baseline at {revision} could not be audited: exit code {done.returncode}")
        return read_baseline(report)


def _copy_policy(policy: Path, root: Path, tree: Path) -> Path:
    """Today's policy in the place that it has in the repository: patterns in it are of its folder."""
    place = policy.resolve()
    if not place.is_relative_to(root.resolve()):
        raise UsageError(f"--baseline-commit: the policy `{policy}` lies outside the repository {root}")
    copy = tree / place.relative_to(root.resolve())
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(place.read_bytes())
    return copy


def audit_of_commit(client: Client, revision: str, name: str) -> str:
    """Find the newest audit with this policy's name of this commit, or of the nearest commit before it.

    Raises:
        UsageError: there is none.
    """
    commits = commit_and_ancestors(revision)
    audits: dict[str, str] = {}
    for audit in client.items("/v1/audits", status="judged", limit=1000):  # newest first
        commit = audit["labels"].get("commit")
        if audit["name"] == name and commit is not None:
            audits.setdefault(commit, audit["id"])
            if commit == commits[0]:
                break
    found = next((commit for commit in commits if commit in audits), None)
    if found is None:
        raise UsageError(f"no audit called `{name}` is of {revision}, nor of the {len(commits) - 1} commits before it")
    print(f"backprobe: the baseline is audit {audits[found]} of commit {found[:12]}", file=sys.stderr)
    return audits[found]
