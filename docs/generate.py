"""Write the generated parts of the documents: references, examples, tables of settings and of measurements.

usage: python -m docs.generate [--check]

`--check` writes nothing and exits 1, naming the files, when what is committed is not what the code says today.
"""

import argparse
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
REFERENCE, API = ROOT / "docs" / "reference", ROOT / "docs" / "api"
README = ROOT / "README.md"
EDITORS = ROOT / "docs" / "how-to" / "language-server.md"
SETTINGS = ROOT / "docs" / "operating" / "settings.md"
SCALE = ROOT / "docs" / "scale.md"
HOW_IT_WORKS, COSTS, RESULTS = ROOT / "docs" / "how-it-works.md", ROOT / "docs" / "costs.md", ROOT / "bench" / "results"
FIGURES, FIGURES_END = "<!-- figures: written by `make docs` from bench/results -->", "<!-- end of figures -->"
EXAMPLE, EXAMPLE_END = "<!-- example: written by `make docs` -->", "<!-- end of example -->"
SCRIPT = """\
import torch

x = torch.ones(3, requires_grad=True)
h = x * 2
loss = h.sum()
loss.backward()
print(h.grad)
"""
NOTICE = "<!-- Written by `make docs`; do not edit. -->"


def rules() -> str:
    """Every rule with its manual, which is the docstring of its file."""
    from backprobe.rules.framework.manual import every_rule, manual
    from backprobe.show.formats.manual_text import markdown

    head = "| code | name | level | confidence | since |\n|---|---|---|---|---|"
    lines = [
        f"| [{rule.code}](#{rule.code.lower()}) | {rule.name} | {rule.severity} | {rule.confidence} | {rule.since} |"
        for rule in every_rule()
    ]
    parts = [f"# Rules\n\n{NOTICE}\n", head, *lines]
    for rule in every_rule():
        told = manual(rule.code)
        parts.append(f"\n## {rule.code}\n\n**{rule.name}**: {told.headline}")
        parts.append(f"\n{markdown(told)}")
    return "\n".join(parts) + "\n"


def database() -> str:
    """Every table and column with its comment."""
    from store.tables import METADATA

    parts = [f"# The database\n\n{NOTICE}\n\nThe same tables on SQLite and PostgreSQL."]
    for table in METADATA.sorted_tables:
        months = " A partition for each month on PostgreSQL." if table.kwargs.get("postgresql_partition_by") else ""
        parts.append(
            f"\n## {table.name}\n\n{table.comment}{months}\n\n| column | type | null | meaning |\n|---|---|---|---|"
        )
        for column in table.columns:
            kind = repr(column.type).split("(", maxsplit=1)[0].lower()
            parts.append(f"| `{column.name}` | {kind} | {'yes' if column.nullable else ''} | {_cell(column.comment)} |")
    return "\n".join(parts) + "\n"


def record() -> str:
    """Every table and field of the record."""
    from docs.record_reference import reference

    return reference(NOTICE)


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


@functools.cache
def openapi() -> str:
    """The OpenAPI document that the service gives at /openapi.json."""
    import tempfile

    from service.app import create_app
    from service.settings import Settings

    with tempfile.TemporaryDirectory() as home:
        client = create_app(Settings.from_environment({"BACKPROBE_HOME": home})).test_client()
        document = json.loads(client.get("/openapi.json", base_url="http://127.0.0.1").data)
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def api() -> dict[Path, Callable[[], str]]:
    """The guide to the API and its pages, by tag of the document."""
    from docs import api_guide, api_reference

    document = json.loads(openapi())
    found: dict[Path, Callable[[], str]] = {
        API / "README.md": lambda: api_guide.page(document, NOTICE),
        API / "models.md": lambda: api_reference.models(document, NOTICE),
    }
    for tag in api_reference.by_tag(document):
        found[API / f"{api_reference.slug(tag)}.md"] = functools.partial(api_reference.page, document, tag, NOTICE)
    return found


def replace_between(text: str, begin: str, end: str, inserted: str) -> str:
    """Return the text with `inserted` between two marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, found, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"the marks {begin!r} and {end!r} must both be in the page")
    return f"{before}{begin}{inserted}{end}{after}"


def readme() -> str:
    """Return the README with what `backprobe run` really prints for the script in it."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "script.py").write_text(SCRIPT)
        command = [sys.executable, "-W", "ignore", "-m", "backprobe", "run", "script.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 1:
        raise RuntimeError(f"`backprobe run` of the README's example ended with {done.returncode}:\n{done.stderr}")
    shown = f"```python\n{SCRIPT}```\n\n```\n$ backprobe run script.py\n{done.stdout}{done.stderr.rstrip()}\n```\n"
    return replace_between(README.read_text(), EXAMPLE, EXAMPLE_END, f"\n{shown}")


def editors() -> str:
    """Return the page of the language server with what an editor really shows behind lines."""
    from docs.editor_frame import with_frame

    return with_frame(EDITORS.read_text())


def settings() -> str:
    """Return the page of settings with the tables of the settings classes."""
    from docs.settings_reference import BEGIN, END, tables

    text = SETTINGS.read_text()
    for name, table in tables().items():
        text = replace_between(text, BEGIN.format(name), END.format(name), f"\n{table}\n")
    return text


def how_it_works() -> str:
    """Return the page with its one table of costs."""
    from docs.cost_table import cost_table

    table = cost_table(RESULTS / "overhead.md")
    return replace_between(HOW_IT_WORKS.read_text(), FIGURES, FIGURES_END, f"\n\n{table}\n\n")


def costs() -> str:
    """Return the page with all tables that `make bench` wrote last."""
    tables = [path.read_text().replace("# ", "### ", 1).rstrip() for path in sorted(RESULTS.glob("*.md"))]
    return replace_between(COSTS.read_text(), FIGURES, FIGURES_END, "\n\n" + "\n\n".join(tables) + "\n\n")


def scale() -> str:
    """Return the plan for many snapshots, with the figures of the bench."""
    from docs.scale_plan import plan

    table = (RESULTS / "store.md").read_text().partition("\n\n")[2].rstrip()
    inserted = f"\n\n{table}\n\n{plan(RESULTS / 'store.md')}\n\n"
    return replace_between(SCALE.read_text(), FIGURES, FIGURES_END, inserted)


FILES: dict[Path, Callable[[], str]] = {
    REFERENCE / "rules.md": rules,
    REFERENCE / "database.md": database,
    REFERENCE / "record.md": record,
    REFERENCE / "openapi.json": openapi,
    README: readme,
    EDITORS: editors,
    SETTINGS: settings,
    HOW_IT_WORKS: how_it_works,
    COSTS: costs,
    SCALE: scale,
}


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something is out of date")
    asked = parser.parse_args()
    for folder in (REFERENCE, API):
        folder.mkdir(exist_ok=True)
    stale = []
    for path, written_by in (FILES | api()).items():
        text, name = written_by(), str(path.relative_to(ROOT))
        if path.is_file() and path.read_text() == text:
            continue
        stale.append(name)
        if not asked.check:
            path.write_text(text)
            print(f"written: {name}")
    if asked.check and stale:
        print(f"out of date: {', '.join(stale)}; `make docs` writes them")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
