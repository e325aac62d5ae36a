"""What git says for an audit: the commit that is checked out, files that changed since one, the tree of another."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backprobe.cli.exit_codes import UsageError
from backprobe.imported_files import imported_files, module_roots

if TYPE_CHECKING:
    from backprobe.cli.audit.policy_file import PolicyFile
    from backprobe.cli.audit.programs import Program

MOST_ANCESTORS: Final = 500
"""Of a commit that are looked through for one that was audited."""

_SECONDS: Final = 60


def head_commit() -> str | None:
    """Return the commit that is checked out; None if there is no git, or no repository."""
    try:
        return _git("rev-parse", "HEAD").decode().strip()
    except UsageError:
        return None


def commit_and_ancestors(revision: str) -> Sequence[str]:
    """List the commit of a revision, then those before it, newest first.

    Raises:
        UsageError: there is no such commit, or no repository.
    """
    return _git("rev-list", f"--max-count={MOST_ANCESTORS}", "--end-of-options", revision, "--").decode().split()


def changed_programs(programs: Sequence[Program], revision: str, policy: PolicyFile) -> tuple[Program, ...]:
    """Choose those of which a file changed since a commit.

    That is the script or record, a module that it imports, or a file that the policy names for it. Runs of the service
    do not change.

    Raises:
        UsageError: there is no such commit, or no repository.
    """
    changed = _changed_files(revision)
    return tuple(program for program in programs if not changed.isdisjoint(_files_of(program, policy)))


def _files_of(program: Program, policy: PolicyFile) -> Iterator[Path]:
    if program.path is None:
        return
    yield program.path.resolve()
    if not program.is_record:
        roots = dict.fromkeys((*module_roots(program.path, Path.cwd()), policy.folder))
        yield from (path.resolve() for path in imported_files(program.path, tuple(roots)))
    for pattern in program.settings.files:
        yield from (path.resolve() for path in policy.folder.glob(pattern))


def _changed_files(revision: str) -> frozenset[Path]:
    """Files that are other than at a commit, new ones that git does not know yet among them."""
    (commit, *_) = commit_and_ancestors(revision)
    root = repository()
    names = _git("diff", "--name-only", "--no-renames", "-z", commit, "--")
    names += _git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", str(root))
    return frozenset((root / name).resolve() for name in names.decode("utf-8", "surrogateescape").split("\0") if name)


def repository() -> Path:
    """Return the top folder of the repository.

    Raises:
        UsageError: there is none.
    """
    return Path(_git("rev-parse", "--show-toplevel").decode().strip())


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """Write the files of a commit into a temporary folder, and yield it until the block ends.

    Raises:
        UsageError: there is no such commit, or no repository.
    """
    (commit, *_) = commit_and_ancestors(revision)
    packed = _git("-C", str(repository()), "archive", "--format=tar", commit)
    with tempfile.TemporaryDirectory(prefix="backprobe-baseline-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def _git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, timeout=_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise UsageError(f"git: {said}") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"git cannot be asked: {error}") from None
    return done.stdout
