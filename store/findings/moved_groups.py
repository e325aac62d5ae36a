"""Groups of findings whose line moved to another file: their findings get another fingerprint and stay in the group.

A fingerprint contains the path, not the line number: a line that moves inside its file keeps its group by itself. A
finding whose fingerprint has no group is taken into an existing one, and its fingerprint becomes an alias of that
group, exactly if all of this is true:

1. The group has the same rule, function, text of the line (which is known), binding and place among equals: all but
   the path is equal.
2. The run that showed the group last ran the same entry of the same project. Another entry is another program, and a
   renamed entry cannot be told from a copy.
3. The group's file was part of that run's program, and the finding's file is part of this run's.
4. The program of this run does not have the line in the group's file any more: the file is gone, or the line is.
5. It is one to one: only one such group, and only one such finding in this run.

Both programs were sent whole, with names. Of a job that a recorder watched only parts of the source are known, which
proves nothing, so a renamed file begins new groups there. A run that shows a group under two fingerprints, at once or
one after the other, proves that an alias is wrong, and removes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from backprobe.rules import Finding, identity_of
from store.database.session import Transaction
from store.tables import finding_group, finding_group_alias, run, snippet, snippet_file

_PROGRAM: Final = (
    sa.select(snippet.c.entry, snippet.c.named, snippet_file.c.path, snippet_file.c.body, snippet_file.c.is_text)
    .join_from(run, snippet, snippet.c.id == run.c.snippet_id)
    .join(snippet_file, snippet_file.c.snippet_id == snippet.c.id)
    .where(run.c.id == sa.bindparam("its_run"))
)
_MOST_ASKED: Final = 500
"""Fingerprints in one statement."""


def fingerprint_without_path(finding: Finding) -> str | None:
    """Return what is equal in fingerprints of the same line in different files; None: the path is no file's name."""
    identity = identity_of(finding)
    return None if identity is None else replace(identity, path="").fingerprint


def load_groups(transaction: Transaction, project_id: int, fingerprints: Collection[str]) -> set[str]:
    """Load the fingerprints of the groups that findings with these fingerprints belong to now."""
    aliases = _load_aliases(transaction, project_id, fingerprints)
    return {aliases.get(fingerprint, fingerprint) for fingerprint in fingerprints}


def known_fingerprints(
    transaction: Transaction, project_id: int, run_id: int, findings: Sequence[Finding], shown_before: Collection[str]
) -> Mapping[str, str]:
    """Return the fingerprint of the group of each finding that is not its own, and store the aliases that are new.

    Args:
        transaction: To write by.
        project_id: Of the run.
        run_id: The run that shows the findings; its program is stored.
        findings: One of each fingerprint.
        shown_before: Fingerprints that the run showed before, of these findings or of others.
    """
    shown = {finding.fingerprint: finding for finding in findings}
    every = {*shown, *shown_before}
    aliases = _load_aliases(transaction, project_id, every)
    doubled = Counter(aliases.get(fingerprint, fingerprint) for fingerprint in every)
    wrong = [fingerprint for fingerprint, known in aliases.items() if doubled[known] > 1]
    _delete_aliases(transaction, project_id, wrong)
    aliases = {fingerprint: known for fingerprint, known in aliases.items() if fingerprint not in wrong}
    grouped = _load_grouped(transaction, project_id, shown)
    settled = {*grouped, *aliases, *wrong, *shown_before}
    fresh = [finding for name, finding in shown.items() if name not in settled]
    taken = {aliases.get(name, name) for name in every}
    moved = {name: known for name, known in _find_moved(transaction, project_id, run_id, fresh) if known not in taken}
    if moved:
        rows = [
            {"project_id": project_id, "fingerprint": name, "known_as": known} for name, known in sorted(moved.items())
        ]
        insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
        transaction.execute(insert(finding_group_alias).on_conflict_do_nothing(), rows)
    return aliases | moved


def _load_aliases(transaction: Transaction, project_id: int, fingerprints: Iterable[str]) -> dict[str, str]:
    alias = finding_group_alias.c
    found: dict[str, str] = {}
    for some in _cut_list(fingerprints):
        query = sa.select(alias.fingerprint, alias.known_as)
        query = query.where(alias.project_id == project_id, alias.fingerprint.in_(some))
        found |= {row.fingerprint: row.known_as for row in transaction.execute(query)}
    return found


def _delete_aliases(transaction: Transaction, project_id: int, fingerprints: Sequence[str]) -> None:
    alias = finding_group_alias.c
    for some in _cut_list(fingerprints):
        transaction.execute(
            sa.delete(finding_group_alias).where(alias.project_id == project_id, alias.fingerprint.in_(some))
        )


def _load_grouped(transaction: Transaction, project_id: int, fingerprints: Iterable[str]) -> set[str]:
    group = finding_group.c
    found: set[str] = set()
    for some in _cut_list(fingerprints):
        query = sa.select(group.fingerprint).where(group.project_id == project_id, group.fingerprint.in_(some))
        found.update(transaction.execute(query).scalars())
    return found


def _find_moved(
    transaction: Transaction, project_id: int, run_id: int, findings: Sequence[Finding]
) -> Iterable[tuple[str, str]]:
    """Find the group that each of these findings moved out of: (fingerprint of the finding, of the group)."""
    keys = {finding.fingerprint: fingerprint_without_path(finding) for finding in findings}
    once = {key for key, times in Counter(keys.values()).items() if key is not None and times == 1}
    program = _load_program(transaction, run_id) if once else None
    if program is None:
        return
    entry, files = program
    groups = _load_candidates(transaction, project_id, entry, once)
    for finding in findings:
        key, path = keys[finding.fingerprint], finding.location.path
        line = " ".join(finding.location.text.split())
        left = [group for group in groups if group.key == key and not _has_line(files, group.path, line)]
        if line and path in files and len(left) == 1:
            yield finding.fingerprint, left[0].fingerprint


def _load_program(transaction: Transaction, run_id: int) -> tuple[str, Mapping[str, str | None]] | None:
    """Load the entry and the texts by path, None of a file that is no text; None: it has no names, or is not kept."""
    rows = transaction.execute(_PROGRAM, {"its_run": run_id}).all()
    if not rows or not rows[0].named:
        return None
    return rows[0].entry, {row.path: row.body.decode() if row.is_text else None for row in rows}


def _load_candidates(transaction: Transaction, project_id: int, entry: str, keys: Iterable[str]) -> Sequence[Any]:
    group = finding_group.c
    found: list[Any] = []
    for some in _cut_list(keys):
        query = (
            sa.select(group.fingerprint, group.path, group.fingerprint_without_path.label("key"))
            .join_from(finding_group, run, run.c.id == group.last_run_id)
            .join(snippet, snippet.c.id == run.c.snippet_id)
            .where(group.project_id == project_id, group.fingerprint_without_path.in_(some))
            .join(snippet_file, sa.and_(snippet_file.c.snippet_id == snippet.c.id, snippet_file.c.path == group.path))
            .where(snippet.c.named, snippet.c.entry == entry)
        )
        found += transaction.execute(query)
    return found


def _has_line(files: Mapping[str, str | None], path: str, line: str) -> bool:
    """Return whether the file holds that text, blanks collapsed; of a file that is no text it cannot be ruled out."""
    if path not in files:
        return False
    text = files[path]
    return text is None or line in " ".join(text.split())


def _cut_list(values: Iterable[str]) -> Iterable[list[str]]:
    ordered = sorted(values)
    for start in range(0, len(ordered), _MOST_ASKED):
        yield ordered[start : start + _MOST_ASKED]
