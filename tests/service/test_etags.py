"""Each single resource has an ETag. A client that has it gets 304 until the resource changes."""

from __future__ import annotations

import pytest


def create_thing(site, path, body):
    answer = site.client.post(path, json=body)
    assert answer.status_code in {200, 201, 202}, answer.text
    return answer.json["id"]


@pytest.fixture
def things(site):
    """Of each kind one, by the path of its address; and how each is changed."""
    run = site.finished()
    (finding,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    group = f"/v1/finding-groups/{finding['group']['id']}"
    policy = f"/v1/policies/{create_thing(site, '/v1/policies', {'name': 'strict'})}"
    audit = f"/v1/audits/{create_thing(site, '/v1/audits', {'items': [{'custom_id': 'a', 'source': 'x = 1'}]})}"
    hook = {"url": "https://hooks.example/x", "events": ["run.ended"]}
    webhook = f"/v1/webhooks/{create_thing(site, '/v1/webhooks', hook)}"
    project = f"/v1/projects/{create_thing(site, '/v1/projects', {'name': f'p{run}'})}"
    return {
        f"/v1/runs/{run}": ("PATCH", f"/v1/runs/{run}", {"pinned": True}),
        f"/v1/runs/{run}/findings": ("PATCH", group, {"owner": "ann"}),
        f"/v1/findings/{finding['id']}": ("PATCH", group, {"owner": "bob"}),
        group: ("PATCH", group, {"owner": "cleo"}),
        policy: ("PUT", policy, {"fail": ["*"]}),
        audit: ("POST", f"{audit}/cancel", None),
        webhook: ("PATCH", webhook, {"enabled": False}),
        project: ("PATCH", project, {"keep_days": 3}),
    }


def test_whoever_has_a_thing_is_told_304_until_it_changes(site, things):
    for path, (method, address, body) in things.items():
        first = site.client.get(path)
        etag = first.headers["ETag"]
        for held in (etag, f'"other", W/{etag}'):
            same = site.client.get(path, headers={"If-None-Match": held})
            assert (same.status_code, same.data, same.headers["ETag"]) == (304, b"", etag), path
        assert site.client.get(path, headers={"If-None-Match": '"other"'}).json == first.json
        assert first.headers["Cache-Control"] == "no-cache", path  # a client that asks for it again sees what changed
        change = site.client.open(
            address, method=method, json=body, headers={"If-Match": site.client.get(address).headers.get("ETag", "")}
        )
        assert change.status_code in {200, 202}, change.text
        after = site.client.get(path, headers={"If-None-Match": etag})
        assert (after.status_code, after.headers["ETag"] == etag) == (200, False), path
        assert after.json != first.json
