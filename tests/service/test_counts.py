"""One run has one number of tensors, of steps and of backward calls, whoever is asked."""

from __future__ import annotations

import json
import re

import msgspec

from backprobe.cli import main
from backprobe.record import Step, dumps
from tests.service.test_pages import page_of, words


def counts_in(text: str) -> tuple[int, int, int, int]:
    """Tensors, steps looked at, steps made and backward calls as a text says them."""
    tensors, calls = re.search(r"(\d+) tensors?\b", text), re.search(r"(\d+) backward calls?\b", text)
    steps = re.search(r"(\d+) of (\d+) (?:steps looked at|steps recorded|taken in full)", text)
    assert tensors, text
    assert steps, text
    assert calls, text
    return int(tensors[1]), int(steps[1]), int(steps[2]), int(calls[1])


def test_terminal_report_page_and_api_count_alike(site, samples, tmp_path, capsys):
    whole = samples.tutorial()
    nameless = msgspec.structs.replace(whole.tensors[-1], tensor=len(whole.tensors))
    steps = tuple(Step(step=n, sampled=n < 2) for n in range(300))
    record = msgspec.structs.replace(whole, tensors=(*whole.tensors, nameless), steps=steps)
    file = tmp_path / "run.bprec"
    file.write_bytes(dumps(record))

    def run_show(form: str) -> str:
        main(["show", str(file), "--format", form])
        return capsys.readouterr().out

    said = json.loads(run_show("json"))
    run = site.finished(record)
    told = site.client.get(f"/v1/runs/{run}").json["record"]
    listed = site.client.get(f"/v1/runs/{run}/backward-calls").json["items"]
    found = {
        "terminal": counts_in(run_show("text")),
        "report": counts_in(run_show("html").partition('class="said"')[2]),
        "json": (
            sum(row["times"] for row in said["tensors"]), said["steps"]["looked_at"], said["steps"]["made"],
            len(said["backward_calls"]),
        ),
        "page": counts_in(words(page_of(site, f"/runs/{run}"))),
        "api": (told["tensors"], told["steps_looked_at"], told["steps_made"], told["backward_calls"]),
    }  # fmt: skip
    assert found == dict.fromkeys(found, (5, 2, 300, 1))
    assert len(listed) == 1
