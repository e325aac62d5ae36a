"""Searches of people's text find a word whatever its case, and the same on both databases."""

from __future__ import annotations

import pytest

from store.audits import judging
from tests.support.samples import Words

WORDS = [
    ("ÄRGER Straße", "ärger", True),
    ("ärger", "ÄRGER", True),
    ("Straße", "sTRAß", True),
    ("Straße", "STRASSE", False),
    ("İstanbul", "istanbul", True),
    ("ΟΔΟΣΑΣ", "ΟΔΟΣ", True),
    ("ÄRGER", "_RGER", False),
    ("Train 5", "tRAIN", True),
]
"""A text, a word, and whether it is found: each character by itself, so that `ß` is not `SS`."""


def find_groups(site, samples, text, word):
    site.finished()
    (group,) = site.client.get("/v1/finding-groups").json["items"]
    headers = {"If-Match": f'"{group["version"]}"'}
    assert site.client.patch(group["links"]["self"], json={"owner": text}, headers=headers).status_code == 200
    return [site.client.get("/v1/finding-groups", query_string={"q": part}).json["items"] for part in word.split()]


def find_labels(site, samples, text, word):
    site.finished(body={"labels": {"team": text}})
    return [site.client.get("/v1/runs", query_string={"q": word}).json["items"]]


def find_entries(site, samples, text, word):
    path = f"jobs/{text}.py"
    site.finished(body={"files": [{"path": path, "text": samples.TUTORIAL}], "entry": path})
    return [site.client.get("/v1/runs", query_string={"q": word}).json["items"]]


def find_programs(site, samples, text, word):
    body = {"items": [{"custom_id": text, "source": samples.TUTORIAL}]}
    audit = site.client.post("/v1/audits", json=body).json["links"]["self"]
    (item,) = site.client.get(f"{audit}/items").json["items"]
    site.finish(item["run"], samples.tutorial())
    judging.settle(site.context.database)
    return [site.client.get(f"{audit}/matrix", query_string={"file": word}).json["items"]]


def find_nodes(site, samples, text, word):
    run = site.finished(samples.tutorial(Words(name=f"{text}{{}}")))
    answer = site.client.get(f"/v1/runs/{run}/graph", query_string={"find": word})
    assert answer.status_code == 200, answer.text
    return [answer.json["matches"]]


@pytest.mark.parametrize(("text", "word", "is_found"), WORDS)
@pytest.mark.parametrize("find", [find_groups, find_labels, find_entries, find_programs, find_nodes])
def test_a_word_is_found_in_a_text_whatever_the_case_on_both_databases(site, samples, find, text, word, is_found):
    assert all(find(site, samples, text, word)) == is_found
