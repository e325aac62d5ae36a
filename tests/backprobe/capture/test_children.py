"""`--children`: each child process of `multiprocessing` leaves a record beside its parent's, and runs as it would plain."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import backprobe
from backprobe.record import Record, check
from backprobe.record.processes import Family, relatives
from backprobe.show.amounts import count_noun
from tests.backprobe.capture.in_process import recorded
from tests.support.forks import Job, run

REAL = Path(__file__).parents[2] / "real_programs"

TRAINS = """\
import os, sys, torch, torch.multiprocessing as mp
def work(factor, told=None):
    w = torch.ones(2, requires_grad=True)
    h = w * factor
    h.sum().backward()
    if told is not None:
        told.put((w.grad.tolist(), h.grad))
    return w.grad.sum().item()
"""


def followed(
    tmp_path: Path, source: str, *arguments: str, options: tuple[str, ...] = (), **environment: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A script under `run --children`: how it ended and its report as JSON; what it does is what it does plain."""
    script = tmp_path / "script.py"
    script.write_text(TRAINS + textwrap.dedent(source))
    (plain,) = run([Job(mode="plain", path=str(script), arguments=list(arguments), environment=environment)])
    given = [
        *options,
        "--children",
        "--save",
        "r.bprec",
        "--format",
        "json",
        "--output",
        "r.json",
        str(script),
        *arguments,
    ]
    (done,) = run([Job(mode="command", arguments=["run", *given], cwd=str(tmp_path), environment=environment)])
    assert sorted(done["out"].splitlines()) == sorted(plain["out"].splitlines()), done["err"]
    assert own_stderr(done["err"]) == own_stderr(plain["err"])
    return done, json.loads((tmp_path / "r.json").read_text())


def own_stderr(text: str) -> list[str]:
    """The lines of stderr without the resource tracker's: a plain program of the fork server leaves it its semaphores."""
    return [line for line in text.splitlines() if "resource_tracker" not in line]


def record_of(tmp_path: Path, child: dict[str, Any]) -> Record:
    """Return the record of a child as it was saved; capture had no internal error in it."""
    record = backprobe.load(tmp_path / child["record"])
    check(record)
    if record.end is not None:
        assert record.end.own_errors == 0, record.end.own_error
    assert record.header.fallbacks == ()
    return record


def counts(report: dict[str, Any]) -> dict[str, int]:
    """How many child processes a report tells of, by what became of them."""
    return {row["what"]: row["seen"] for row in report["truncations"] if "child processes" in row["what"]}


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_children_of_each_start_method_leave_a_record_of_what_they_did(tmp_path: Path, method: str) -> None:
    done, report = followed(
        tmp_path,
        """\
        if __name__ == "__main__":
            mine = torch.ones(2, requires_grad=True)
            (mine * 2).sum().backward()
            context = mp.get_context(sys.argv[1])
            told = context.Queue()
            factors = (3, 5) if sys.argv[1] == "fork" else (3,)
            children = [context.Process(target=work, args=(factor, told), name=f"rank {factor}") for factor in factors]
            for child in children:
                child.start()
                print(told.get(), flush=True)
                child.join()
            print([child.exitcode for child in children])
        """,
        method,
    )
    assert done["code"] == 1, "a child's finding counts"
    assert report["findings"] == []
    named = [("rank 3", "r.1.bprec"), ("rank 5", "r.2.bprec")][: 2 if method == "fork" else 1]
    assert [(child["name"], child["record"]) for child in report["children"]] == named
    assert len({child["pid"] for child in report["children"]}) == len(named)
    assert counts(report) == {"followed child processes": len(named)}
    assert (
        f", {count_noun(len(named), 'child process', 'child processes')} in records of their own" in report["summary"]
    )
    for child in report["children"]:
        record = record_of(tmp_path, child)
        assert [finding["rule"]["code"] for finding in child["findings"]] == ["BP101"]
        assert child["findings"][0]["location"]["region"]["start_line"] == 4
        assert len(record.backward_calls) == 1
        assert record.end is not None
        assert (record.end.ending, record.end.exit_code) == ("ended", 0)
        assert "mine" not in {row.name for row in record.bindings}
    assert len(backprobe.load(tmp_path / "r.bprec").backward_calls) == 1


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_gradients_of_children_are_checked_when_that_is_asked_for(tmp_path: Path, method: str) -> None:
    done, report = followed(
        tmp_path,
        """\
        def train(told):
            w = torch.ones(3, requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                w.square().sum().backward()
                optimizer.step()
            told.put("trained")

        if __name__ == "__main__":
            context = mp.get_context(sys.argv[1])
            told = context.Queue()
            child = context.Process(target=train, args=(told,))
            child.start()
            print(told.get(), flush=True)
            child.join()
        """,
        method,
        options=("--check-gradients",),
    )
    assert done["code"] == 0, done["err"]
    (child,) = report["children"]
    rows = record_of(tmp_path, child).gradient_checks
    assert [row.step for row in rows] == [0, 2]
    assert all(row.verdict == "agrees" or row.why for row in rows), rows


@pytest.mark.usefixtures("fresh_python")
def test_ranks_of_a_real_program_are_looked_at(tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    source = (REAL / "ddp_gloo.py").read_text().replace('"8155"', f'"{port}"')
    assert str(port) in source
    done, report = followed(tmp_path, source)
    assert done["code"] == 0, report
    assert done["out"].count("epoch") == 2
    assert [len(record_of(tmp_path, child).backward_calls) for child in report["children"]] == [8, 8]
    assert [child["steps"]["made"] for child in report["children"]] == [8, 8]


@pytest.mark.usefixtures("fresh_python")
def test_workers_of_a_pool_are_looked_at_up_to_what_they_returned(tmp_path: Path) -> None:
    _, report = followed(
        tmp_path,
        """\
        if __name__ == "__main__":
            with mp.get_context("fork").Pool(2) as pool:
                print(pool.map(work, [2, 3, 5, 7], chunksize=1), pool.apply(os.getpid) > 0)
        """,
    )
    seen = counts(report)  # the pool may end a worker that had nothing to do before it has begun
    assert (seen["followed child processes"] >= 1, sum(seen.values())) == (True, 2)
    assert sum(len(record_of(tmp_path, child).backward_calls) for child in report["children"]) == 4


@pytest.mark.usefixtures("fresh_python")
def test_hogwild_children_train_what_the_parent_shares_without_a_false_word(tmp_path: Path) -> None:
    done, report = followed(
        tmp_path,
        """\
        def train(rank, model):
            torch.manual_seed(rank)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for _ in range(3):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(torch.rand(4, 2)), torch.zeros(4, 1))
                loss.backward()
                optimizer.step()
        if __name__ == "__main__":
            model = torch.nn.Linear(2, 1)
            model.share_memory()
            children = [mp.get_context("fork").Process(target=train, args=(rank, model)) for rank in range(2)]
            for child in children: child.start()
            for child in children: child.join()
            print([child.exitcode for child in children], model(torch.zeros(2)).requires_grad)
        """,
    )
    assert (done["code"], counts(report)) == (0, {"followed child processes": 2})
    assert [child["steps"]["made"] for child in report["children"]] == [3, 3]


def test_children_that_fail_are_killed_or_leave_at_once_end_as_plain_and_are_readable(tmp_path: Path) -> None:
    done, report = followed(
        tmp_path,
        """\
        import signal
        def raises():
            h = torch.ones(2, requires_grad=True).exp()
            h.sum().backward()
            h.sum().backward()
        def leaves(told):
            work(3, told)
            os._exit(7)
        def waits(told):
            work(4, told)
            signal.pause()
        def leaves_by_exit():
            work(2)
            sys.exit(5)
        if __name__ == "__main__":
            context = mp.get_context("fork")
            told = context.SimpleQueue()
            children = [context.Process(target=raises), context.Process(target=leaves, args=(told,)),
                        context.Process(target=waits, args=(told,), daemon=True), context.Process(target=leaves_by_exit)]
            os.close(2)
            os.open(os.devnull, os.O_WRONLY)
            for number, child in enumerate(children):
                child.start()
                if number in (1, 2):
                    print(told.get())
                if number == 2:
                    child.terminate()
                child.join()
            print([child.exitcode for child in children])
        """,
    )
    assert "[1, 7, -15, 5]" in done["out"]
    assert counts(report) == {"followed child processes": 4}
    records = [record_of(tmp_path, child) for child in report["children"]]
    assert [record.end and (record.end.ending, record.end.exit_code) for record in records] == [
        ("raised", 1), None, None, ("exited", 5),
    ]  # fmt: skip
    assert [row.type for row in records[0].raised] == ["RuntimeError"]
    assert [len(record.backward_calls) for record in records] == [2, 1, 1, 1]
    assert {finding["rule"]["code"] for finding in report["children"][0]["findings"]} & {"BP301", "BP302"}


@pytest.mark.usefixtures("fresh_python")
def test_a_child_that_is_not_joined_is_waited_for_and_its_own_child_is_followed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        TRAINS
        + textwrap.dedent("""\
        import atexit
        def outer(go):
            go.wait()
            mp.get_context("fork").Process(target=work, args=(3,), name="inner").start()
            work(2)
        if __name__ == "__main__":
            context = mp.get_context("fork")
            go = context.Event()
            context.Process(target=outer, args=(go,), name="outer").start()
            atexit.register(go.set)
        """)
    )
    # a fresh interpreter: what happens at its end is the subject
    command = [sys.executable, "-m", "backprobe", "run", "--children", script.name]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    heads = [line for line in done.stderr.splitlines() if line.startswith("child process ")]
    assert [head.partition(" (")[0] for head in heads] == ["child process outer", "child process inner"], done.stderr
    assert done.stderr.count("2 tensors, 1 backward call") == 2
    assert list(tmp_path.glob("*.bprec")) == []


def test_an_exception_that_torch_hands_from_a_rank_to_the_program_is_in_the_ranks_record(tmp_path: Path) -> None:
    done, report = followed(
        tmp_path,
        """\
        def raises(rank):
            h = torch.ones(2, requires_grad=True).exp()
            h.sum().backward()
            h.sum().backward()
        if __name__ == "__main__":
            mp.start_processes(raises, nprocs=1, start_method="fork")
        """,
    )
    assert done["code"] == 4
    (child,) = report["children"]
    record = record_of(tmp_path, child)
    assert record.end is not None
    assert (record.end.ending, [row.type for row in record.raised]) == ("raised", ["RuntimeError"])


def test_what_cannot_be_followed_is_counted_as_before(tmp_path: Path) -> None:
    (tmp_path / "r.3.bprec").write_bytes(b"of an earlier run")
    (tmp_path / "r.x.bprec").write_bytes(b"another's")
    _, report = followed(
        tmp_path,
        """\
        import multiprocessing.spawn, signal, subprocess
        from torch.utils.data import DataLoader
        if __name__ == "__main__":
            subprocess.run([sys.executable, "-c", "1"])
            print(len(list(DataLoader(torch.ones(2), num_workers=1, multiprocessing_context="fork"))))
            if os.fork() == 0:
                os._exit(0)
            os.wait()
            multiprocessing.spawn.set_executable("/bin/true")
            child = mp.get_context("spawn").Process(target=work, args=(2,))
            try:
                child.start()
            except BrokenPipeError:
                print("gone", file=open(os.devnull, "w"))
            else:
                child.join()
        """,
    )
    assert counts(report) == {"child processes": 3}
    assert report["children"] == []
    assert sorted(path.name for path in tmp_path.glob("r*.bprec")) == ["r.bprec", "r.x.bprec"]


def test_without_the_option_nothing_is_followed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(TRAINS + "p = mp.get_context('fork').Process(target=work, args=(2,))\np.start()\np.join()\n")
    arguments = ["run", "--save", "r.bprec", "--format", "json", "--output", "r.json", str(script)]
    (done,) = run([Job(mode="command", arguments=arguments, cwd=str(tmp_path))])
    report = json.loads((tmp_path / "r.json").read_text())
    assert (done["code"], counts(report), "children" in report) == (0, {"child processes": 1}, False)
    assert [path.name for path in tmp_path.glob("*.bprec")] == ["r.bprec"]


def test_places_of_a_family_are_told_in_order(tmp_path: Path) -> None:
    root = Family(record=str(tmp_path / "a.b.bprec"), index=str(tmp_path / "index"))
    assert relatives(root.index) == []
    first, second = root.child(1), root.child(2)
    for place, name in ((second, "second"), (first, "first"), (first.child(10), "late"), (first.child(9), "early")):
        place.note(name=name)
    first.note(pid=7)
    assert [(relative.record.name, relative.name, relative.pid) for relative in relatives(root.index)] == [
        ("a.b.1.bprec", "first", 7), ("a.b.1.9.bprec", "early", None), ("a.b.1.10.bprec", "late", None),
        ("a.b.2.bprec", "second", None),
    ]  # fmt: skip


def test_a_program_that_replaced_popen_before_the_capture_began_is_captured(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: None)
    assert recorded("import torch\nw = torch.ones(2, requires_grad=True)\n").tensors
