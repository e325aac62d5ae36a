"""A run's record out of the database and in again, on both databases; what is imported is a stranger's."""

import argparse
import json
import math

import msgspec
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from backprobe import record as r
from backprobe.record import BadRecord, dumps
from backprobe.record.encoding.codec import MAGIC
from backprobe.rules import ruleset
from store import tables
from store.admin import commands
from store.recorders import record_uploads
from store.recorders.record_uploads import upload
from store.records import exports, storage
from store.records.exports import CannotExport, read_file, record_of, write_file, write_parquet
from store.records.mapping import plain
from store.runs import lifecycle


def loaded(database, run):
    with database.read() as reading:
        return storage.load(reading, run.key)


def test_what_comes_back_from_a_file_is_the_record_that_went_out(database, ended_run, a_record, same, tmp_path):
    run, file = ended_run(), tmp_path / "one.bp"
    record = record_of(database, run.id)
    assert write_file(record, file) == file.stat().st_size
    again = upload(database, read_file(file), None)
    assert same(loaded(database, again), record) == []
    assert same(record, a_record) in ([], ["streams"])
    assert (again.origin, again.status, again.record.state, again.snippet) == ("uploaded", "succeeded", "whole", None)
    assert (again.record.tensors, again.record.snapshots, again.ended) == (3, 4, True)
    with pytest.raises(CannotExport, match="exists"):
        write_file(record, file)


def test_parquet_holds_every_row_of_every_table(any_record, tmp_path_factory):
    import hypothesis

    @hypothesis.settings(max_examples=15, deadline=None, database=None)
    @hypothesis.given(any_record)
    def holds(record):
        folder = tmp_path_factory.mktemp("parquet") / "run"
        assert write_parquet(record, folder) == len(r.TABLES)
        for table, row in r.TABLES.items():
            read = pq.read_table(folder / f"{table}.parquet").to_pylist()
            assert len(read) == len(getattr(record, table))
            for saved, kept in zip(getattr(record, table), read, strict=True):
                for field in msgspec.structs.fields(row):
                    value = getattr(saved, field.name)
                    if isinstance(value, r.Statistics):
                        stem = "grad" if field.name == "grad_stats" else field.name
                        assert (kept[f"{stem}_nan"], kept[f"{stem}_kind"]) == (value.nan, value.kind)
                    elif isinstance(kept.get(field.name), str) and not isinstance(value, str):
                        assert json.loads(kept[field.name]) == json.loads(msgspec.json.encode(plain(value)))
                    elif field.name in kept:
                        assert kept[field.name] == value or math.isnan(value)
        assert json.loads((folder / "header.json").read_text())["header"]["tier"] == record.header.tier

    holds()


def test_a_folder_that_exists_or_a_missing_library_is_said(a_record, tmp_path, monkeypatch):
    with pytest.raises(CannotExport, match="exists"):
        write_parquet(a_record, tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(CannotExport, match=r"install backprobe\[parquet\]"):
        write_parquet(a_record, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_record_or_an_end_is_not_exported(database, submit, claim):
    run = submit()
    with pytest.raises(CannotExport, match="is queued"):
        record_of(database, run.id)
    with pytest.raises(CannotExport, match="there is no run"):
        record_of(database, "run_x")
    with database.begin() as transaction:
        lifecycle.request_cancel(transaction, run.id)
    with pytest.raises(CannotExport, match="has no record: none"):
        record_of(database, run.id)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"PK\x03\x04", "BPREC"), (MAGIC, "no header"), (MAGIC + b"\xff\xff\xff\x7f", "frame of"), (b"", "BPREC")],
)
def test_a_file_that_is_no_record_is_refused_in_one_line(tmp_path, content, said):
    file = tmp_path / "x.bp"
    file.write_bytes(content)
    with pytest.raises(CannotExport, match=said) as refused:
        read_file(file)
    assert "\n" not in str(refused.value)


def test_a_file_over_the_cap_is_not_even_read(tmp_path, a_record, monkeypatch):
    file = tmp_path / "x.bp"
    file.write_bytes(dumps(a_record))
    monkeypatch.setattr(exports, "MOST_BYTES", 100)
    monkeypatch.setattr(type(file), "read_bytes", None)
    with pytest.raises(CannotExport, match="of up to 100 is taken"):
        read_file(file)


def test_a_number_that_no_column_holds_leaves_no_run_and_no_row(database, a_record):
    moment = msgspec.structs.replace(a_record.moments[0], step=2**40)
    broken = msgspec.structs.replace(a_record, moments=(moment, *a_record.moments[1:]))
    with pytest.raises(BadRecord, match=r"too large|is the most"):
        upload(database, broken, None)
    with database.read() as reading:
        assert lifecycle.page(reading).items == ()
        for table in (tables.run, tables.run_attempt, tables.run_event, tables.outbox):
            assert reading.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == 0, table.name


def test_how_it_ended_is_what_the_record_says(a_record):
    raised = r.Raised(n=0, type="ValueError", message="no")
    cut = msgspec.structs.replace(a_record, end=None)
    ends = {
        "succeeded": a_record,
        "record-cut": cut,
        "exited": msgspec.structs.replace(a_record, end=r.End(ending="exited", exit_code=3)),
        "raised": msgspec.structs.replace(
            a_record, raised=(raised,), end=r.End(ending="raised", exit_code=1, exception=0)
        ),
    }
    for word, record in ends.items():
        ending = record_uploads.ending_of(record)
        assert (ending.status, ending.error and ending.error.code) in ((word, None), ("failed", word))


def test_the_commands_carry_a_run_from_one_place_to_another(
    database, database_url, ended_run, tmp_path, monkeypatch, capsys
):
    if not database.sqlite:
        monkeypatch.setenv("BACKPROBE_DATABASE_URL", database_url)
    run = ended_run()

    def command(*words):
        parser = argparse.ArgumentParser()
        under = parser.add_subparsers()
        commands.export(under)
        commands.import_(under)
        arguments = parser.parse_args([*words, "--home", str(tmp_path)])
        return arguments.run(arguments), *capsys.readouterr()

    file = str(tmp_path / "one.bp")
    assert command("export", run.id, file)[0] == 0
    assert f"{len(r.TABLES)} tables" in command("export", run.id, str(tmp_path / "folder"), "--parquet")[1]
    code, out, _ = command("import", file)
    assert (code, "succeeded" in out) == (0, True)
    with database.read() as reading:
        again = lifecycle.get(reading, out.split(":")[0])
    assert (again.findings.ruleset, again.origin) == (ruleset(), "uploaded")
    for words in (("export", run.id, file), ("export", "run_x", "y"), ("import", "nothing.bp")):
        code, out, err = command(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
    code, _, err = command("import", file, "--tenant", "nobody")
    assert (code, "no tenant" in err) == (2, True)
