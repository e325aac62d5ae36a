"""One audit of every program of the corpora: its verdicts beside single runs, and its price beside `python script.py`.

usage: python -m bench.audits [--corpora own,public,second] [--every 1] [--plain 24] [--stacks embedded,...]

The programs lie in a folder, one file each, and `backprobe audit FOLDER` is the one command. Counted is the
CPU time of the service with its workers, of every program's process, of the database's connections and of the command.
A single run is the same program captured in a fork of this machine's own and judged here by the same policy: no queue,
no sandbox, no database. `python script.py` is measured for some of the programs, half before the audit and half after.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from backprobe.record import Record
from backprobe.rules import judge
from backprobe.rules.policy import Found, Rules
from backprobe.show.formats.program_report import report_program
from bench.service import serving, stores
from bench.tables import middle, table, write
from tests.corpus.cases import Corpus, load_set
from tests.corpus.records import Records

WORKERS = "2"
TARGET = 8.0
"""Times as many scripts in a CPU second as `python script.py` one after the other."""

POLICY = '[policy]\nname = "corpora"\nseed = 0\n'
PLAIN_SECONDS = 120.0

Told = tuple[str, tuple[tuple[str, int], ...]]
"""A verdict, with the code and the line of each finding."""


@dataclass(kw_only=True)
class Audited:
    """What one audit came to.

    Attributes:
        seconds: Wall time. service, database, command: CPU seconds. told: by the name of the item.
        endings: by the same, how its run ended, why it was refused, and how many rules judged it.
    """

    seconds: float
    service: float
    database: float
    command: float
    told: dict[str, Told] = field(default_factory=dict)
    endings: dict[str, str] = field(default_factory=dict)

    @property
    def cpu(self) -> float:
        """CPU seconds in all."""
        return self.service + self.database + self.command


def programs(names: str, every: int) -> dict[str, str]:
    """Texts by file name; of each corpus every so many."""
    found: dict[str, str] = {}
    for name in names.split(","):
        found |= dict(list(_of_corpus(load_set(name)))[::every])
    return found


def _of_corpus(corpus: Corpus) -> Iterator[tuple[str, str]]:
    for case in corpus.cases:
        yield f"{corpus.name}_{case.id}_bad.py", case.bad
        yield f"{corpus.name}_{case.id}_good.py", case.good
    for program in corpus.correct:
        yield f"{corpus.name}_{program.name}_clean.py", program.text


def single(record: Record) -> Told:
    """What the audit's policy says of one record."""
    judgement, rules = judge(record), Rules()
    shown = [finding for finding in judgement.findings if finding.suppressed is None]
    found = [
        Found(
            rule=finding.rule.name, code=finding.rule.code, level=finding.level, confidence=finding.confidence,
            fingerprint=finding.fingerprint,
        )
        for finding in shown
    ]  # fmt: skip
    cells = rules.cells(found, (), [skipped.name for skipped in judgement.not_run])
    status = "succeeded" if report_program(record, judgement, script="").ended_well else "failed"
    places = sorted((finding.rule.code, finding.location.region.start_line) for finding in shown)
    return rules.verdict(status, cells, judged=True, backward_calls=len(record.backward_calls)), tuple(places)


def plain(texts: Sequence[str]) -> list[float]:
    """CPU seconds of `python script.py` for each."""
    spent: list[float] = []
    for text in texts:
        with tempfile.TemporaryDirectory(prefix="backprobe-bench-") as folder:
            Path(folder, "script.py").write_text(text)
            before = os.times()
            try:
                subprocess.run(
                    [sys.executable, "script.py"], cwd=folder, capture_output=True, timeout=PLAIN_SECONDS, check=False
                )
            except subprocess.TimeoutExpired:
                continue
            after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return spent


def audited(stack: str, folder: Path, most: int) -> Audited:
    """One audit of the folder on a fresh service of this stack."""
    with stores(stack) as where:
        environment = {**where, "BACKPROBE_API_KEY": "bench", "BACKPROBE_MOST_QUEUED": str(most)}
        with serving(environment, "--workers", WORKERS) as service:
            database = _name_of_database(where)
            before = _tree_seconds(service.process.pid), _database_seconds(database), os.times()
            began = time.monotonic()
            told = _run_audit(folder, service.port)
            seconds = time.monotonic() - began
            after = _tree_seconds(service.process.pid), _database_seconds(database), os.times()
    items = {
        item["name"]: (item["verdict"], tuple(sorted((f["rule"]["code"], _line(f)) for f in item["findings"])))
        for item in told["items"]
    }
    command = after[2].children_user + after[2].children_system - before[2].children_user - before[2].children_system
    endings = {
        item["name"]: f"{item['ending']}, {item['problem'] or 'not refused'}, {item['rules_judged']} rules"
        for item in told["items"]
    }
    return Audited(
        seconds=seconds, service=after[0] - before[0], database=after[1] - before[1], command=command, told=items,
        endings=endings,
    )  # fmt: skip


def _run_audit(folder: Path, port: int) -> Mapping[str, Any]:
    """`backprobe audit FOLDER`, and what it wrote as JSON.

    Raises:
        RuntimeError: it came to no verdict.
    """
    command = [str(Path(sys.executable).with_name("backprobe")), "audit", "programs", "--policy", "policy.toml"]
    out = folder / f"{port}.json"
    command += ["--url", f"http://127.0.0.1:{port}", "--format", "json", "--output", str(out)]
    environment = os.environ | {"BACKPROBE_API_KEY": "bench"}
    done = subprocess.run(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the audit ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(out.read_text())


def _line(told: Mapping[str, Any]) -> int:
    return int(told["location"]["region"]["start_line"])


def _tree_seconds(pid: int) -> float:
    """CPU seconds of a process, of those below it, and of all below it that have ended."""
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def _name_of_database(where: Mapping[str, str]) -> str | None:
    address = where.get("BACKPROBE_DATABASE_URL")
    return None if address is None else urlsplit(address).path.lstrip("/")


def _database_seconds(name: str | None) -> float:
    """CPU seconds of PostgreSQL's connections to this database that are open now."""
    total = 0.0
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if name is not None and words.startswith("postgres:") and name in words:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:2])
    return total


def differing(found: Audited, singles: Mapping[str, Told]) -> list[str]:
    """A line for each program that the audit and its single run tell differently."""
    lines: list[str] = []
    for name, alone in singles.items():
        here = found.told.get(f"programs/{name}")
        if here is None:
            lines.append(f"{name}: no item of the audit")
        elif here != alone:
            more, less = set(here[1]) - set(alone[1]), set(alone[1]) - set(here[1])
            lines.append(
                f"{name}: {here[0]} ({found.endings[f'programs/{name}']}), alone {alone[0]}; "
                f"only in the audit {sorted(more)}, only alone {sorted(less)}"
            )
    return lines


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", default="own,public,second")
    parser.add_argument("--every", type=int, default=1, help="of each corpus every so many programs")
    parser.add_argument("--plain", type=int, default=24, help="programs that are run by python itself")
    parser.add_argument("--stacks", default="embedded,PostgreSQL + Redis")
    asked = parser.parse_args()
    texts = programs(asked.corpora, asked.every)
    with Records() as records:
        singles = {name: single(records.of(text)) for name, text in texts.items()}
    sample = random.Random(0).sample(sorted(texts), min(asked.plain, len(texts)))
    rows: list[list[object]] = []
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="backprobe-bench-") as name:
        folder = Path(name)
        (folder / "programs").mkdir()
        (folder / "policy.toml").write_text(POLICY)
        for path, text in texts.items():
            (folder / "programs" / path).write_text(text)
        for stack in asked.stacks.split(","):
            half = len(sample) // 2
            alone = plain([texts[number] for number in sample[:half]])
            found = audited(stack, folder, 2 * len(texts))
            alone += plain([texts[number] for number in sample[half:]])
            wrong = differing(found, singles)
            lines += [f"{stack}: {difference}" for difference in wrong]
            rows.append(_row(stack, found, len(texts), alone, len(wrong)))
    head = (
        "stack", "programs", "told otherwise than alone", "wall, s", "CPU s: service and programs", "database",
        "command", "CPU s of a program", "`python script.py`, CPU s", "scripts per CPU second, times as many", "",
    )  # fmt: skip
    told = "".join(f"\n\n* {line}" for line in lines)
    write("audits", "One audit of the corpora's programs", f"{table(head, rows)}{told}")


def _row(stack: str, found: Audited, count: int, alone: Sequence[float], wrong: int) -> list[object]:
    ratio = sum(alone) / len(alone) / (found.cpu / count)
    return [
        stack, count, wrong, f"{found.seconds:.0f}", f"{found.service:.1f}", f"{found.database:.1f}",
        f"{found.command:.1f}", f"{found.cpu / count:.3f}",
        f"{sum(alone) / len(alone):.2f} ({len(alone)} programs, median {middle(alone):.2f})", f"{ratio:.1f}",
        "" if ratio >= TARGET else f"below {TARGET:g}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
