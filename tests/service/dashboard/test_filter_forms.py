"""Any text in a filter of a page, from its form or from the address, is answered or explained; none is a 500."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from backprobe.rules.framework.manual import every_rule

PAGE = {"Accept": "text/html"}
WORDS = {
    "rule": "BP101",
    "level": "error",
    "state": "open",
    "status": "succeeded",
    "owner": "me",
    "project": "default",
    "since": "7d",
    "days": "30",
    "label": "team=vision",
    "stat": "grad_norm",
    "show": "parameters",
    "cell": "0.non-leaf-grad-read",
}
"""A text that a field takes; `1`, which is a number, a word and a line, where none is given."""

ODD = st.one_of(
    st.sampled_from(
        [b"", b" ", b"\0", b"\xff", b"\n", b"%", b"*", b"[", b"'", b"\\", "\u202e".encode(), "\u0663".encode()]
    ),
    st.text(max_size=20).map(str.encode),
    st.binary(max_size=20),
)
TEXTS = st.tuples(
    ODD, st.sampled_from([0, 1, 1, 2, 51, 400]), st.sampled_from([b",", b" ", b"; ", b"-", b".", b"", b"9"]), ODD
)
"""What stands around the word of a field, how often the word is there, and what joins it."""


@pytest.fixture(scope="module")
def pages(module_make):
    """A site with a run and an audit; names of the filters by path of each page of it."""
    site = module_make()
    run = site.finished()
    body = {"name": "a", "items": [{"custom_id": "x", "source": "print(1)\n"}]}
    audit = site.client.post("/v1/audits", json=body).json["id"]
    (group,) = site.client.get("/v1/finding-groups").json["items"]
    its = {
        "run": run, "audit": audit, "group": group["id"], "project": "default", "code": "BP101",
        "tenant": "tnt_default", "no": "0",
    }  # fmt: skip
    found = {}
    for rule in site.app.url_map.iter_rules():
        if (
            "GET" not in rule.methods
            or rule.rule.startswith(("/v1", "/assets", "/static"))
            or rule.arguments - set(its)
        ):
            continue
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda match: its[match[1]], rule.rule)
        model = getattr(site.app.view_functions[rule.endpoint], "query_model", None)
        names = {field.alias or name for name, field in model.model_fields.items()} if model else set()
        for form in re.findall(
            r"<form (?![^>]*method=\"post\").*?</form>", site.client.get(path, headers=PAGE).text, re.DOTALL
        ):
            action = re.match(r'[^>]*action="([^"#]+)', form)
            found.setdefault(action[1] if action else path, set()).update(re.findall(r' name="([^"]+)"', form))
        found.setdefault(path, set()).update(names)
    assert {"/runs", "/findings", "/rules", "/admin/audit-log", f"/audits/{audit}", f"/runs/{run}", "/compare"} <= {
        path for path, names in found.items() if names
    }
    return site, found


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example((b"", 51, b",", b""))
@example((b"", 1, b"", b","))
@given(TEXTS)
def test_no_text_in_a_filter_of_a_page_makes_the_service_fail(pages, text):
    site, found = pages
    before, times, joint, after = text
    for path, names in found.items():
        for name in sorted(names):
            typed = before + joint.join([WORDS.get(name, "1").encode()] * times) + after
            answer = site.client.get(f"{path}?{quote(name)}={quote(typed)}", headers=PAGE)
            assert answer.status_code < 500, (path, name, typed)


def test_rules_are_typed_with_any_separators_each_once_and_too_many_are_explained(plain_site):
    for typed in (
        "BP101,",
        ",BP101",
        "BP101,,BP101;",
        ",",
        ",".join(["BP101"] * 51),
        ",".join(["bp101", "BP102"] * 40),
    ):
        assert plain_site.client.get("/findings", query_string={"rule": typed}, headers=PAGE).status_code == 200, typed
    codes = [rule.code for rule in every_rule()]
    assert len(codes) > 50
    assert plain_site.client.get("/findings", query_string={"rule": ",".join(codes[:50])}).status_code == 200
    answer = plain_site.client.get("/findings", query_string={"rule": ",".join(codes[:51])}, headers=PAGE)
    assert answer.status_code == 422
    assert "51 rules were typed. Type at most 50" in answer.text
    assert 'aria-describedby="fault"' in answer.text
