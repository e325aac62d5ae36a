"""Findings and records in the formats of other programs, on both databases; a stranger's text in each of them."""

from __future__ import annotations

import csv
import io
import json
import math
from xml.etree import ElementTree

import msgspec
import pytest


def get(site, path, status=200, **headers):
    answer = site.client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def rows_of_csv(answer):
    return list(csv.DictReader(io.StringIO(answer.data.decode(), newline="")))


def test_a_list_as_ndjson_is_the_list_line_by_line(site, samples):
    run = site.finished(samples.tutorial(nan=True))
    for part in ("tensors", "snapshots", "tensors/1/snapshots", "findings"):
        items = get(site, f"/v1/runs/{run}/{part}").json["items"]
        answer = get(site, f"/v1/runs/{run}/{part}?format=ndjson")
        assert answer.mimetype == "application/x-ndjson"
        assert [json.loads(line) for line in answer.text.splitlines()] == items
        named = part.replace("tensors/1/snapshots", "tensor-1-snapshots")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{run}-{named}.ndjson"'


def test_a_list_as_csv_has_the_same_numbers_and_nan_as_a_word(site, samples):
    run = site.finished(samples.tutorial(nan=True))
    items = get(site, f"/v1/runs/{run}/snapshots").json["items"]
    rows = rows_of_csv(get(site, f"/v1/runs/{run}/snapshots?format=csv"))
    assert [(row["tensor"], row["moment"]) for row in rows] == [(str(i["tensor"]), str(i["moment"])) for i in items]
    assert "NaN" in {row["grad_stats.norm"] for row in rows}
    assert {row["is_leaf"] for row in rows} == {"true", "false"}
    assert rows[0]["grad_id"] == ""


def test_a_list_as_parquet_has_the_same_numbers_and_nan_as_a_number(site, samples):
    from pyarrow import parquet

    run = site.finished(samples.tutorial(nan=True))
    items = get(site, f"/v1/runs/{run}/snapshots").json["items"]
    table = parquet.read_table(io.BytesIO(get(site, f"/v1/runs/{run}/snapshots?format=parquet").data)).to_pylist()
    assert [row["moment"] for row in table] == [item["moment"] for item in items]
    norms = [row["grad_stats.norm"] for row in table if row["grad_stats.norm"] is not None]
    assert any(math.isnan(norm) for norm in norms)
    tensors = parquet.read_table(io.BytesIO(get(site, f"/v1/runs/{run}/tensors?format=parquet").data))
    assert tensors.column("state.is_leaf").to_pylist() == [True, True, True, False, False]


def test_an_export_goes_on_past_one_batch(site, monkeypatch):
    from service.api.findings import findings
    from service.api.records import record

    monkeypatch.setattr(record, "BATCH", 2)
    monkeypatch.setattr(findings, "BATCH", 1)
    run = site.finished()
    for part in ("tensors", "snapshots", "tensors/1/snapshots"):
        items = get(site, f"/v1/runs/{run}/{part}").json["items"]
        lines = get(site, f"/v1/runs/{run}/{part}?format=ndjson").text.splitlines()
        assert [json.loads(line) for line in lines] == items


def test_filters_hold_for_exports_too(site):
    run = site.finished()
    lines = get(site, f"/v1/runs/{run}/tensors?format=ndjson&is_leaf=true").text.splitlines()
    assert len(lines) == 3
    assert get(site, f"/v1/runs/{run}/findings?format=ndjson&level=error").text == ""


def test_accept_chooses_and_format_wins(site):
    run = site.finished()
    for accept, media in (
        ("*/*", "application/json"),
        ("text/html,*/*;q=0.8", "application/json"),
        ("text/csv", "text/csv"),
        ("application/json, text/csv;q=0.5", "application/json"),
    ):
        answer = get(site, f"/v1/runs/{run}/tensors", Accept=accept)
        assert (answer.mimetype, "Accept" in answer.vary) == (media, True)
    assert get(site, f"/v1/runs/{run}/tensors?format=ndjson", Accept="text/csv").mimetype == "application/x-ndjson"
    refused = get(site, f"/v1/runs/{run}/tensors", 406, Accept="image/png").json
    assert (refused["code"], refused["errors"][0]["header"]) == ("not-acceptable", "Accept")
    assert get(site, f"/v1/runs/{run}/tensors?format=xls", 422).json["errors"][0]["parameter"] == "format"


def test_another_format_is_another_etag(site):
    run = site.finished()
    tags = {get(site, f"/v1/runs/{run}/tensors?format={form}").headers["ETag"] for form in ("json", "csv", "ndjson")}
    assert len(tags) == 3


def test_findings_as_sarif_junit_and_annotations(site):
    run = site.finished()
    (finding,) = get(site, f"/v1/runs/{run}/findings").json["items"]
    log = json.loads(get(site, f"/v1/runs/{run}/findings?format=sarif").text)["runs"][0]
    (result,) = log["results"]
    assert (result["ruleId"], result["level"]) == (finding["rule"]["code"], "warning")
    assert result["partialFingerprints"] == {"backprobe/v1": finding["fingerprint"].rpartition(":")[2]}
    rule = log["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], rule["helpUri"]) == ("BP101", "http://localhost/rules/BP101")
    assert log["invocations"][0]["executionSuccessful"] is True
    suites = ElementTree.fromstring(get(site, f"/v1/runs/{run}/findings?format=junit").text)
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("3", "1", "0")
    lines = get(site, f"/v1/runs/{run}/findings?format=github").text.splitlines()
    assert lines[0].startswith("::warning file=snippet.py,line=5,")
    assert lines[-1] == "backprobe: 1 warning"


def test_no_format_invents_a_path_for_a_program_that_was_sent_without_one(site, samples):
    run = site.finished(body={"source": samples.TUTORIAL})
    snippet = get(site, f"/v1/runs/{run}").json["snippet"]
    log = json.loads(get(site, f"/v1/runs/{run}/findings?format=sarif").text)["runs"][0]
    place = log["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {
        "description": {"text": f"a program that was sent without the name of a file ({snippet})"}
    }
    assert place["region"]["startLine"] == 5
    assert log["automationDetails"]["id"] == "backprobe/unnamed/"
    assert "snippet.py" not in json.dumps(log)
    junit = get(site, f"/v1/runs/{run}/findings?format=junit").text
    (case,) = (element for element in ElementTree.fromstring(junit).iter("testcase") if "BP101" in element.get("name"))
    assert (case.get("file"), case.get("line"), case.get("classname")) == (None, "5", f"snippet {snippet}")
    assert "snippet.py" not in junit
    line = get(site, f"/v1/runs/{run}/findings?format=github").text.splitlines()[0]
    assert line.startswith(f"::warning title=BP101 non-leaf-grad-read::line 5 of snippet {snippet}: ")


def test_a_run_that_failed_is_not_a_clean_one(site):
    run = site.finished(status="failed", exit_code=1)
    log = json.loads(get(site, f"/v1/runs/{run}/findings?format=sarif").text)["runs"][0]
    assert (log["invocations"][0]["executionSuccessful"], log["invocations"][0]["exitCode"]) == (False, 1)
    suites = ElementTree.fromstring(get(site, f"/v1/runs/{run}/findings?format=junit").text)
    assert suites.get("errors") == "1"


def test_a_strangers_text_drives_no_format(site, samples):
    hostile = samples.Words(name=samples.HOSTILE)
    run = site.finished(samples.tutorial(hostile, text="=cmd|' /C calc'!A0\nx = 1\n" * 8))
    for part, form in (
        ("findings", "sarif"), ("findings", "junit"), ("findings", "github"), ("findings", "csv"), ("tensors", "csv"),
    ):  # fmt: skip
        text = get(site, f"/v1/runs/{run}/{part}?format={form}").text
        if form != "csv":  # data for programs: CSV keeps the name as it is
            assert "\x1b" not in text
            assert "\u202e" not in text
        if form == "junit":
            ElementTree.fromstring(text)


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"]
)
def test_a_cell_that_looks_like_a_formula_is_quoted(name):
    from service.web.table_cells import Column, csv_rows

    text = Column(name="name", steps=("name",), kind="text")
    number = Column(name="norm", steps=("norm",), kind="float")
    (row,) = csv.reader(io.StringIO(csv_rows([text, number], [{"name": name, "norm": -1.5}]).decode(), newline=""))
    assert row == [f"'{name}", "-1.5"]


def test_a_tenant_whose_queue_is_full_is_told_so(site):
    from store.tables import tenant

    with site.context.database.begin() as transaction:
        before = transaction.execute(tenant.select()).first().max_queued
        transaction.execute(tenant.update().values(max_queued=1))
    try:
        site.submit()
        answer = site.post()
        assert (answer.status_code, answer.json["code"]) == (429, "quota-exceeded")
        assert answer.json["detail"] == "quota queued: 1 runs queued, 1 allowed."
        assert int(answer.headers["Retry-After"]) > 0
    finally:
        with site.context.database.begin() as transaction:
            transaction.execute(tenant.update().values(max_queued=before))


def test_one_finding_is_read_by_its_id(site):
    run = site.finished()
    (finding,) = get(site, f"/v1/runs/{run}/findings").json["items"]
    assert get(site, f"/v1/findings/{finding['id']}").json == finding
    for other in ("f_01JD8PZ4T8W2K5C7Q9R3M6X1BA", "nonsense", run):
        assert get(site, f"/v1/findings/{other}", 404).json["code"] == "not-found"


@pytest.mark.parametrize("batch", [1, 1000])
def test_gradients_over_time_as_rows_in_every_format(site, samples, monkeypatch, batch):
    from pyarrow import parquet

    from service.api.records import history

    monkeypatch.setattr(history, "BATCH", batch)
    run = site.finished(samples.tutorial(nan=True))
    wanted = [(1, "W", 6, "grad_norm", "NaN"), (2, "b", 6, "grad_norm", 1.4142135381698608)]
    answer = get(site, f"/v1/runs/{run}/series?format=ndjson")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [(row["tensor"], row["name"], row["moment"], row["stat"], row["value"]) for row in rows] == wanted
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{run}-grad_norm.ndjson"'
    told = rows_of_csv(get(site, f"/v1/runs/{run}/series", Accept="text/csv"))
    assert [(row["name"], row["value"]) for row in told] == [("W", "NaN"), ("b", "1.4142135381698608")]
    table = parquet.read_table(io.BytesIO(get(site, f"/v1/runs/{run}/series?format=parquet").data))
    values = table.column("value").to_pylist()
    assert (math.isnan(values[0]), values[1]) == (True, 1.4142135381698608)
    assert len(get(site, f"/v1/runs/{run}/series?format=ndjson&name=b").text.splitlines()) == 1
    refused = get(site, f"/v1/runs/{run}/series?format=csv&points=3", 422).json
    assert refused["errors"][0]["parameter"] == "points"


@pytest.mark.parametrize("batch", [1, 1000])
def test_the_steps_as_rows_in_every_format(site, samples, monkeypatch, batch):
    from pyarrow import parquet

    from backprobe.record import Step
    from service.api.records import history

    monkeypatch.setattr(history, "BATCH", batch)
    steps = tuple(Step(step=n, sampled=True, loss=loss) for n, loss in enumerate((0.5, math.nan, None)))
    run = site.finished(msgspec.structs.replace(samples.tutorial(), steps=steps))
    told = rows_of_csv(get(site, f"/v1/runs/{run}/steps?format=csv&steps=1-9"))
    assert [(row["step"], row["loss"]) for row in told] == [("1", "NaN"), ("2", "")]
    answer = get(site, f"/v1/runs/{run}/steps?format=parquet")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{run}-steps.parquet"'
    first, second, third = parquet.read_table(io.BytesIO(answer.data)).column("loss").to_pylist()
    assert (first, math.isnan(second), third) == (0.5, True, None)
    assert get(site, f"/v1/runs/{run}/steps?format=csv&points=3", 422).json["errors"][0]["parameter"] == "points"
