"""The rules over REST: the same text as the command line's."""

from __future__ import annotations

import pytest

from backprobe.rules import RULES, manual
from backprobe.rules.framework.manual import every_rule


def get(site, path, status=200, **headers):
    answer = site.client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def test_every_rule_is_listed_once_page_by_page(plain_site):
    path, seen = "/v1/rules?limit=50", []
    while path:
        answer = get(plain_site, path)
        seen += [rule["code"] for rule in answer.json["items"]]
        cursor = answer.json["next_cursor"]
        path = f"/v1/rules?limit=50&cursor={cursor}" if cursor else None
    assert seen == sorted(rule.code for rule in every_rule())
    assert len(seen) > len(RULES)


@pytest.mark.parametrize("asked", ["BP101", "bp101", "non-leaf-grad-read"])
def test_a_rule_is_found_by_name_and_code_with_its_manual(plain_site, asked):
    told = get(plain_site, f"/v1/rules/{asked}").json
    assert (told["code"], told["name"], told["level"]) == ("BP101", "non-leaf-grad-read", "warning")
    assert told["headline"] == manual("BP101").headline
    (example,) = manual("BP101").of("Example")
    assert f"### Example\n\n```python\n{example.text}```" in told["manual"]


def test_an_unknown_rule_is_404_with_the_nearest_name(plain_site):
    told = get(plain_site, "/v1/rules/non-leaf-grad-reed", 404).json
    assert (told["code"], "`non-leaf-grad-read`" in told["detail"]) == ("not-found", True)


def test_rules_are_chosen_by_family_level_and_word(plain_site):
    items = get(plain_site, "/v1/rules?family=leaf,graph&level=error&limit=1000").json["items"]
    assert items
    assert {rule["family"] for rule in items} <= {"leaf", "graph"}
    assert {rule["level"] for rule in items} == {"error"}
    words = get(plain_site, "/v1/rules?q=OPTIMIZER").json["items"]
    assert words
    assert all("optimizer" in f"{rule['name']} {rule['headline']}".lower() for rule in words)
    wrong = get(plain_site, "/v1/rules?family=colour", 422).json
    assert wrong["errors"][0]["parameter"] == "family"


def test_a_cursor_of_another_choice_is_refused(plain_site):
    cursor = get(plain_site, "/v1/rules?limit=2").json["next_cursor"]
    assert get(plain_site, f"/v1/rules?limit=2&level=error&cursor={cursor}", 422).json["code"] == "bad-cursor"


def test_a_client_that_has_the_rules_is_told_304(plain_site):
    for path in ("/v1/rules", "/v1/rules/BP101"):
        etag = get(plain_site, path).headers["ETag"]
        assert get(plain_site, path, 304, **{"If-None-Match": etag}).data == b""
        assert get(plain_site, path, **{"If-None-Match": '"rs_other"'}).json
