"""What the run saw, over HTTP: tensors, snapshots, backward calls, graph, findings, source, output. On both databases."""

from __future__ import annotations

import msgspec
import pytest

LISTS = ["tensors", "snapshots", "backward-calls", "findings", "tensors/1/snapshots"]
SINGLE = ["graph", "source", "output", "tensors/1"]


@pytest.fixture
def run(site):
    return site.finished()


@pytest.fixture
def get(site, run):
    def get_part(path, status=200, **headers):
        answer = site.client.get(f"/v1/runs/{run}/{path}", headers=headers)
        assert answer.status_code == status, answer.text
        return answer

    return get_part


def test_tensors_carry_their_last_state_and_why_there_is_no_gradient(get):
    x, w, _b, z, loss = get("tensors").json["items"]
    assert (w["name"], w["line"], w["shape"], w["class"]) == ("W", 3, [3, 2], "Tensor")
    assert (w["state"]["is_leaf"], w["state"]["requires_grad"], w["state"]["grad"]) == (True, True, "present")
    assert w["why_none"] is None
    assert w["grad_norm"] == pytest.approx(2.4494898)
    assert (z["state"]["is_leaf"], z["state"]["grad"], z["state"]["grad_fn"]) == (False, "not-read", "AddBackward0")
    assert z["why_none"]["verdict"] == "not-leaf"
    assert x["why_none"]["verdict"] == "requires-grad-false"
    assert len(z["findings"]) == 1
    assert loss["shape"] == []


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ("is_leaf=true", ["x", "W", "b"]),
        ("is_leaf=false", ["z", "loss"]),
        ("requires_grad=false", ["x"]),
        ("retains_grad=true", []),
        ("grad=present", ["W", "b"]),
        ("grad=none,not-read", ["x", "z", "loss"]),
        ("why=not-leaf", ["z", "loss"]),
        ("name=[xz]", []),
        ("name=l*s", ["loss"]),
        ("line=3", ["W"]),
        ("path=snippet.py&line=5", ["z"]),
        ("is_leaf=true&grad=none", ["x"]),
    ],
)
def test_tensors_are_filtered(get, filters, names):
    assert [tensor["name"] for tensor in get(f"tensors?{filters}").json["items"]] == names


@pytest.mark.parametrize(
    "bad", ["is_leaf=yes", "is_leaf=True", "grad=maybe", "line=0", "line=-1", "why=A", "name=", "sort=colour"]
)
def test_a_bad_filter_is_named(get, bad):
    told = get(f"tensors?{bad}", 422).json
    assert told["errors"][0]["parameter"] == bad.partition("=")[0]


@pytest.mark.parametrize("path", [path for path in LISTS if path not in {"backward-calls", "findings"}])
def test_a_list_comes_page_by_page_and_whole(get, path):
    whole = get(path).json["items"]
    assert len(whole) > 1
    seen, cursor = [], ""
    while cursor is not None:
        page = get(f"{path}?limit=1{cursor and f'&cursor={cursor}'}")
        seen += page.json["items"]
        cursor = page.json["next_cursor"]
        assert ("Link" in page.headers) is (cursor is not None)
    assert seen == whole


def test_a_cursor_is_bound_to_its_run_list_and_filters(site, get, run):
    cursor = get("tensors?limit=1&is_leaf=true").json["next_cursor"]
    get(f"tensors?limit=3&is_leaf=true&cursor={cursor}")
    get(f"tensors?cursor={cursor}", 422)
    get(f"tensors?is_leaf=false&cursor={cursor}", 422)
    get(f"snapshots?cursor={cursor}", 422)
    other = site.finished()
    answer = site.client.get(f"/v1/runs/{other}/tensors?is_leaf=true&cursor={cursor}")
    assert answer.json["code"] == "bad-cursor"


def test_one_tensor_is_told_in_full(get):
    full = get("tensors/1").json
    assert full["tensor"]["name"] == "W"
    assert [binding["name"] for binding in full["bindings"]] == ["W"]
    assert [snapshot["moment"] for snapshot in full["snapshots"]] == [1, 6]
    (value,) = full["values"]
    assert (value["of"], value["elements"]) == ("grad", [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assert get("tensors/5", 404).json["detail"].endswith("has no tensor 5.")
    get("tensors/5/snapshots", 404)


def test_a_number_in_an_address_is_written_in_ascii(get):
    get("tensors/%D9%A1", 404)
    get("tensors/%D9%A1/snapshots", 404)
    get("tensors/1/snapshots")


def test_snapshots_are_filtered_by_kind_and_moment(get):
    assert {row["kind"] for row in get("snapshots?kind=after-backward").json["items"]} == {"after-backward"}
    assert [row["moment"] for row in get("tensors/1/snapshots?from=2&to=6").json["items"]] == [6]
    assert get("tensors/1/snapshots?kind=end").json["items"] == []
    get("snapshots?kind=never", 422)


def test_a_backward_call_tells_its_flags_and_what_it_freed(get):
    (call,) = get("backward-calls").json["items"]
    assert (call["line"], call["retain_graph"], call["retain_graph_given"]) == (7, False, None)
    assert (call["nodes_run"], call["nodes_freed"], call["freed_bytes"]) == (5, 1, 12)
    assert call["freed_nodes"] == [2]


def test_the_graph_tells_leaves_from_non_leaves_and_draws_them(get):
    graph = get("graph").json
    kinds = {box["label"]: box["kind"] for box in graph["boxes"]}
    assert kinds["W"] == "leaf"
    assert kinds["x"] == "leaf-no-grad"
    assert kinds["z"] == "non-leaf"
    assert get("graph?call=0").json == graph
    get("graph?call=1", 404)
    drawing = get("graph?format=svg")
    assert drawing.mimetype == "image/svg+xml"
    assert drawing.text.startswith("<svg")
    get("graph?format=dot", 422)


@pytest.mark.parametrize("more", [4995, 4996])
def test_a_record_of_many_nodes_is_drawn_on_a_page_by_what_its_call_met(site, samples, more):
    record = samples.tutorial()
    nodes = tuple(msgspec.structs.replace(record.nodes[0], node=100 + at) for at in range(more))
    run = site.finished(msgspec.structs.replace(record, nodes=record.nodes + nodes))
    answer = site.client.get(f"/v1/runs/{run}/graph")
    page = site.client.get(f"/runs/{run}", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert page.text.count('class="bp-box') == 6  # and x, a leaf without a node
    assert (answer.status_code, answer.json["nodes"]) == (200, 5)  # the call met no more of them


def test_a_graph_is_told_from_a_root_as_it_was_and_capped(get):
    assert [box["label"] for box in get("graph?root=tensor:3").json["boxes"]] == ["z", "MmBackward0", "b", "W", "x"]
    assert get("graph?root=call:0").json == get("graph").json
    early, late = get("graph?at=5").json, get("graph?at=after-backward:0").json
    assert (early["moment"], late["moment"]) == (5, 6)
    states = [{box["label"]: box["state"] for box in graph["boxes"]}["MmBackward0"] for graph in (early, late)]
    assert states == ["held", "freed"]
    told = get("graph?max=2").json
    assert (len(told["boxes"]), told["hidden"], told["nodes"]) == (2, {"nodes": 3}, 5)
    refused = get("graph?depth=0&max=2", 422).json
    assert (refused["code"], refused["detail"][:37]) == ("too-much-asked", "5 boxes at depth 0; 2 are asked for a")
    assert get("graph?max=2&format=svg").text.count("3 nodes not drawn") >= 1


@pytest.mark.parametrize(
    ("asked", "status", "parameter"),
    [
        ("root=node:9", 404, "root"),
        ("call=1", 404, "call"),
        ("at=77", 404, "at"),
        ("at=end:5", 404, "at"),
        ("open=c3", 404, "open"),
        ("at=after-statement:1", 422, "at"),
        ("root=loss", 422, "root"),
        ("depth=65", 422, "depth"),
        ("open=3", 422, "open"),
        ("max=1501", 422, "max"),
        ("max=0", 422, "max"),
        ("repeats=1", 422, "repeats"),
        ("deep=1", 422, "deep"),
    ],
)
def test_a_part_of_a_graph_that_cannot_be_told_is_refused_by_its_name(get, asked, status, parameter):
    told = get(f"graph?{asked}", status).json
    assert told["errors"][0]["parameter"] == parameter


def test_findings_are_filtered(get):
    (finding,) = get("findings").json["items"]
    assert finding["schema"] == "backprobe.finding/1"
    assert get("findings?level=warning&rule=BP101&confidence=proven&line=5&suppressed=false").json["items"] == [finding]
    assert get("findings?rule=non-leaf-grad-read").json["items"] == [finding]
    assert get("findings?level=error,note").json["items"] == []
    get("findings?level=fatal", 422)


def test_the_source_is_told_line_by_line(get, samples):
    told = get("source").json
    assert (told["path"], told["files"], told["line_count"]) == ("snippet.py", ["snippet.py"], 8)
    assert [line["text"] for line in told["lines"]] == samples.TUTORIAL.splitlines()
    line = told["lines"][4]
    assert [binding["name"] for binding in line["bindings"]] == ["z"]
    assert len(line["findings"]) == 1
    assert told["lines"][6]["backward_calls"] == [0]
    part = get("source?lines=5-6").json
    assert [line["line"] for line in part["lines"]] == [5, 6]
    assert get("source?file=snippet.py").json == told
    get("source?file=other.py", 404)
    get("source?lines=6-5", 422)
    assert get("source?lines=1-2001", 422).json["code"] == "too-much-asked"
    assert get("source?lines=100-200").json["lines"] == []


def test_the_source_is_told_as_it_was_at_a_moment(get):
    def line(number, at=""):
        return get(f"source{at}").json["lines"][number - 1]

    (late,), (early,) = line(3)["bindings"], line(3, "?at=4")["bindings"]
    assert [(told["grad"], told["grad_norm"]) for told in (early, late)] == [
        ("none", None),
        ("present", pytest.approx(2.44949)),
    ]
    assert early["is_leaf"] is late["is_leaf"] is True
    assert [line(6, at)["passes"] for at in ("", "?at=4", "?at=3")] == [1, 1, 0]
    assert [bool(line(6, at)["bindings"]) for at in ("", "?at=4", "?at=3")] == [True, True, False]
    assert [line(7, at)["backward_calls"] for at in ("", "?at=5", "?at=4")] == [[0], [0], []]
    held = [
        (line(5, at)["saved_bytes"], line(5, at)["held_bytes"]) for at in ("", "?at=after-backward:0", "?at=5", "?at=4")
    ]
    assert held == [(12, 0), (12, 0), (12, 12), (0, 0)]  # first seen by the walk before the call that freed it
    assert line(5, "?at=0")["findings"] == line(5)["findings"] != []
    assert get("source?at=99", 404).json["errors"][0]["parameter"] == "at"


def test_the_output_is_told_as_it_was(get):
    told = get("output").json
    assert told["stdout"] == {"tail": "None\n", "total_bytes": 5}
    assert told["exceptions"][0]["type"] == "RuntimeError"
    assert told["warnings"][0]["line"] == 8


@pytest.mark.parametrize("path", [*LISTS, *SINGLE])
def test_reads_of_an_ended_run_are_kept_and_asked_for_again(get, path):
    first = get(path)
    people_change = path == "findings"  # the state of their groups
    assert first.headers["Cache-Control"] == ("no-cache" if people_change else "private, max-age=86400")
    again = get(path, 304, **{"If-None-Match": first.headers["ETag"]})
    assert again.data == b""
    assert again.headers["ETag"] == first.headers["ETag"]


@pytest.mark.parametrize("path", [*LISTS, *SINGLE])
def test_a_read_refuses_unknown_parameters(get, path):
    assert get(f"{path}?colour=red", 422).json["errors"][0]["parameter"] == "colour"


def test_a_run_that_has_not_ended_has_nothing_to_show_yet(site):
    run = site.submit()
    base = f"/v1/runs/{run}"
    assert site.client.get(f"{base}/findings").json["code"] == "not-judged-yet"
    assert site.client.get(f"{base}/tensors").json["items"] == []
    assert site.client.get(f"{base}/graph").json["boxes"] == []
    assert site.client.get(f"{base}/source").json["line_count"] == 8
    assert site.client.get(f"{base}/tensors").headers["Cache-Control"] == "no-cache"


def test_a_number_that_json_cannot_hold_is_told_as_text(site, samples):
    run = site.finished(samples.tutorial(nan=True))
    base = f"/v1/runs/{run}"
    text = site.client.get(f"{base}/tensors").text
    assert '"grad_norm":"NaN"' in text
    assert ":NaN" not in text
    full = site.client.get(f"{base}/tensors/1").json
    assert full["values"][0]["elements"][0] == ["NaN", "NaN"]
    assert full["snapshots"][1]["grad_stats"]["norm"] == "NaN"


def test_a_strangers_text_comes_through_json_as_itself(site, samples):
    words = samples.Words(name=samples.HOSTILE, message=samples.HOSTILE)
    run = site.finished(samples.tutorial(words))
    base = f"/v1/runs/{run}"
    assert site.client.get(f"{base}/tensors").json["items"][0]["name"] == f"{samples.HOSTILE}x"
    assert site.client.get(f"{base}/output").json["exceptions"][0]["message"] == samples.HOSTILE
    drawing = site.client.get(f"{base}/graph?format=svg").text
    assert "<img" not in drawing
    assert "</script>" not in drawing


def test_tensors_are_told_as_they_were_at_a_moment(get):
    before, after = (get(f"tensors?at={at}").json["items"] for at in ("before-backward:0", "6"))
    assert [row["name"] for row in before] == ["x", "W", "b", "z", "loss"]
    assert [(row["state"]["grad"], row["grad_norm"]) for row in before][1] == ("none", None)
    assert [row["state"]["grad"] for row in after] == ["none", "present", "present", "not-read", "not-read"]
    assert [row["name"] for row in get("tensors?at=1").json["items"]] == ["x", "W"]
    assert [row["name"] for row in get("tensors?at=6&grad=present&name=W").json["items"]] == ["W"]
    page = get("tensors?at=6&limit=2").json
    assert get(f"tensors?at=6&cursor={page['next_cursor']}").json["items"][0]["name"] == "b"
    get(f"tensors?at=7&cursor={page['next_cursor']}", 422)
    assert len(get("tensors?at=6&format=ndjson").text.splitlines()) == 5


@pytest.mark.parametrize(
    ("asked", "status", "parameter"),
    [
        ("at=99", 404, "at"),
        ("at=x", 422, "at"),
        ("at=6&sort=name", 422, "sort"),
        ("at=6&why=not-leaf", 422, "why"),
        ("at=6&nonfinite.gt=1", 422, "nonfinite.gt"),
    ],
)
def test_what_does_not_go_with_a_moment_is_named(get, asked, status, parameter):
    assert get(f"tensors?{asked}", status).json["errors"][0]["parameter"] == parameter
