"""The law on wording: names say what a thing is or does, modules are named by nouns, texts have no listed phrase."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service", "bench", "docs", "tests")
"""In the first four, modules are named by nouns and functions by more than a participle."""


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PARTICIPLES = word_set(
    "told kept held given asked said met wanted seen left gone taken got made found known shown sent drawn heard "
    "lent lost named called listed counted stored written judged noted marked chosen opened closed begun ended "
    "answered refused passed"
)
PREPOSITIONS = word_set(
    "below beside above before after between behind inside outside within without under until upon among beyond "
    "of at in on over for with from by about"
)
BANNED = PARTICIPLES | PREPOSITIONS | word_set("one other others")
"""Such a word says nothing as the whole name of a function, a method, a class or a module."""

NOWHERE_IN_A_MODULE_NAME = PREPOSITIONS | word_set(
    "against ahead and apart around as away back beneath besides during into near next off onto since than till to toward via "
    "all another anybody anything both each either everybody he her his how i it its me mine my neither nobody our ours others "
    "she somebody that their theirs them these they this those us we what when where which who whom whose why you your"
)
"""Prepositions, adverbs of place, pronouns, question words."""

NOT_LAST_IN_A_MODULE_NAME = PARTICIPLES | word_set(
    "aligned attest bring came capturing compare comparing compiling done fetched find gave get gets gives grown have hold "
    "holds installed keep keeps let light make makes migrate observed pickled posting put raised reachable reached readable "
    "reads retained rewrite saw say says see sees sending set sized standing swap take takes tell tells took trained "
    "transformed unseen untold unused waiting warned watched watching went were write"
)
"""Verb forms. Before a noun a participle is an adjective: `refused_writes`."""

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

PHRASES = (
    *("of ours", "of its own", "who asks", "mend", "nothing holds", "is told", "are told", "anew", "as asked"),
    *("heard of", "stands in", "comes of"),
)
PHRASE = re.compile(rf"\b({'|'.join(PHRASES)})\b")
DEFINITION = re.compile(r"\b(?:def|class) +(\w+)")
IN_ED = re.compile(r"_*(?!received$)[a-z]+[^e]ed_*")  # `received` is a method of waitress
NOT_VERBS = {"property", "cached_property", "bool"}
VARIABLE_ONE = re.compile(r"\bone\b *(?:[,:=)]|in\b)")
EXEMPT_FOLDERS = word_set("programs corpus seeds hostile real_programs snippets public second node_modules")
"""Folders of programs under test, which are as users write them, and of packages."""

TEMPLATES = ("service/dashboard/templates/**/*.html", "service/dashboard/web/src/**/*.ts*")


def is_banned(name: str) -> bool:
    return name.strip("_").removesuffix("_of").lower() in BANNED


def named_modules(root: Path) -> list[Path]:
    """Return the modules of the packages, relative; without rules, whose names are what users write."""
    paths = [path for package in PACKAGES[:4] for path in sorted((root / package).rglob("*.py"))]
    paths = [path for path in paths if "RULE = Rule(" not in path.read_text()]
    return [path.relative_to(root) for path in paths if not path.stem.startswith("__")]


def is_noun(stem: str) -> bool:
    words = stem.split("_")
    return words[-1] not in NOT_LAST_IN_A_MODULE_NAME and not NOWHERE_IN_A_MODULE_NAME.intersection(words)


def modules_without_noun(root: Path) -> list[str]:
    return [str(path) for path in named_modules(root) if not is_noun(path.stem) and str(path) not in TERMS]


def shared_names(root: Path) -> set[str]:
    """Return the names that more than one module has."""
    return {stem for stem, count in Counter(path.stem for path in named_modules(root)).items() if count > 1}


def may_breach(text: str) -> bool:
    """Return whether a module can have a banned name or a variable `one`."""
    names = DEFINITION.findall(text)
    return VARIABLE_ONE.search(text) is not None or any(is_banned(name) or IN_ED.fullmatch(name) for name in names)


def banned_names(tree: ast.AST) -> list[tuple[int, str]]:
    """Return line and name of each function and class whose name is a banned word alone."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [(node.lineno, node.name) for node in ast.walk(tree) if isinstance(node, kinds) and is_banned(node.name)]


def participles(tree: ast.AST) -> list[tuple[int, str]]:
    """Return line and name of each function that is no property, returns no bool and is named by a word in -ed alone."""
    return [
        (node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and IN_ED.fullmatch(node.name)
        and not {ast.unparse(item) for item in [*node.decorator_list, node.returns] if item is not None} & NOT_VERBS
    ]  # fmt: skip


def variables_one(tree: ast.AST) -> list[tuple[int, str]]:
    """Return each binding of `one`: loops, comprehensions, assignments, parameters of functions and lambdas."""
    return [
        (node.lineno, "one")
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "one" and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.arg) and node.arg == "one")
    ]


def phrases(text: str) -> list[tuple[int, str]]:
    """Return the listed phrases; no code has such words outside comments, docstrings and strings."""
    text = text.lower()
    if not any(phrase in text for phrase in PHRASES):
        return []
    return [(n, match.group()) for n, line in enumerate(text.splitlines(), 1) for match in PHRASE.finditer(line)]


def sources(root: Path) -> list[Path]:
    """Return the modules under the law. The rules are exempt as a folder."""
    rules = root / "backprobe" / "rules"
    this = root / "tests" / "laws" / "test_wording.py"  # it quotes what it forbids
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    paths = [path for path in paths if rules not in path.parents and path != this]
    return [path for path in paths if not EXEMPT_FOLDERS.intersection(path.relative_to(root).parts)]


def breaches(root: Path) -> tuple[list[str], list[str], list[str]]:
    """Return banned names, variables `one` and phrases, as `path:line text`."""
    found: tuple[list[str], list[str], list[str]] = ([], [], [])

    def add(path: Path, kind: int, places: list[tuple[int, str]]) -> None:
        found[kind].extend(f"{path.relative_to(root)}:{line} {text}" for line, text in places)

    for path in sources(root):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if may_breach(text) else "")  # parsing all modules takes seconds
        add(path, 0, banned_names(tree) + ([(1, path.stem)] if is_banned(path.stem) else []))
        add(path, 0, participles(tree) if path.relative_to(root).parts[0] in PACKAGES[:4] else [])
        add(path, 1, variables_one(tree))
        add(path, 2, phrases(text))
    for pattern in TEMPLATES:
        for path in sorted(root.glob(pattern)):
            add(path, 2, phrases(path.read_text(encoding="utf-8")))
    return found


def test_no_package_has_a_breach():
    assert breaches(ROOT) == ([], [], [])


def test_each_module_is_named_by_a_noun():
    assert modules_without_noun(ROOT) == []


def test_a_term_is_needed_and_exists():
    assert [path for path in TERMS if not (ROOT / path).is_file() or is_noun(Path(path).stem)] == []


def test_a_name_that_several_modules_have_means_one_concept():
    assert shared_names(ROOT) == set(SAME_CONCEPT)


def plant(root: Path, *paths: str, text: str = "") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def told(): ...", (1, 0, 0)),
        ("class A:\n    def _held(self): ...", (1, 0, 0)),
        ("async def heard_of(): ...", (1, 0, 0)),
        ("class Kept: ...", (1, 0, 0)),
        ("def _rendered(x) -> str: ...", (1, 0, 0)),
        ("class A:\n    @property\n    def expired(self) -> int: ...\n    def started(self) -> bool: ...", (0, 0, 0)),
        ("for one in range(3): ...", (0, 1, 0)),
        ("x = [one for one in y]", (0, 1, 0)),
        ("sorted(x, key=lambda one: one.n)", (0, 1, 0)),
        ("def show(one): ...", (0, 1, 0)),
        ('"""A bug of ours."""', (0, 0, 1)),
        ("x = 1  # read anew", (0, 0, 1)),
        ('raise ValueError("Mend it.")', (0, 0, 1)),
        ("def finding_to_json(): ...\nfor finding in x: ...", (0, 0, 0)),
    ],
)
def test_a_planted_breach_is_found(tmp_path, text, expected):
    plant(tmp_path, "store/cases.py", text=text)
    assert tuple(map(len, breaches(tmp_path))) == expected


def test_a_planted_module_name_is_found(tmp_path):
    plant(tmp_path, "store/told.py")
    assert breaches(tmp_path)[0] == ["store/told.py:1 told"]


@pytest.mark.parametrize("stem", ["told", "below", "lines_told", "tensors_at", "swap", "all_of_it", "why_late"])
def test_a_planted_module_name_without_a_noun_is_found(tmp_path, stem):
    plant(tmp_path, f"store/{stem}.py", "store/refused_writes.py")
    plant(tmp_path, "backprobe/rules/leaf/grad_of_it.py", text="RULE = Rule(")
    assert modules_without_noun(tmp_path) == [f"store/{stem}.py"]


def test_a_planted_second_meaning_is_found(tmp_path):
    plant(tmp_path, *("store/claims.py", "service/api/claims.py", "store/leases.py"))
    plant(tmp_path, "store/__init__.py", "service/__init__.py")
    assert shared_names(tmp_path) == {"claims"}


def test_the_rules_alone_are_exempt(tmp_path):
    plant(tmp_path, "backprobe/rules/leaf/cases.py", "backprobe/rulesets/cases.py", text="def told(): ...")
    assert breaches(tmp_path) == (["backprobe/rulesets/cases.py:1 told"], [], [])


def test_a_planted_phrase_in_a_template_is_found(tmp_path):
    plant(tmp_path, "service/dashboard/templates/run.html", text="<p>\nCanceled, as asked</p>")
    assert breaches(tmp_path)[2] == ["service/dashboard/templates/run.html:2 as asked"]
