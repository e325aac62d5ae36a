"""The audits' pages: verdicts in words, programs worst first, page by page; a stranger's text is no markup."""

from __future__ import annotations

import re

import pytest

from service.dashboard import audits_page
from store.audits import judging


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

    def one(programs, **more):
        items = [{"custom_id": name, "source": samples.TUTORIAL} for name in programs]
        audit = ask(site, "POST", "/v1/audits", 202, json={"items": items, **more}).json["id"]
        for item in ask(site, "GET", f"/v1/audits/{audit}/items", 200).json["items"]:
            site.finish(item["run"], samples.tutorial(), **programs[item["custom_id"]])
        judging.settle(site.context.database)
        return audit

    return one


def test_before_the_first_audit_the_page_says_how_to_begin_one(site):
    assert "Nothing was audited yet." in words(site, "/audits")[0]
    assert "No audit is like that." in words(site, "/audits?verdict=failed")[0]


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
    said, text = words(site, following[1].replace("&amp;", "&"))
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
    assert said.index("bad.py non-leaf-grad-read : fail") < said.index("fine.py")
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
    said, text = words(site, following[1].replace("&amp;", "&"))
    assert ("b.py" in said, "c.py" in said) == (False, True)
    assert 'rel="next"' not in text


def test_a_strangers_text_is_no_markup(site, audited):
    bad = "<script>alert(1)</script>"
    audit = audited({bad: {}}, name=bad, labels={"k": bad})
    for path in ("/audits", f"/audits/{audit}"):
        said, text = words(site, path)
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in said
