"""Reads below a run over HTTP: series, heatmap, nodes, calls, retention and filtered rows."""

import json

import msgspec
import pytest


@pytest.fixture
def run(site):
    return site.finished()


@pytest.fixture
def get(site, run):
    def get_part(path, status=200):
        answer = site.client.get(f"/v1/runs/{run}/{path}")
        assert answer.status_code == status, answer.text
        return answer.json

    return get_part


def test_a_series_has_the_columns_that_were_asked_for(get):
    told = get("tensors/1/series?columns=grad_norm,value_norm,grad_norm")
    assert told == {
        "tensor": 1, "moments": [1, 6], "steps": [0, 0], "snapshots": 2, "exact": True,
        "columns": {"grad_norm": [None, 2.4494898319244385], "value_norm": [1.5, None]},
    }  # fmt: skip
    assert get("tensors/1/series?from=2&to=6")["moments"] == [6]
    assert get("tensors/1/series?points=1")["columns"]["grad_norm"] == [2.4494898319244385]
    assert get("tensors/1/series?from=7")["moments"] == []
    assert get("tensors/77/series", 404)["code"] == "not-found"


def test_nan_comes_through_as_its_word(site, samples):
    run = site.finished(samples.tutorial(nan=True))
    answer = site.client.get(f"/v1/runs/{run}/tensors/1/series")
    assert json.loads(answer.data, parse_constant=pytest.fail)["columns"]["grad_norm"] == [
        None,
        "NaN",
    ]
    rows = site.client.get(f"/v1/runs/{run}/series?name=W").json["rows"]
    assert [row["values"] for row in rows] == [["NaN"]]


def test_the_heatmap_has_a_row_for_each_tensor_that_passes(get):
    told = get("series?requires_grad=true&is_leaf=true")
    assert (told["stat"], told["moments"], told["exact"]) == ("grad_norm", [6], True)
    assert [(row["name"], row["values"]) for row in told["rows"]] == [
        ("W", [2.4494898319244385]),
        ("b", [1.4142135381698608]),
    ]
    assert [row["tensor"] for row in get("series?tensors=0,3&stat=value_norm&kind=after-statement")["rows"]] == [0, 3]
    assert get("series?steps=1-9")["moments"] == []


@pytest.mark.parametrize("path", ["series?tensors=1", "tensors/1/series?columns=grad_norm,grad_min"])
def test_what_is_too_much_is_refused_with_its_counts(get, monkeypatch, path):
    from store.queries.history import curves

    monkeypatch.setattr(curves, "MOST_VALUES", 0)
    told = get(path, 422)
    assert told["code"] == "too-much-asked"
    assert any(number in told["detail"] for number in ("1 tensors at 1 moments", "4 values"))


def test_a_call_is_told_with_its_passes_page_by_page(get):
    whole = get("backward-calls/0")
    assert (whole["call"]["nodes_run"], whole["passes"]["next_cursor"]) == (5, None)
    assert [row["position"] for row in whole["passes"]["items"]] == [0, 1, 2, 3, 4]
    assert [row["node"] for row in whole["passes"]["items"] if row["freed"]] == [2]
    first = get("backward-calls/0?limit=2")["passes"]
    second = get(f"backward-calls/0?limit=2&cursor={first['next_cursor']}")["passes"]
    assert first["items"] + second["items"] == whole["passes"]["items"][:4]
    assert get("backward-calls/1", 404)["code"] == "not-found"
    assert get(f"backward-calls?limit=2&cursor={first['next_cursor']}", 422)["code"] == "bad-cursor"


def test_nodes_are_listed_filtered_and_told(get):
    assert [row["node"] for row in get("nodes?type=MmBackward0,SumBackward0")["items"]] == [0, 2]
    assert [row["node"] for row in get("nodes?line=5")["items"]] == [1, 2]
    page = get("nodes?limit=4")
    assert [row["node"] for row in get(f"nodes?limit=4&cursor={page['next_cursor']}")["items"]] == [4]
    told = get("nodes/2")
    assert (told["node"]["freed_by"], told["saved"][0]["name"], told["next"][1]["to_node"]) == (0, "self", 3)
    assert get("nodes/9", 404)["code"] == "not-found"
    assert get("nodes/99999999999999999999", 404)["code"] == "not-found"


def test_moments_are_filtered_by_kind_and_line(get):
    assert [row["moment"] for row in get("moments?kind=before-backward,end")["items"]] == [5, 7]
    assert [(row["moment"], row["line"]) for row in get("moments?line=7")["items"]] == [(5, 7), (6, 7)]
    page = get("moments?limit=3")
    assert [row["moment"] for row in get(f"moments?limit=9&cursor={page['next_cursor']}")["items"]] == [3, 4, 5, 6, 7]


def test_tensors_come_in_the_order_that_was_asked_for_over_pages(get):
    whole = get("tensors?sort=-grad_norm")["items"]
    assert [row["name"] for row in whole[:2]] == ["W", "b"]
    page = get("tensors?sort=-grad_norm&limit=2")
    rest = get(f"tensors?sort=-grad_norm&cursor={page['next_cursor']}")
    assert page["items"] + rest["items"] == whole
    assert get(f"tensors?sort=name&cursor={page['next_cursor']}", 422)["code"] == "bad-cursor"


@pytest.mark.parametrize(
    ("path", "tensors"),
    [
        ("tensors?grad_norm.gt=2", [1]),
        ("tensors?value_norm.gt=1e0", [0, 1, 2, 3, 4]),
        ("tensors?grad_ever=true", [1, 2]),
        ("tensors?nonfinite.gt=0", []),
        ("tensors?role=parameter,buffer", []),
        ("snapshots?grad_norm.gt=2&kind=after-backward", [1]),
        ("snapshots?nan=true", []),
    ],
)
def test_tensors_and_snapshots_are_filtered_by_amounts(get, path, tensors):
    assert [row["tensor"] for row in get(path)["items"]] == tensors


@pytest.mark.parametrize(
    "path",
    [
        "series?stat=colour", "series?steps=9-1", "series?steps=1", "series?points=2001", "series?kind=never",
        "tensors/1/series?columns=grad_norm,colour", "tensors/1/series?points=0", "retention?top=51", "moments?step=-1",
        "retention?steps=0-99999999999", "nodes?held=yes", "leaf-grads?tensor=x", "tensors?grad_norm.gt=nan",
        "tensors?sort=grad", "tensors?held_bytes.gt=1.5", "tensors?grad_norm.gt=1e999", "modules?tensor=-1",
    ],
)  # fmt: skip
def test_a_read_refuses_what_is_not_as_described(get, path):
    assert get(path, 422)["code"] == "invalid-request"


@pytest.mark.parametrize(
    "path", ["series", "tensors/1/series", "nodes", "nodes/0", "backward-calls/0", "retention", "modules"]
)
def test_a_read_below_an_ended_run_is_not_sent_twice(site, run, path):
    answer = site.client.get(f"/v1/runs/{run}/{path}")
    assert answer.headers["Cache-Control"] == "private, max-age=86400"
    again = site.client.get(f"/v1/runs/{run}/{path}", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_modules_and_optimizers_are_found_by_a_tensor_of_theirs(site, samples):
    from backprobe import record as r

    weight, scale = (r.ModuleParameter(name=name, tensor=n, requires_grad=True) for n, name in enumerate("ws", 1))
    modules = (
        r.Module(module=0, cls="Net", site=1),
        r.Module(module=1, cls="Linear", parameters=(weight,), site=1),
        r.Module(module=2, cls="Scaled", buffers=(scale,), site=2),
    )
    steps = tuple(r.OptimizerTensor(tensor=n, group=0) for n in (1, 2))
    optimizers = (
        r.Optimizer(optimizer=0, cls="SGD", moment=1, site=1, tensors=steps),
        r.Optimizer(optimizer=1, cls="Adam", moment=1, site=1, tensors=steps[1:]),
    )
    run = site.finished(msgspec.structs.replace(samples.tutorial(), modules=modules, optimizers=optimizers))

    def numbers(asked):
        answer = site.client.get(f"/v1/runs/{run}/{asked}")
        assert answer.status_code == 200, answer.text
        return [row[asked.partition("s?")[0]] for row in answer.json["items"]]

    assert [numbers(f"modules?{asked}") for asked in ("tensor=1", "tensor=2", "tensor=3", "tensor=2&line=3")] == [
        [1], [2], [], [],
    ]  # fmt: skip
    assert [numbers(f"optimizers?tensor={n}") for n in (0, 1, 2)] == [[], [0], [0, 1]]


def test_the_passes_of_a_call_lead_on_by_a_link(site, samples):
    run = site.finished(samples.tutorial())
    first = site.client.get(f"/v1/runs/{run}/backward-calls/0?limit=3")
    assert first.headers["Link"].endswith('>; rel="next"')
    rest = site.client.get(first.headers["Link"].partition(">")[0].lstrip("<"))
    whole = site.client.get(f"/v1/runs/{run}/backward-calls/0").json["passes"]["items"]
    assert first.json["passes"]["items"] + rest.json["passes"]["items"] == whole
    assert len(whole) > 3
    while "Link" in rest.headers:
        rest = site.client.get(rest.headers["Link"].partition(">")[0].lstrip("<"))
    assert rest.json["passes"]["next_cursor"] is None
