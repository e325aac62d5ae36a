"""The generated part of the documents: `docs/reference/*`, `docs/api/*`, the README's example, the measured figures.

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
SCALE = ROOT / "docs" / "scale.md"
HOW_IT_WORKS, RESULTS = ROOT / "docs" / "how-it-works.md", ROOT / "bench" / "results"
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


def readme() -> str:
    """The README with what `backprobe run` really prints for the script in it."""
    import subprocess
    import tempfile

    from docs.editor_frame import with_frame

    text = README.read_text()
    before, _, rest = text.partition(EXAMPLE)
    _, _, after = rest.partition(EXAMPLE_END)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "script.py").write_text(SCRIPT)
        command = [sys.executable, "-W", "ignore", "-m", "backprobe", "run", "script.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 1:
        raise RuntimeError(f"`backprobe run` of the README's example ended with {done.returncode}:\n{done.stderr}")
    shown = f"```python\n{SCRIPT}```\n\n```\n$ backprobe run script.py\n{done.stdout}{done.stderr.rstrip()}\n```\n"
    return with_frame(f"{before}{EXAMPLE}\n{shown}{EXAMPLE_END}{after}")


def how_it_works() -> str:
    """The page with the tables that `make bench` wrote last."""
    before, _, rest = HOW_IT_WORKS.read_text().partition(FIGURES)
    _, _, after = rest.partition(FIGURES_END)
    tables = [path.read_text().replace("# ", "### ", 1).rstrip() for path in sorted(RESULTS.glob("*.md"))]
    return "\n\n".join([f"{before}{FIGURES}", *tables, f"{FIGURES_END}{after}"])


def scale() -> str:
    """The plan for many snapshots, on what the bench measured."""
    from docs.scale_plan import plan

    before, _, rest = SCALE.read_text().partition(FIGURES)
    _, _, after = rest.partition(FIGURES_END)
    table = (RESULTS / "store.md").read_text().partition("\n\n")[2].rstrip()
    return "\n\n".join([f"{before}{FIGURES}", table, plan(RESULTS / "store.md"), f"{FIGURES_END}{after}"])


FILES: dict[Path, Callable[[], str]] = {
    REFERENCE / "rules.md": rules,
    REFERENCE / "database.md": database,
    REFERENCE / "record.md": record,
    REFERENCE / "openapi.json": openapi,
    README: readme,
    HOW_IT_WORKS: how_it_works,
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
