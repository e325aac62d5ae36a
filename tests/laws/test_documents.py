"""Documents name what is there: paths, words, folder READMEs."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "CHANGELOG.md")
FOLDERS_WITH_A_LAW = (
    "backprobe/capture",
    "backprobe/record",
    "backprobe/rules",
    "backprobe/show",
    "backprobe/cli",
    "store",
    "workers",
    "workers/broker",
    "workers/sandbox",
    "service",
    "service/api",
    "service/dashboard",
    "migrations",
    "bench",
    "news",
    "tests",
)
MOST_README_LINES = 14
"""A title, a blank line, about six sentences; not a manual."""

TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
DOCUMENTS = {Path(path).name for path in TRACKED if path.endswith(".md")}

PATH = re.compile(
    r"`((?:backprobe|store|workers|service|migrations|bench|docs|tests|news|\.ci)(?:/[\w.*-]+)*/?|[\w.-]+\.(?:md|toml|txt|yml))`"
)


def paths_named(text: str) -> set[str]:
    """Paths of the repository that a text names between backticks; a placeholder with * or NNNN is none."""
    return {path for path in PATH.findall(text) if "*" not in path and "NNNN" not in path}


def missing_paths(root: Path, text: str) -> set[str]:
    return {path for path in paths_named(text) if not (root / path).exists()}


def made_by_git_or_run(path: str) -> bool:
    """Paths that a run makes, which a fresh clone does not have."""
    return path.startswith((".venv", "bench/results"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_paths_that_exist(page):
    missing = {path for path in missing_paths(ROOT, (ROOT / page).read_text()) if not made_by_git_or_run(path)}
    assert missing == set()


def test_a_path_that_is_gone_is_seen():
    assert missing_paths(ROOT, "see `store/gone.py` and `store`") == {"store/gone.py"}


def documents_missing(source: str) -> set[str]:
    """Documents that a source file names and no folder holds; told by their last name, as prose gives it."""
    named = re.findall(r"\b[\w-]+\.md\b", source)
    return {name for name in named if name not in DOCUMENTS}


@pytest.mark.parametrize("package", ["backprobe", "store", "workers", "service", "migrations", "bench"])
def test_a_source_file_names_only_documents_that_exist(package):
    paths = [path for ending in ("py", "c", "h", "html", "css", "js") for path in (ROOT / package).rglob(f"*.{ending}")]
    missing = {str(path.relative_to(ROOT)): documents_missing(path.read_text()) for path in paths}
    assert {path: names for path, names in missing.items() if names} == {}


def test_a_document_that_is_gone_is_seen():
    assert documents_missing("Source: plan-of-june.md, 2.7, and ARCHITECTURE.md") == {"plan-of-june.md"}


@pytest.mark.parametrize("folder", FOLDERS_WITH_A_LAW)
def test_a_folder_with_a_law_says_it_in_its_readme(folder):
    readme = ROOT / folder / "README.md"
    assert readme.is_file(), folder
    lines = readme.read_text().splitlines()
    assert lines[0].startswith(("# ", "## ")), folder
    assert 3 <= len(lines) <= MOST_README_LINES, folder


HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]*`")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = HEADING.findall(FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(root: Path, page: str) -> list[str]:
    """Links of a page that lead to no file, or to no heading of it; addresses of the web are not followed."""
    prose = CODE.sub("", FENCED.sub("", (root / page).read_text()))
    broken = []
    for link in LINK.findall(prose):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (root / page).parent / path if path else root / page
        wrong_anchor = (
            anchor and target.suffix == ".md" and target.is_file() and anchor not in anchors(target.read_text())
        )
        if not target.exists() or wrong_anchor:
            broken.append(link)
    return broken


def test_a_link_of_a_document_leads_to_a_file_and_a_heading():
    broken = {path: broken_links(ROOT, path) for path in TRACKED if path.endswith(".md")}
    assert {path: links for path, links in broken.items() if links} == {}


def test_a_broken_link_is_seen(tmp_path):
    (tmp_path / "b.md").write_text("# One `word`, two\n")
    (tmp_path / "a.md").write_text(
        "[a](b.md) [b](b.md#one-word-two) [c](gone.md) [d](b.md#gone) [e](https://x.y/z) `[f](g)`\n"
    )
    assert broken_links(tmp_path, "a.md") == ["gone.md", "b.md#gone"]


@pytest.mark.parametrize(
    ("page", "most_lines", "most_bytes"),
    [("README.md", 149, None), ("docs/accuracy.md", 40, None), ("docs/how-it-works.md", None, 8000)],
)
def test_a_page_that_is_read_first_stays_short(page, most_lines, most_bytes):
    text = (ROOT / page).read_text()
    assert most_lines is None or len(text.splitlines()) <= most_lines
    assert most_bytes is None or len(text.encode()) <= most_bytes


def test_the_index_of_decisions_lists_each_page_and_marks_ten():
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text()
    assert re.findall(r"^\| .*?\((0.*?\.md)\)", index, re.MULTILINE) == sorted(
        page.name for page in folder.glob("0*.md")
    )
    assert len(re.findall(r"^\| \*\*", index, re.MULTILINE)) == 10


def test_the_tree_of_the_architecture_is_the_tree():
    tree = re.search(r"## The tree\n\n```\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text(), re.DOTALL)[1]
    named: set[str] = set()
    parents: list[tuple[int, str]] = []
    for line in tree.splitlines():
        if match := re.match(r"( *)([\w./-]+)", line):
            depth, name = len(match[1]), match[2]
            while parents and parents[-1][0] >= depth:
                parents.pop()
            full = (parents[-1][1] if parents else "") + name
            named.add(full)
            if name.endswith("/"):
                parents.append((depth, full))
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    top = {path.split("/")[0] + "/" for path in TRACKED if "/" in path and not path.startswith(".git")}
    assert top <= {path.split("/")[0] + "/" for path in named if "/" in path}


def test_decisions_are_numbered_without_a_gap():
    pages = sorted(path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert [int(name[:4]) for name in pages] == list(range(1, len(pages) + 1))
    for name in pages:
        text = (ROOT / "docs" / "adr" / name).read_text()
        assert text.startswith(f"# {int(name[:4])}. "), name
        assert re.findall(r"^## (.*)", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
            "Alternatives considered",
        ]


def test_a_news_fragment_has_an_issue_and_a_kind():
    kinds = "added|changed|fixed|removed|security"
    odd = [
        p.name
        for p in (ROOT / "news").iterdir()
        if p.name != "README.md" and not re.fullmatch(rf"\d+\.(?:{kinds})(?:\.\d+)?\.md", p.name)
    ]
    assert odd == []
