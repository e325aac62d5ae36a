"""Programs are kept by their content, read back as they were sent, and run by their id."""

from __future__ import annotations

import hashlib

import pytest

from backprobe.snippet_digest import snippet_digest

FILES = [{"path": "train.py", "text": "import net\nprint('\u00e9')\n"}, {"path": "a dir/net.py", "text": "x = 1\n"}]


def keep_snippet(site, status=201, headers=None, **more):
    answer = site.client.post("/v1/snippets", json={"files": FILES, "entry": "train.py", **more}, headers=headers or {})
    assert answer.status_code == status, answer.text
    return answer.json


def test_the_same_content_has_the_same_id(site):
    told = keep_snippet(site)
    assert keep_snippet(site, 200) == told
    assert keep_snippet(site, 200, files=FILES[::-1])["id"] == told["id"]
    assert keep_snippet(site, entry="a dir/net.py")["id"] != told["id"]
    run = site.post({"files": FILES, "entry": "train.py"}).json["id"]
    assert site.client.get(f"/v1/runs/{run}").json["snippet"] == told["id"]


def test_a_snippet_is_told_with_its_files_and_read_back_raw(site):
    told = keep_snippet(site)
    raw = FILES[0]["text"].encode()
    assert told["entry"] == "train.py"
    assert [(file["path"], file["bytes"]) for file in told["files"]] == [("a dir/net.py", 6), ("train.py", len(raw))]
    assert told["files"][1]["sha256"] == hashlib.sha256(raw).hexdigest()
    assert site.client.get(told["links"]["self"]).json == told
    for file in FILES:
        answer = site.client.get(told["links"]["files"][file["path"]])
        assert (answer.status_code, answer.data) == (200, file["text"].encode())
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "immutable" in answer.headers["Cache-Control"]
        again = site.client.get(told["links"]["files"][file["path"]], headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")
    etag = site.client.get(told["links"]["self"]).headers["ETag"]
    assert site.client.get(told["links"]["self"], headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize("path", ["net.py", "../train.py", "train.py/", "a dir", "%00", "train.py?x=1"])
def test_what_is_no_file_of_it_is_not_found(site, path):
    address = keep_snippet(site)["links"]["self"]
    assert site.client.get(f"{address}/files/{path}").status_code == (422 if "?" in path else 404)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"files": [{"path": "a.py", "text": "x = ("}], "entry": None}, "syntax-error"),
        ({"entry": None}, "no-entry-point"),
        ({"entry": "other.py"}, "no-entry-point"),
        ({"files": [], "entry": None}, "invalid-request"),
        ({"files": [FILES[1], FILES[1]], "entry": "a dir/net.py"}, "invalid-request"),
        ({"files": [{"path": "../a.py", "text": ""}]}, "invalid-request"),
    ],
)
def test_what_could_not_run_is_refused_and_not_kept(site, more, code):
    assert keep_snippet(site, 422, **more)["code"] == code
    from store.tables import snippet

    with site.context.database.read() as transaction:
        assert transaction.execute(snippet.select()).first() is None


def test_a_run_names_a_snippet(site):
    told = keep_snippet(site)
    run = site.post({"snippet": told["id"], "arguments": ["--fast"]})
    assert (run.status_code, run.json["snippet"], run.json["entry"]) == (202, told["id"], "train.py")
    for body, code in (
        ({"snippet": told["id"], "entry": "train.py"}, "invalid-request"),
        ({"snippet": told["id"], "source": "x = 1\n"}, "invalid-request"),
        ({"snippet": "snp_01JD8PZ4T8W2K5C7Q9R3M6X1BA"}, "not-found"),
    ):
        assert site.post(body).json["code"] == code


def test_the_runs_of_a_program_are_found_by_its_hash_and_no_text_is_sent(site):
    digest = hashlib.sha256()  # the recipe, as the parameter's description tells it
    for piece in ("train.py", "a dir/net.py", "x = 1\n", "train.py", FILES[0]["text"]):
        digest.update(len(piece.encode()).to_bytes(8, "little") + piece.encode())
    run = site.post({"files": FILES, "entry": "train.py"}).json["id"]
    site.post({"files": FILES, "entry": "a dir/net.py"})

    def find_runs(sha256):
        return [row["id"] for row in site.client.get(f"/v1/runs?snippet_sha256={sha256}").json["items"]]

    assert find_runs(digest.hexdigest()) == [run]
    assert find_runs("0" * 64) == []
    for bad in ("0" * 63, "0" * 65, "g" * 64, digest.hexdigest().upper()):
        assert site.client.get(f"/v1/runs?snippet_sha256={bad}").status_code == 422


def test_a_hash_finds_no_run_of_another_tenant(site):
    from store.access import tenants
    from store.runs import lifecycle

    files = {"train.py": "x = 1\n"}
    digest = snippet_digest("train.py", {"train.py": b"x = 1\n"}).hex()
    with site.context.database.begin() as transaction:
        other = tenants.create(transaction, "other")
        asked = {"tenant_id": other, "project_id": tenants.first_project(transaction, other)}
        lifecycle.submit(transaction, lifecycle.Submission(files=files, entry="train.py", **asked))
    assert site.client.get(f"/v1/runs?snippet_sha256={digest}").json["items"] == []
    run = site.post({"files": [{"path": "train.py", "text": "x = 1\n"}], "entry": "train.py"}).json["id"]
    assert [row["id"] for row in site.client.get(f"/v1/runs?snippet_sha256={digest}").json["items"]] == [run]


def test_a_source_that_is_not_kept_is_said_and_comes_back_when_it_is_sent_again(site, samples):
    run = site.finished(samples.tutorial())
    address = f"/v1/snippets/{site.client.get(f'/v1/runs/{run}').json['snippet']}"
    assert site.client.get(f"{address}/files/snippet.py").data == samples.TUTORIAL.encode()
    assert site.client.delete(f"/v1/runs/{run}").status_code == 204
    for answer in (
        site.client.get(address),
        site.client.get(f"{address}/files/snippet.py"),
        site.post({"snippet": address[13:]}),
    ):
        assert (answer.status_code, answer.json["code"]) == (409, "source-not-kept")
    again = {"files": [{"path": "snippet.py", "text": samples.TUTORIAL}]}  # of the same name
    answer = site.client.post("/v1/snippets", json=again)
    assert (answer.status_code, answer.headers["Location"]) == (200, address)
    assert site.client.get(f"{address}/files/snippet.py").status_code == 200


def test_a_key_of_one_project_sees_what_its_runs_ran(site):
    from store.database.ids import new_id
    from store.tables import Now, project

    name = new_id("prj")
    with site.context.database.begin() as transaction:
        facts = {"public_id": name, "tenant_id": 1, "name": name, "settings": {}, "created_at": Now()}
        transaction.execute(project.insert().values(facts))
    asked = {"name": "t", "scopes": ["read", "runs:write"], "project": name}
    key = {"Authorization": f"Bearer {site.client.post('/v1/keys', json=asked).json['secret']}"}
    address = keep_snippet(site)["links"]["self"]
    assert site.client.get(address, headers=key).status_code == 404
    site.client.post("/v1/runs", json={"files": FILES, "entry": "train.py"}, headers=key)
    assert site.client.get(address, headers=key).status_code == 200


def test_keeping_is_in_the_audit_log(site):
    told = keep_snippet(site, headers={"Idempotency-Key": "once"})
    assert keep_snippet(site, 200, headers={"Idempotency-Key": "once"}) == told
    entries = site.client.get(f"/v1/audit-log?object={told['id']}").json["items"]
    assert [entry["action"] for entry in entries] == ["snippet.keep"]


def test_a_source_has_the_name_that_it_is_given_and_else_is_told_as_unnamed(site, samples):
    named = site.post({"source": samples.TUTORIAL, "entry": "jobs/train.py"}).json
    assert (named["entry"], named["named"]) == ("jobs/train.py", True)
    unnamed = site.post({"source": samples.TUTORIAL}).json
    assert (unnamed["entry"], unnamed["named"]) == ("snippet.py", False)
    called_so = site.post({"source": samples.TUTORIAL, "entry": "snippet.py"}).json
    assert called_so["named"] is True
    assert len({answer["snippet"] for answer in (named, unnamed, called_so)}) == 3
    assert site.client.get(f"/v1/snippets/{unnamed['snippet']}").json["named"] is False
    for again in (
        site.client.post(f"/v1/runs/{unnamed['id']}/rerun", json={}),
        site.post({"snippet": unnamed["snippet"]}),
    ):
        assert [again.json[name] for name in ("snippet", "named")] == [unnamed["snippet"], False]
    refused = site.post({"source": samples.TUTORIAL, "entry": "../train.py"})
    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "#/entry")


def test_an_entry_may_be_a_module_among_the_files(site):
    files = [{"path": "pkg/__init__.py", "text": ""}, {"path": "pkg/train.py", "text": "from . import net\n"},
             {"path": "pkg/net.py", "text": "x = 1\n"}, {"path": "whole/__main__.py", "text": "x = 2\n"}]  # fmt: skip
    for entry, first in (("pkg.train", "pkg/train.py"), ("whole", "whole/__main__.py")):
        run = site.post({"files": files, "entry": entry}).json
        assert run["entry"] == entry
        source = site.client.get(f"/v1/runs/{run['id']}/source").json
        assert (source["path"], source["files"][0]) == (first, first)
    for entry in ("pkg.other", "pkg", "pkg..train", "pkg/train"):
        refused = site.post({"files": files, "entry": entry})
        assert (refused.status_code, refused.json["code"]) in {(422, "no-entry-point"), (422, "invalid-request")}, entry


@pytest.mark.parametrize(
    ("called", "path"),
    [
        ("jobs/gpt.py", "jobs/gpt.py"),
        ("case-7", "case-7.py"),
        ("épreuve 7", "épreuve 7.py"),
        ("a: b*c?", "a_b_c-{digest}.py"),
        ("../../etc/passwd", "etc/passwd-{digest}.py"),
        ("/", "program-{digest}.py"),
        ("numpy", "numpy-{digest}.py"),
    ],
)
def test_a_name_of_somebodys_own_becomes_a_file_of_that_name_or_one_like_it(called, path):
    from service.program_checks import file_name, path_fault

    made = file_name(called, "import torch, numpy as np\n")
    assert made == path.format(digest=hashlib.sha256(called.encode()).hexdigest()[:8])
    assert path_fault(made) is None


def test_names_that_can_be_no_path_stay_apart_and_every_one_becomes_a_path():
    from service.program_checks import file_name, path_fault

    hostile = [
        "..",
        ".",
        "a/../b",
        "a//b",
        "\\\\host\\share",
        "C:\\x",
        "x" * 200,
        "\U0001f600" * 200,
        "-",
        "a/",
        ".py",
        " ",
    ]
    made = [file_name(name, "x = 1\n") for name in hostile]
    assert [path_fault(path) for path in made] == [None] * len(made)
    assert len(set(made)) == len(made)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["../a.py"], "no empty part, no `.` and no `..`"),
        (["a/../../b.py"], "no empty part, no `.` and no `..`"),
        (["/etc/passwd"], "relative"),
        (["C:/a.py"], "relative"),
        (["a\\b.py"], "forward slashes"),
        (["a\u202eyp.py"], "printable"),
        (["a\ud800.py"], None),
        (["\u00e9" * 128 + ".py"], "255 bytes"),
        (["a.py", "a.py"], "twice"),
        (["a.py", "net", "net/b.py"], "`net` is a file and a folder"),
        (["a.py", "caf\u00e9.py", "cafe\u0301.py"], "look alike"),
        ([f"{n}.py" for n in range(1000)], "at most 64"),
        (["a.py"] + [f"{'/'.join(f'{n}_{depth}' for depth in range(20))}/a.py" for n in range(63)], "folders"),
    ],
)
def test_files_that_cannot_lie_in_one_folder_are_refused_with_what_is_wrong(site, paths, said):
    files = [{"path": path, "text": "x = 1\n"} for path in paths]
    refused = site.post({"files": files, "entry": "a.py"})
    assert refused.status_code in (400, 422), refused.text
    assert said is None or said in refused.text, refused.text


def test_files_that_do_not_fit_into_the_folder_of_the_run_are_refused(site):
    files = [{"path": "a.py", "text": "import b\n"}, {"path": "b.py", "text": "#" * 5000}]
    body = {"files": files, "entry": "a.py"}
    refused = site.post({**body, "limits": {"disk_bytes": 12287}})
    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "#/limits/disk_bytes")
    assert "12,288 bytes" in refused.json["detail"]
    taken = site.post({**body, "limits": {"disk_bytes": 12288}})
    assert taken.status_code == 202
    assert site.post({**body, "limits": {"disk_bytes": 0}}).status_code == 202
    again = site.client.post(f"/v1/runs/{taken.json['id']}/rerun", json={"limits": {"disk_bytes": 4096}})
    assert (again.status_code, again.json["errors"][0]["pointer"]) == (422, "#/limits/disk_bytes")
    named = site.post({"snippet": taken.json["snippet"], "limits": {"disk_bytes": 4096}})
    assert (named.status_code, named.json["errors"][0]["pointer"]) == (422, "#/limits/disk_bytes")
