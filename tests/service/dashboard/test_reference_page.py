"""The reference of the API: whole, no link of it leads nowhere, and no page of it is too large for a browser."""

from __future__ import annotations

import re

import pytest

MOST_ELEMENTS = 1500


@pytest.fixture
def pages(site):
    """The index and every page that it leads to, by path."""
    index = site.client.get("/docs/api").text
    paths = set(re.findall(r'href="(/docs/api/[a-z0-9-]+)', index))
    return {"/docs/api": index} | {path: site.client.get(path).text for path in paths}


def test_every_operation_and_schema_of_the_document_has_its_place(site, pages):
    told = site.client.get("/openapi.json").json
    places = {path: re.findall(r'id="([^"]+)"', text) for path, text in pages.items()}
    assert all(len(ids) == len(set(ids)) for ids in places.values())
    operations = [
        operation["operationId"]
        for methods in told["paths"].values()
        for operation in methods.values()
        if isinstance(operation, dict)
    ]
    wanted = [*operations, *(f"schema-{name}" for name in told["components"]["schemas"])]
    for place in wanted:
        assert sum(place in ids for ids in places.values()) == 2, place  # in the index, and in full
    for path, text in pages.items():
        for target, anchor in re.findall(r'href="(/docs/api[a-z0-9-/]*)?#([^"]+)"', text):
            assert anchor in places[target or path], (path, target, anchor)


def test_no_page_has_more_elements_than_its_budget(pages):
    counts = {path: len(re.findall(r"<[a-z]", text)) for path, text in pages.items()}
    assert {path: count for path, count in counts.items() if count > MOST_ELEMENTS} == {}


def test_a_page_that_is_not_there_is_not_found(site):
    assert site.client.get("/docs/api/none").status_code == 404


def test_the_header_leads_to_the_reference(site):
    assert '<a href="/docs/api">API</a>' in site.client.get("/runs").text


def test_a_description_of_several_lines_is_one_paragraph(pages):
    assert not [path for path, text in pages.items() if "\\x0a" in text]


def test_an_operation_tells_its_errors(pages):
    (text,) = [text for text in pages.values() if '<article class="inner" id="get_steps"' in text]
    article = re.search(r'id="get_steps".*?</article>', text, re.DOTALL)
    assert article is not None
    words = re.sub(r"<[^>]+>", "", article[0])
    assert re.search(r"Errors: .*410 .*record-expired", words)
