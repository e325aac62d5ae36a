"""`docs/api` as a newcomer follows it: every command and every line of Python is sent to a running service, in order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backprobe.client import Client
from backprobe.record import split
from docs import api_guide, api_reference, api_steps
from service.openapi.examples import SNIPPET
from store.database.ids import new_id
from tests.acceptance.conftest import UNLIMITED
from tests.support.served import Served
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("full_tier")

API = Path(__file__).parents[2] / "docs" / "api"
DOCUMENT = json.loads((API.parent / "reference" / "openapi.json").read_text())
CUT = "=== cut ==="


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Embedded, as a newcomer has it, and empty."""
    environment = {"BACKPROBE_DATABASE_URL": "", "BACKPROBE_BROKER_URL": ""}
    running = Served(tmp_path_factory.mktemp("home"), environment | UNLIMITED)
    yield running
    running.close()


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)\n```", (API / page).read_text(), re.DOTALL)


def shell(commands: list[str], folder: Path, environment: dict[str, str]) -> list[tuple[int, str]]:
    """Exit code and output of each command, by one POSIX shell in a fresh folder, with this Python as `python3`."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    script = "\n".join(f"{command}\nprintf '\\n{CUT} %s\\n' $?" for command in commands)
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=os.environ | environment | {"PATH": path}, capture_output=True, text=True, errors="replace",
        timeout=240, check=False,
    )  # fmt: skip
    parts = re.split(rf"\n?{CUT} (\d+)\n", done.stdout)
    found = [(int(code), text) for text, code in zip(parts[::2], parts[1::2], strict=False)]
    assert len(found) == len(commands), done.stderr
    return found


def test_the_commands_of_the_guide_answer_as_it_shows(stack: Served, tmp_path: Path, require: Any) -> None:
    require("curl")
    commands = blocks("README.md", "sh")
    assert len(commands) == len(api_steps.STEPS)
    said = shell(commands, tmp_path, {"API": stack.url})
    for step, (code, text) in zip(api_steps.STEPS, said, strict=True):
        assert code == 0, (step.title, text)
        answer = text if isinstance(step.answer, str) else json.loads(text)
        assert api_guide.like(step.answer, answer), (step.title, answer)


def test_the_python_of_the_guide_answers_as_it_shows(stack: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API", stack.url)
    names: dict[str, Any] = {}
    for step, code in zip(api_steps.STEPS, blocks("README.md", "python"), strict=True):
        exec(code, names)
        assert api_guide.like(step.value or step.answer, names["answer"]), (step.title, names["answer"])
    names["service"].close()


def test_an_answer_that_is_not_as_shown_is_seen() -> None:
    shown = {"id": "key_...", "ended": True, "items": [{"a": 1, "...": "..."}], "...": "..."}
    good = {"id": "key_1", "ended": True, "items": [{"a": 1, "b": 2}], "more": 0}
    assert api_guide.like(shown, good)
    for wrong in ({"id": "run_1"}, {"ended": 1}, {"items": []}, {"items": [{"a": 2}]}):
        assert not api_guide.like(shown, good | wrong)
    assert not api_guide.like({"a": 1}, {"a": 1, "b": 2})
    assert not api_guide.like("retry: 1000", "nothing")


def leads(operation: dict[str, Any], status: str, answer: Any) -> dict[str, str]:
    """Ids in an answer, by the path parameter that they are for: the document's links say so."""
    found = {}
    for link in operation["responses"].get(status, {}).get("links", {}).values():
        for name, place in link["parameters"].items():
            value = answer
            for part in place.removeprefix("$response.body#/").split("/"):
                value = value[int(part)] if isinstance(value, list) else value[part]
            found[name] = value
    return found


def copy_of(operation: dict[str, Any]) -> Any:
    return json.loads(json.dumps(api_reference.body_of(operation)))


def variables(service: Client) -> dict[str, str]:
    """Something of each kind, new: what the examples name."""
    for hook in service.items("/v1/webhooks"):  # nothing of earlier examples is on its way when the test call is
        service.call("DELETE", f"/v1/webhooks/{hook['id']}")
    run, other = (service.submit(source=SNIPPET, wait=60) for _ in range(2))
    assert run.ended
    assert other.ended
    rank = service.submit(source=SNIPPET, labels={"group": "guide", "rank": "0", "world_size": "1"})
    known = {"run": run.id, "other": other.id, "watched": new_id("run"), "rank": rank.id}
    for path, item in DOCUMENT["paths"].items():
        body = copy_of(item["post"]) if "post" in item and "{" not in path else None
        if body is not None and path != "/v1/runs":
            body |= {"name": f"{body['name']} {uuid.uuid4()}"} if "name" in body else {}
            answer = service.call("POST", path, body=body)
            for status in ("200", "201", "202"):
                known |= leads(item["post"], status, answer)
    for path, item in DOCUMENT["paths"].items():
        if "get" in item and "{" not in path and item["get"]["responses"]["200"].get("links"):
            answer = service.call("GET", path)
            known = (leads(item["get"], "200", answer) if answer["items"] else {}) | known
    known["delivery"] = service.call("POST", f"/v1/webhooks/{known['webhook']}/test")["id"]
    return {api_reference.ALIASES.get(name, name): value for name, value in known.items()}


def phases(lines: list[str]) -> tuple[list[str], list[str]]:
    """What deletes an audit is for one that has ended, so it comes after all that begins its judging again."""
    last = [line for line in lines if "DELETE" in line and "/audits/" in line]
    return [line for line in lines if line not in last], last


def wait_until_judged(service: Client, audit: str) -> None:
    wait_until(lambda: service.call("GET", f"/v1/audits/{audit}")["status"] in {"judged", "canceled"}, "the audit ends")


@pytest.fixture(scope="module")
def service(stack: Served) -> Any:
    with Client(stack.url) as first:
        scopes = first.call("GET", "/v1/me")["scopes"]
        key = first.call("POST", "/v1/keys", body={"name": "reference", "scopes": scopes})["secret"]
    with Client(stack.url, key) as found:
        yield found, key


PAGES = sorted(page.name for page in API.glob("*.md") if page.name not in {"README.md", "models.md"})


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_reference_is_taken(
    stack: Served, service: Any, page: str, tmp_path: Path, require: Any
) -> None:
    require("curl")
    client, key = service
    commands = blocks(page, "sh")
    named = {name.upper(): value for name, value in variables(client).items()}
    (tmp_path / "run.bprec").write_bytes(client.record(named["RUN"]))
    (tmp_path / "frame.bin").write_bytes(next(split(client.record(named["RUN"]))))
    first, last = phases(commands)
    environment = named | {"API": stack.url, "KEY": key}
    said = shell(first, tmp_path, environment)
    wait_until_judged(client, named["AUDIT"])
    said += shell(last, tmp_path, environment)
    refused = [(command, text) for command, (code, text) in zip((*first, *last), said, strict=True) if code]
    assert refused == []


@pytest.mark.parametrize("page", PAGES)
def test_every_python_line_of_the_reference_is_taken(
    service: Any, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _key = service
    names = {**variables(client), "service": client, "Path": Path}
    (tmp_path / "run.bprec").write_bytes(client.record(names["run"]))
    (tmp_path / "frame.bin").write_bytes(next(split(client.record(names["run"]))))
    monkeypatch.chdir(tmp_path)
    first, last = phases(blocks(page, "python"))
    for line in (*first, *last):
        if line in last:
            wait_until_judged(client, names["audit"])
        exec(re.sub(r"'(gate|trials)'", r"'\1 of Python'", line), names)  # the curl of this page has taken the name


def test_every_operation_stands_on_a_page() -> None:
    told = "\n".join((API / page).read_text() for page in PAGES)
    for path, item in DOCUMENT["paths"].items():
        for method in item:
            assert f"\n## {method.upper()} {path}\n" in told
