"""The audits' pages: verdicts in words, programs worst first, page by page; a stranger's text is no markup."""

from __future__ import annotations

import dataclasses
import html
import re
import uuid
from urllib.parse import urlencode

import pytest
from sqlalchemy import event, select

from backprobe.rules.framework.judge import NotRun
from backprobe.rules.framework.manual import manual
from service.dashboard.audits import audits_page
from store.audits import items, judging
from store.tables import audit as audit_table
from store.tables import project


def ask(site, method, path, status, **more):
    answer = site.client.open(path, method=method, **more)
    assert answer.status_code == status, answer.text
    return answer


def words(site, path, status=200):
    """What stands on a page, and its markup."""
    text = ask(site, "GET", path, status, headers={"Accept": "text/html"}).text
    body = text.partition("<main")[2].partition("</main>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", body).split()), text


@pytest.fixture
def audited(site, samples):
    """Makes an audit of programs by name, each with its status and record: judged."""

    def audit_programs(programs, **more):
        items = [{"custom_id": name, "source": samples.TUTORIAL} for name in programs]
        audit = ask(site, "POST", "/v1/audits", 202, json={"items": items, **more}).json["id"]
        for item in ask(site, "GET", f"/v1/audits/{audit}/items", 200).json["items"]:
            site.finish(item["run"], samples.tutorial(), **programs[item["custom_id"]])
        judging.settle(site.context.database)
        return audit

    return audit_programs


def test_before_the_first_audit_the_page_says_how_to_begin_one(site):
    assert "Nothing was audited yet." in words(site, "/audits")[0]
    assert "No audit matches the filter." in words(site, "/audits?verdict=failed")[0]


def test_the_list_tells_verdicts_and_is_filtered_and_paged(site, audited):
    first = audited({"a": {}}, name="nightly", labels={"commit": "c0ffee"})
    failed = audited({"b": {"status": "failed", "exit_code": 1}}, name="broken")
    said, _ = words(site, "/audits")
    assert re.search(r"failed broken 1 1 .*passed nightly commit: c0ffee 1 1 ", said)
    said, _ = words(site, "/audits?verdict=failed")
    assert "broken" in said
    assert "nightly" not in said
    _, text = words(site, "/audits?limit=1")
    following = re.search(r'href="([^"]+)" rel="next"', text)
    assert following is not None
    said, text = words(site, html.unescape(following[1]))
    assert "nightly" in said
    assert "broken" not in said
    assert f'href="/audits/{first}"' in text
    assert failed not in text


def test_an_audits_page_tells_its_programs_worst_first_with_their_rules(site, audited):
    policy = ask(site, "POST", "/v1/policies", 201, json={"name": "of the page", "fail": ["BP1"]}).json["id"]
    audit = audited({"fine.py": {"judgement": None}, "bad.py": {}}, policy=policy)
    said, text = words(site, f"/audits/{audit}")
    assert "fails by BP1" in said
    assert "policy revision 1" in said
    assert "project default by" in said
    assert said.index("bad.py warning 1") < said.index("fine.py")
    assert "1 fail, 1 not-run; 1 new finding." in said
    run = ask(site, "GET", f"/v1/audits/{audit}/items?custom_id=bad.py", 200).json["items"][0]["run"]
    assert f'href="/runs/{run}"' in text
    words(site, "/audits/aud_01JD8PZ4T8W2K5C7Q9R3M6X1BA", 404)


def test_an_audit_that_goes_on_says_what_it_waits_for(site, samples):
    items = [{"custom_id": "a", "source": samples.TUTORIAL}, {"custom_id": "b", "source": "x = ("}]
    audit = ask(site, "POST", "/v1/audits", 202, json={"items": items}).json["id"]
    said, _ = words(site, f"/audits/{audit}")
    assert "2, 1 to come" in said
    assert "It is judged when its last program has ended." in said
    assert "queued a" in said
    assert re.search("not-run b .*line 1", said)
    ask(site, "POST", f"/v1/audits/{audit}/cancel", 202)
    assert "It was canceled before it was judged." in words(site, f"/audits/{audit}")[0]


def test_many_programs_come_page_by_page(site, audited, monkeypatch):
    monkeypatch.setattr(audits_page, "ITEMS", 2)
    audit = audited({name: {} for name in ("a.py", "b.py", "c.py")})
    said, text = words(site, f"/audits/{audit}")
    assert ("b.py" in said, "c.py" in said) == (True, False)
    following = re.search(r'href="([^"]+)" rel="next"', text)
    assert following is not None
    said, text = words(site, html.unescape(following[1]))
    assert ("b.py" in said, "c.py" in said) == (False, True)
    assert 'rel="next"' not in text


def test_a_strangers_text_is_no_markup(site, audited):
    bad = "<script>alert(1)</script>"
    audited({"first": {}}, name=bad)
    audit = audited({bad: {}}, name=bad, labels={"k": bad})
    for path in (
        "/audits",
        f"/audits/{audit}",
        f"/audits/{audit}?cell=0.non-leaf-grad-read",
        f"/audits/{audit}?file=%3C",
    ):
        said, text = words(site, path)
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in said


def cells(text):
    """What the matrix says, by program and rule; words without markup."""
    table = re.search(r'<table class="list stacks matrix-plain">(.*?)</table>', text, re.DOTALL)
    assert table is not None
    rules = re.findall(r'<th scope="col"><a href="/rules/([a-z0-9-]+)">', table[1])
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table[1].partition("<tbody>")[2], re.DOTALL):
        name = re.search(r'<th scope="row" class="cut">(.*?)</th>', row, re.DOTALL)
        assert name is not None
        row_words = [
            " ".join(re.sub(r"<[^>]*>", " ", cell).split())
            for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        ]
        found[re.sub(r"<[^>]*>", " ", name[1]).split()[0]] = dict(zip(rules, row_words[1:], strict=False))
    return found


@pytest.fixture
def matrix(audited, samples):
    """An audit of three programs: of two rules, of one, and of none."""
    return audited(
        {
            "jobs/a.py": {"judgement": samples.make_judgement("BP101", "BP101", "BP230")},
            "jobs/b.py": {"judgement": samples.make_judgement("BP101")},
            "other.py": {"judgement": samples.make_judgement()},
        },
        name="matrix",
    )


def test_a_cell_says_level_and_count_and_the_program_that_fails_comes_first(site, matrix, samples):
    _, text = words(site, f"/audits/{matrix}")
    error = manual("BP230").rule.name
    assert list(cells(text)) == ["jobs/a.py", "jobs/b.py", "other.py"]
    assert cells(text) == {
        "jobs/a.py": {"non-leaf-grad-read": "warning 2", error: "error 1"},
        "jobs/b.py": {"non-leaf-grad-read": "warning 1", error: ""},
        "other.py": {"non-leaf-grad-read": "", error: ""},
    }
    (failing,) = re.findall(r'<td data-label="([^"]+)" class="tight fails">', text)
    assert failing == error


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ({"level": "error"}, {"jobs/a.py": 1}),
        ({"level": "warnings"}, {"jobs/a.py": 1, "jobs/b.py": 1}),
        ({"rule": "bp101"}, {"jobs/a.py": 1, "jobs/b.py": 1}),
        ({"rule": "non_leaf_grad_read", "file": "B.PY"}, {"jobs/b.py": 1}),
        ({"file": "jobs/"}, {"jobs/a.py": 2, "jobs/b.py": 2}),
        ({"file": "%"}, {}),
    ],
)
def test_the_matrix_is_filtered_on_the_page_and_in_the_api_alike(site, matrix, typed, shown):
    answer = site.client.get(f"/audits/{matrix}", query_string=typed)
    assert answer.status_code == 200
    if not shown:
        assert "No program matches the filter." in answer.text
    else:
        assert {name: len(row) for name, row in cells(answer.text).items()} == shown
    (path,) = re.findall(r'data-path="([^"]+)"', answer.text) or [None]
    if path is not None:
        told = site.client.get(f"/v1/audits/{html.unescape(path)}").json
        assert {item["custom_id"]: len(told["rules"]) for item in told["items"]} == shown


@pytest.mark.parametrize("typed", [{"rule": "no-such-rule"}, {"level": "fatal"}, {"file": "a\x1b"}])
def test_a_filter_that_cannot_be_read_keeps_the_form_and_shows_the_matrix(site, matrix, typed):
    answer = site.client.get(f"/audits/{matrix}", query_string=typed)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert len(cells(answer.text)) == 3


def test_the_matrix_of_the_api_says_level_and_count_and_who_was_not_judged(site, samples, audited):
    audit = audited({"a.py": {"judgement": samples.make_judgement("BP101", "BP101")}, "b.py": {"judgement": None}})
    first, second = ask(site, "GET", f"/v1/audits/{audit}/matrix", 200).json["items"]
    assert (first["judged"], first["findings"], first["levels"], first["known"]) == (
        True, {"non-leaf-grad-read": 2}, {"non-leaf-grad-read": "warning"}, {},
    )  # fmt: skip
    assert (second["judged"], second["states"], second["levels"]) == (False, {}, {})
    _, text = words(site, f"/audits/{audit}")
    assert '<td colspan="1" class="not-run">not run</td>' in text


def test_a_cell_leads_to_its_findings_with_message_and_line(site, matrix):
    _, text = words(site, f"/audits/{matrix}?file=jobs")
    (address,) = re.findall(r'href="([^"]+)#cell" aria-label="jobs/a.py, non-leaf-grad-read: 2 warnings"', text)
    said, text = words(site, html.unescape(address))
    shown = text.partition('id="cell"')[2]
    assert shown.count("<h3>non-leaf-grad-read</h3>") == 2
    run = ask(site, "GET", f"/v1/audits/{matrix}/items?custom_id=jobs/a.py", 200).json["items"][0]["run"]
    assert f'href="/runs/{run}?file=snippet.py&from=1#L5"' in html.unescape(shown)
    (message, _) = (
        item["message"] for item in ask(site, "GET", f"/v1/runs/{run}/findings?rule=BP101", 200).json["items"]
    )
    assert message.split("`")[0].strip()[:40] in said
    assert len(cells(text)) == 2, "the filter stays"
    for nothing in ("0.none-such", "9.non-leaf-grad-read", "2.non-leaf-grad-read", "x", "0", "99999999999.a"):
        assert 'id="cell"' not in words(site, f"/audits/{matrix}?cell={nothing}")[1], nothing


def test_a_cell_with_many_findings_has_a_way_on(site, matrix, monkeypatch):
    monkeypatch.setattr(audits_page, "MOST_CARDS", 1)
    said, _ = words(site, f"/audits/{matrix}?cell=0.non-leaf-grad-read")
    assert "The run has more findings of this rule: all of them ." in said


def test_an_audit_too_large_for_one_table_says_so_and_is_paged(site, matrix, monkeypatch):
    assert "data-island" in words(site, f"/audits/{matrix}")[1]
    monkeypatch.setattr(audits_page, "MOST_IN_ISLAND", 2)
    said, text = words(site, f"/audits/{matrix}")
    assert "The audit has 3 programs, more than the 2 that are shown in one table: here are pages of them." in said
    assert "data-island" not in text


def test_findings_are_compared_with_the_last_audit_of_the_same_name(site, audited, samples, matrix):
    assert "This project has no earlier audit of this name" in words(site, f"/audits/{matrix}")[0]
    audited({"jobs/a.py": {}}, name="of another name")
    programs = {
        "jobs/a.py": {"judgement": samples.make_judgement("BP101", "BP102")},
        "jobs/b.py": {"judgement": samples.make_judgement(), "status": "failed", "exit_code": 1},
        "new.py": {"judgement": samples.make_judgement()},
    }
    second = audited(programs, name="matrix")
    told = ask(site, "GET", f"/v1/audits/{second}/changes", 200).json
    assert told["before"]["id"] == matrix
    other, error = manual("BP102").rule.name, manual("BP230").rule.name
    counts = {rule["rule"]: (rule["new"], rule["fixed"], rule["unchanged"]) for rule in told["rules"]}
    # the second BP101 of a.py is gone from a program that ended well; so is the error
    assert counts == {other: (1, 0, 0), error: (0, 1, 0), "non-leaf-grad-read": (0, 1, 1)}
    assert (told["new"], told["fixed"], told["unchanged"]) == (1, 2, 1)
    said, text = words(site, f"/audits/{second}")
    assert "Since the last audit of this name 1 new, 2 fixed, 1 unchanged" in said
    assert "Compared with the audit matrix of the same project" in said
    assert f'href="/audits/{matrix}"' in text
    third = audited(
        {"jobs/a.py": {"judgement": samples.make_judgement(), "status": "failed", "exit_code": 1}}, name="matrix"
    )
    told = ask(site, "GET", f"/v1/audits/{third}/changes", 200).json
    assert (told["before"]["id"], told["fixed"]) == (second, 0)


def test_an_audit_of_another_tenant_or_project_is_not_compared_and_not_shown(site, two, matrix, audited, samples):
    elsewhere = other_project(site)
    with site.context.database.begin() as transaction:
        transaction.execute(audit_table.update().where(audit_table.c.public_id == matrix).values(project_id=elsewhere))
    second = audited({"jobs/a.py": {"judgement": samples.make_judgement()}}, name="matrix")
    assert ask(site, "GET", f"/v1/audits/{second}/changes", 200).json["before"] is None
    for path in (f"/v1/audits/{second}/changes", f"/v1/audits/{second}/matrix", f"/audits/{second}?cell=0.a"):
        ask(site, "GET", path, 404, headers=two[1])


def other_project(site):
    made = ask(site, "POST", "/v1/projects", 201, json={"name": uuid.uuid4().hex}).json["id"]
    with site.context.database.read() as reading:
        return reading.execute(select(project.c.id).where(project.c.public_id == made)).scalar_one()


def programs_of(text):
    """Names of the programs in the matrix; none: the page says that no program matches."""
    return [] if "No program matches the filter." in text else [*cells(text)]


@pytest.fixture
def statements(site):
    """The statements that a request makes, with their values."""
    made = []

    def note(_connection, _cursor, statement, values, *_more):
        made.append((statement, str(values)))

    event.listen(site.context.database.engine, "before_cursor_execute", note)
    yield made
    event.remove(site.context.database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize(
    "address",
    [
        "/audits/{}",
        "/audits/{}?level=note",
        "/audits/{}?rule=BP230",
        "/audits/{}?file=py",
        "/v1/audits/{}/matrix",
        "/v1/audits/{}/matrix?rule=no-such-rule&matching=true",
        "/v1/audits/{}/matrix?ruleset={ruleset}",
        "/v1/audits/{}/items?verdict=error",
        "/v1/audits/{}/items?format=csv",
        "/v1/audits/{}/findings?format=junit",
        "/v1/audits/{}/findings?format=ndjson",
    ],
)
def test_no_question_about_an_audit_is_asked_again_for_each_batch_of_its_items(
    site, audited, matrix, statements, monkeypatch, address
):
    policy = ask(site, "POST", "/v1/policies", 201, json={"name": uuid.uuid4().hex, "fail": ["BP1"]}).json["id"]
    audit = audited({name: {} for name in ("a.py", "b.py", "c.py")}, baseline=matrix, policy=policy)
    ruleset = ask(site, "GET", f"/v1/audits/{audit}", 200).json["ruleset"]
    monkeypatch.setattr(items, "AT_ONCE", 1)
    del statements[:]
    assert ask(site, "GET", address.format(audit, ruleset=ruleset), 200).data
    asked = [made for made in statements if re.search("FROM (audit|policy|finding|record)", made[0])]
    assert len(asked) > 0
    assert [made for made in asked if asked.count(made) > 1] == []


@pytest.mark.parametrize(
    ("level", "rule", "found"),
    [
        ("", "BP230", ["jobs/a.py", "lacking.py"]),
        ("", "BP101", ["jobs/a.py", "jobs/b.py", "lacking.py"]),
        ("error", "", ["jobs/a.py"]),
        ("error", "BP101", []),
        ("note", "", []),
    ],
)
def test_a_filter_of_the_matrix_reads_only_the_programs_that_match(
    site, audited, samples, statements, monkeypatch, level, rule, found
):
    name = manual(rule).rule.name if rule else ""
    judged = samples.make_judgement("BP101")
    lacking = dataclasses.replace(
        judged, not_run=(NotRun(code="BP230", name=manual("BP230").rule.name, why="no fact"),)
    )
    programs = {
        "jobs/a.py": samples.make_judgement("BP101", "BP101", "BP230"),
        "jobs/b.py": judged,
        "lacking.py": lacking,
        "other.py": samples.make_judgement(),
        "others.py": samples.make_judgement(),
    }
    audit = audited({program: {"judgement": judgement} for program, judgement in programs.items()})
    monkeypatch.setattr(items, "AT_ONCE", 1)
    asked = {key: value for key, value in {"level": level, "rule": name}.items() if value}
    for path in (f"/v1/audits/{audit}/matrix?matching=true&", f"/audits/{audit}?"):
        del statements[:]
        answer = ask(site, "GET", path + urlencode(asked), 200)
        batches = sum("FROM audit_item LEFT OUTER JOIN run" in statement for statement, _ in statements)
        assert batches == len(found) + 1, path
        shown = [item["custom_id"] for item in answer.json["items"]] if answer.is_json else programs_of(answer.text)
        assert sorted(shown) == found, path
