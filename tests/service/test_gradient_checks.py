"""The check of gradients over HTTP: its rows, page by page and by verdict, and on the run's page."""

import msgspec
import pytest

from backprobe.record import CutOff, GradientCheck


@pytest.fixture
def run(site, samples):
    rows = (
        GradientCheck(n=0, tensor=0, step=0, optimizer=None, verdict="agrees", numeric=0.5, used=0.5, precision="float64"),
        GradientCheck(
            n=1, tensor=1, step=0, verdict="differs", numeric=0.25, used=1.5, cause="backward", site=0, function="Cube"
        ),
        GradientCheck(
            n=2, tensor=1, step=2, verdict="cut", numeric=-2.0, explained_by="the program cuts the graph: <detach>",
            cause="cut", cuts=(CutOff(function="detach", site=0),),
        ),
        GradientCheck(n=3, tensor=None, why="other threads run"),
    )  # fmt: skip
    return site.finished(msgspec.structs.replace(samples.tutorial(), gradient_checks=rows))


def test_the_rows_are_listed_in_order_page_by_page(site, run):
    first = site.client.get(f"/v1/runs/{run}/gradient-checks?limit=3").json
    assert [row["verdict"] for row in first["items"]] == ["agrees", "differs", "cut"]
    cause = first["items"][1]
    assert (cause["function"], cause["numeric"], cause["used"]) == ("Cube", 0.25, 1.5)
    assert isinstance(cause["line"], int)
    assert first["items"][2]["cuts"] == [{"function": "detach", "site": 0}]
    rest = site.client.get(f"/v1/runs/{run}/gradient-checks?limit=3&cursor={first['next_cursor']}").json
    assert [(row["verdict"], row["why"]) for row in rest["items"]] == [("not-checked", "other threads run")]
    assert rest["next_cursor"] is None


def test_a_tensor_that_no_module_has_goes_by_the_name_that_the_program_gives_it(site, run):
    tensors = site.client.get(f"/v1/runs/{run}/tensors").json["items"]
    known = {tensor["tensor"]: tensor["fqn"] or tensor["name"] for tensor in tensors}
    items = site.client.get(f"/v1/runs/{run}/gradient-checks").json["items"]
    assert [row["name"] for row in items] == [known[0], known[1], known[1], None]
    assert known[0] is not None


def test_they_are_filtered_by_verdict_and_an_unknown_one_is_refused(site, run):
    told = site.client.get(f"/v1/runs/{run}/gradient-checks?verdict=cut").json
    assert [row["n"] for row in told["items"]] == [2]
    assert site.client.get(f"/v1/runs/{run}/gradient-checks?verdict=true").status_code == 422


def test_the_runs_page_shows_them_and_escapes_what_a_program_may_have_shaped(site, run):
    page = site.client.get(f"/runs/{run}").text
    assert "Is the gradient true" in page
    assert "&lt;detach&gt;" in page
    assert "the backward of Cube" in page


def test_a_run_without_the_check_has_no_row_and_no_table(site):
    run = site.finished()
    assert site.client.get(f"/v1/runs/{run}/gradient-checks").json["items"] == []
    assert "Is the gradient true" not in site.client.get(f"/runs/{run}").text


def test_a_request_asks_for_the_check_by_its_name(site):
    body = {"source": "import torch\n", "capture": {"check": "gradients"}}
    told = site.client.post("/v1/runs", json=body)
    assert told.status_code in (201, 202), told.text
    assert told.json["capture"]["check"] == "gradients"
    body["capture"]["check"] = "everything"
    assert site.client.post("/v1/runs", json=body).status_code == 422
