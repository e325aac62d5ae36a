"""Long answers of the API come in gzip for whoever takes it, and are the same."""

from __future__ import annotations

import gzip

import pytest

GZIP = {"Accept-Encoding": "gzip"}


@pytest.fixture
def run(site):
    return site.finished()


@pytest.mark.parametrize("path", ["tensors", "snapshots", "graph", "tensors?format=ndjson", "snapshots?format=csv"])
def test_a_long_answer_is_the_same_in_gzip(site, run, path):
    address = f"/v1/runs/{run}/{path}"
    plain, coded = site.client.get(address), site.client.get(address, headers=GZIP)
    assert "Content-Encoding" not in plain.headers
    assert (coded.status_code, coded.headers["Content-Encoding"]) == (200, "gzip")
    assert gzip.decompress(coded.data) == plain.data
    assert len(coded.data) < len(plain.data) / 2
    assert "Accept-Encoding" in plain.headers["Vary"]
    assert "Accept-Encoding" in coded.headers["Vary"]
    assert coded.headers["ETag"] == f"W/{plain.headers['ETag']}"
    if "format" not in path:
        held = {"If-None-Match": coded.headers["ETag"], **GZIP}
        assert site.client.get(address, headers=held).status_code == 304


@pytest.mark.parametrize("accepted", ["identity", "br", "gzip;q=0", ""])
def test_who_does_not_take_gzip_gets_none(site, run, accepted):
    answer = site.client.get(f"/v1/runs/{run}/tensors", headers={"Accept-Encoding": accepted})
    assert "Content-Encoding" not in answer.headers
    assert answer.json["items"]


def test_short_answers_single_things_and_files_go_as_they_are(site, run):
    labels = {f"l{n}": "x" * 200 for n in range(32)}
    etag = site.client.get(f"/v1/runs/{run}", headers=GZIP).headers["ETag"]
    changed = site.client.patch(f"/v1/runs/{run}", json={"labels": labels}, headers={"If-Match": etag, **GZIP})
    assert changed.status_code == 200
    long = site.client.get(f"/v1/runs/{run}", headers=GZIP)
    assert len(long.data) > 4096
    for answer in (long, *(site.client.get(f"/v1/runs/{run}/{path}", headers=GZIP) for path in ("record", "output"))):
        assert (answer.status_code, answer.headers.get("Content-Encoding")) == (200, None)
    assert (
        site.client.patch(
            f"/v1/runs/{run}", json={"pinned": True}, headers={"If-Match": long.headers["ETag"]}
        ).status_code
        == 200
    )
    head = site.client.head(f"/v1/runs/{run}/tensors", headers=GZIP)
    assert "Content-Encoding" not in head.headers
