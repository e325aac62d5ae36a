"""Law 2 of the house: a module is named by a noun of the field, and one name means one concept."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service")


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


SMALL_WORDS = listed(
    "about above after against ahead among and apart around as at away back before behind below beneath beside besides between "
    "beyond by during for from in inside into near next of off on onto outside over since than till to toward under until "
    "upon via with within without "
    "all another anybody anything both each either everybody he her his how i it its me mine my neither nobody our ours others "
    "she somebody that their theirs them these they this those us we what when where which who whom whose why you your"
)
"""Prepositions, adverbs of place, pronouns, question words: nowhere in a name."""

VERB_FORMS = listed(
    "aligned asked attest begun bring came capturing compare comparing compiling done drawn find found fetched gave get gets given "
    "gives gone got grown have held hold holds installed judged keep keeps kept left lent let light made make makes met migrate "
    "observed pickled posting put raised reachable reached readable reads refused retained rewrite said saw say says see seen see sees "
    "sending sent set shown sized standing stored swap take taken takes tell tells told took trained transformed unseen untold unused "
    "waiting warned watched watching went were write"
)
"""Verb forms, alone or as the last word of a name. Before a noun a participle is an adjective: `refused_writes`."""

TERMS = {
    "backprobe/rules/analysis/gradients/why_none.py": "the function, the option and the field of the API have this name",
    "backprobe/rules/edits/out_of_place.py": "torch's word for the opposite of in-place",
    "store/database/in_clause.py": "SQL's IN",
}
"""Names with such a word that are terms all the same, each with whose."""

SAME_CONCEPT = {
    "answers": "what is answered over a protocol",
    "app": "the application object of a framework",
    "assets": "the built scripts and styles of a page",
    "audit_findings": "the findings of an audit: stored, answered",
    "audits": "audits: stored, answered, asked for",
    "backward_calls": "backward calls: captured, stored, shown",
    "checks": "the state of each invariant: judged, read, answered",
    "commands": "what a package adds to the command line",
    "comparison": "two runs compared: the view, its answer",
    "completion": "what a thing needs to be whole: rows without numbers, runs that end",
    "deliveries": "posts to webhooks: stored, answered",
    "events": "what happened at a moment of the program: captured, recorded",
    "exports": "a record as files: written, answered",
    "findings": "findings: stored, answered",
    "frames": "pieces of a record: cut, stored",
    "ghosts": "copies of a process that compute its step once more",
    "gradient_checks": "what the check of gradients saw: recorded, shown, read, answered",
    "ranks": "the processes of a distributed job: known, compared, answered",
    "graph": "the autograd graph: recorded, stored, drawn, answered",
    "groups": "groups of findings: stored, answered",
    "health": "whether the service is well: measured, answered",
    "held_graphs": "graphs that outlive their step: as text, on a page",
    "idempotency": "Idempotency-Key: stored, kept in a request",
    "interventions": "hooks, modes, watched calls: recorded, stored",
    "judging": "rules run on a record: of a watched run, of an audit's items",
    "keys": "API keys: stored, answered, made on the command line",
    "metrics": "what Prometheus reads: counted, answered",
    "moments": "moments: captured, asked for, found",
    "nodes": "autograd nodes: captured, stored, answered",
    "operation": "workers, queues, usage: answered, and the answer's shape",
    "operations": "expressions of the program: captured, recorded",
    "optimizers": "optimizers: captured, recorded",
    "options": "what a caller may choose of capture, of judging",
    "parts": "parts of a record: answered, and the answer's shape",
    "policies": "policies of audits: stored, answered",
    "policy": "what a policy says of an item",
    "program": "the program: recorded, stored, handed to a child",
    "projects": "projects: stored, answered",
    "record": "the record: the value, the answer",
    "recorders": "recorders: stored, answered, what goes wrong with them",
    "registry": "what is known by number or code",
    "rejudging": "runs judged again: which are due, and who does it",
    "requests": "requests of the API: sent, and their shapes",
    "rows": "rows of a record's tables: written, read, answered",
    "trials": "runs with a fix in them: judged, stored, answered",
    "rules": "rules and their manuals: answered, listed on the command line",
    "run_events": "what happened to a run: read, answered",
    "run_ids": "ids of runs that clients make: made, checked",
    "runs": "runs: stored, answered",
    "scopes": "scopes of names in a source",
    "server": "what serves: the web process's commands, an editor's and an agent's protocol",
    "settings": "what a process reads from its environment",
    "snapshots": "snapshots: captured, stored, asked for",
    "snippets": "programs as they were sent: stored, answered",
    "spool": "records that could not be sent: kept, and the command on them",
    "statements": "statements of the user's program",
    "steps": "training steps: captured, judged",
    "submission": "a run on its way into the queue: checked, stored",
    "tenants": "tenants: stored, changed on the command line",
    "tensor_states": "the states of tensors at a moment",
    "tensors": "tensors: recorded, stored",
    "text": "a stranger's text, made safe",
    "webhooks": "webhooks: stored, answered",
}
"""Names that modules of several folders have, with the one concept that each stands for."""


def modules(root: Path) -> list[Path]:
    """The named modules of the house, relative; without rules, whose names are what users write."""
    found = [path for name in PACKAGES for path in sorted((root / name).rglob("*.py"))]
    return [
        path.relative_to(root)
        for path in found
        if not path.stem.startswith("__") and "RULE = Rule(" not in path.read_text()
    ]


def is_noun(stem: str) -> bool:
    parts = stem.split("_")
    return parts[-1] not in VERB_FORMS and not SMALL_WORDS.intersection(parts)


def no_nouns(root: Path) -> list[str]:
    return [str(path) for path in modules(root) if not is_noun(path.stem) and str(path) not in TERMS]


def shared_names(root: Path) -> set[str]:
    """Names that more than one module has."""
    stems = [path.stem for path in modules(root)]
    return {stem for stem in stems if stems.count(stem) > 1}


def test_each_module_is_named_by_a_noun():
    assert no_nouns(ROOT) == []


def test_a_term_is_needed_and_there():
    assert [path for path in TERMS if not (ROOT / path).is_file() or is_noun(Path(path).stem)] == []


def test_a_name_that_is_used_twice_means_one_concept():
    assert shared_names(ROOT) - set(SAME_CONCEPT) == set()


def planted(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("RULE = Rule(" if "/rules/" in path else "")


@pytest.mark.parametrize(
    "stem", ["told", "kept", "below", "lines_told", "tensors_at", "swap", "all_of_it", "unseen", "why_late"]
)
def test_a_planted_name_that_is_no_noun_is_seen(tmp_path, stem):
    planted(tmp_path, f"store/{stem}.py", "store/refused_writes.py", "backprobe/rules/leaf/grad_of_it.py")
    assert no_nouns(tmp_path) == [f"store/{stem}.py"]


def test_a_planted_second_meaning_is_seen(tmp_path):
    planted(
        tmp_path,
        "store/claims.py",
        "service/api/claims.py",
        "service/leases.py",
        "store/__init__.py",
        "service/__init__.py",
    )
    assert shared_names(tmp_path) == {"claims"}
