"""`backprobe.client` and its commands against a real server; its retries against a service that is made to fail."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from backprobe.client import ApiError, AsyncClient, Client, ServiceAway, requests
from backprobe.record import loads


@pytest.fixture
def impatient(monkeypatch):
    """Retries without pauses."""
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(requests, "LONGEST_PAUSE_SECONDS", 0.0)


def test_a_snippet_is_submitted_waited_for_and_read(served, samples):
    site, url = served
    with Client(url) as client:
        run = client.submit(source=samples.TUTORIAL, labels={"pr": "12"})
        assert (run.status, run.labels) == ("queued", {"pr": "12"})
        ending = threading.Thread(target=site.finish, args=(run.id, samples.tutorial()))
        ending.start()
        ended = client.run(run.id, wait=30)
        ending.join()
        assert (ended.status, ended.ended) == ("succeeded", True)
        (finding,) = client.findings(run.id)
        assert finding["rule"]["code"] == "BP101"
        assert [row["name"] for row in client.tensors(run.id, limit=2)] == ["x", "W", "b", "z", "loss"]
        assert [listed.id for listed in client.runs(status=["succeeded"])] == [run.id]
        assert client.compare(run.id, run.id)["tensors"]["aligned"] == 5
        assert client.cancel(run.id).status == "succeeded"
        again = client.rerun(run.id, seed=3)
        assert (again.status, again.labels, again.id != run.id) == ("queued", {"pr": "12"}, True)


def test_the_same_can_be_awaited(served, samples):
    site, url = served

    async def ask():
        async with AsyncClient(url) as client:
            run = await client.submit(source=samples.TUTORIAL)
            await asyncio.to_thread(site.finish, run.id, samples.tutorial())
            ended = await client.run(run.id, wait=30)
            findings = [finding["rule"]["code"] async for finding in client.findings(run.id)]
            tensors = [row["name"] async for row in client.tensors(run.id, limit=2)]
            runs = [listed.id async for listed in client.runs()]
            same = await client.compare(run.id, run.id)
            return ended.status, findings, len(tensors), runs == [run.id], same["findings"]["new"]

    # in a thread: the browser's tests leave a loop running in this one
    assert ThreadPoolExecutor(1).submit(asyncio.run, ask()).result() == ("succeeded", ["BP101"], 5, True, 0)


def test_events_come_as_they_happen_and_a_broken_stream_goes_on_behind_the_last(served, samples, impatient):
    site, url = served
    with Client(url) as client:
        run = client.submit(source=samples.TUTORIAL).id
        coming = client.events(run)
        first = next(coming)
        assert (first["kind"], first["seq"]) == ("queued", 1)
        site.finish(run, samples.tutorial())
        rest = list(coming)
        assert [first["seq"], *(event["seq"] for event in rest)] == list(range(1, len(rest) + 2))
        assert rest[-1]["kind"] == "status"
        assert list(client.events(run, after=rest[-2]["seq"])) == rest[-1:]
        assert list(client.events(run, after=rest[-1]["seq"])) == []

    async def awaited():
        async with AsyncClient(url) as client:
            return [event["seq"] async for event in client.events(run)]

    assert ThreadPoolExecutor(1).submit(asyncio.run, awaited()).result() == [1, *(event["seq"] for event in rest)]


def event(number, kind="status"):
    return f'id: {number}\nevent: {kind}\ndata: {{"seq": {number}}}\n\n'


class Streaming:
    """Answers with each of these in turn: a text of events, a status, or None for a broken line."""

    def __init__(self, *answers):
        self.answers, self.after = list(answers), []

    def __call__(self, request):
        self.after.append(request.headers.get("Last-Event-ID"))
        answer = self.answers.pop(0)
        if answer is None:
            raise httpx.ReadError("cut")
        if isinstance(answer, int):
            return httpx.Response(answer, json={"code": "too-many-streams", "detail": "no"} if answer >= 400 else None)
        return httpx.Response(200, text=answer, headers={"Content-Type": "text/event-stream"})


def test_a_stream_is_asked_for_again_while_that_can_help(impatient):
    end = "event: end\ndata: {}\n\n"
    service = Streaming(event(1), None, 503, event(2) + ": still here\n\n", event(3) + end)
    assert [event["seq"] for event in client_of(service).events("run_x")] == [1, 2, 3]
    assert service.after == [None, "1", "1", "1", "2"]
    assert list(client_of(Streaming(204)).events("run_x", after=9)) == []
    cuts = [None] * (requests.MOST_TRIES - 1)
    patient = Streaming(*cuts, event(1), *cuts, event(2) + end)
    assert [event["seq"] for event in client_of(patient).events("run_x")] == [1, 2]
    with pytest.raises(ServiceAway):
        list(client_of(Streaming(*[None] * requests.MOST_TRIES)).events("run_x"))
    with pytest.raises(ApiError) as refused:
        list(client_of(Streaming(*[503] * requests.MOST_TRIES)).events("run_x"))
    assert refused.value.code == "too-many-streams"
    gone = Streaming(404)
    with pytest.raises(ApiError):
        list(client_of(gone).events("run_x"))
    assert len(gone.after) == 1


def test_a_record_is_fetched_and_stored_elsewhere(served, samples):
    site, url = served
    run = site.finished()
    with Client(url) as client:
        data = client.record(run)
        other = client.upload(data)
        assert (other.ended, other.told["origin"]) == (True, "uploaded")
        assert loads(client.record(other.id)).tensors == loads(data).tensors
        with pytest.raises(ApiError) as refused:
            client.upload(b"no record")
    assert refused.value.code == "bad-record"

    async def awaited():
        async with AsyncClient(url) as client:
            return (await client.record(run)) == data, (await client.upload(data)).status

    assert ThreadPoolExecutor(1).submit(asyncio.run, awaited()).result() == (True, "succeeded")


def test_what_has_no_method_of_its_own_is_asked_by_call(served, samples):
    site, url = served
    run = site.finished(samples.tutorial())

    async def awaited():
        async with AsyncClient(url) as client:
            return await client.call("GET", f"/v1/runs/{run}", include=["findings"])

    with Client(url) as client:
        assert client.call("GET", "/v1/rules", limit=2)["items"][0]["code"] == "BP101"
        assert client.call("GET", f"/v1/runs/{run}/tensors", format="csv").startswith(b"tensor,")
        made = client.call("POST", "/v1/keys", body={"name": "ci", "scopes": ["read"]})
        assert client.call("DELETE", f"/v1/keys/{made['id']}") is None
        changed = client.call("PATCH", f"/v1/runs/{run}", body={"pinned": True}, headers={"If-Match": "*"})
        assert changed["pinned"] is True
        with pytest.raises(ApiError, match="if-match-needed"):
            client.call("PATCH", f"/v1/runs/{run}", body={"pinned": True})
    assert ThreadPoolExecutor(1).submit(asyncio.run, awaited()).result()["included"]["findings"]["items"]


def test_both_clients_have_the_same_methods():
    def methods(kind):
        return {name for name in vars(kind) if not name.startswith("_")} - {"close", "aclose"}

    assert methods(Client) == methods(AsyncClient)


def test_a_refusal_is_an_error_with_its_code_and_places(served):
    _, url = served
    with Client(url) as client, pytest.raises(ApiError) as refused:
        client.submit(source="x = (")
    assert (refused.value.status, refused.value.code) == (422, "syntax-error")
    assert refused.value.errors[0]["pointer"] == "#/source"
    assert str(refused.value.request_id).startswith("req_")


class Failing:
    """Answers with each of these in turn: a status, or None for a broken line."""

    def __init__(self, *answers):
        self.answers, self.seen = list(answers), []

    def __call__(self, request):
        self.seen.append(request)
        status = self.answers.pop(0)
        if status is None:
            raise httpx.ReadError("cut")
        if status == 200:
            return httpx.Response(200, json={"items": [], "next_cursor": None})
        return httpx.Response(status, json={"code": "rate-limited", "detail": "no"}, headers={"Retry-After": "0"})


def client_of(service):
    return Client("http://service", transport=httpx.MockTransport(service))


@pytest.mark.parametrize("first", [429, 502, 503, 504, None])
def test_what_may_pass_is_asked_again(impatient, first):
    service = Failing(first, first, 200)
    assert list(client_of(service).items("/v1/runs")) == []
    assert len(service.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500])
def test_what_will_not_pass_is_not(impatient, status):
    service = Failing(status)
    with pytest.raises(ApiError) as refused:
        list(client_of(service).items("/v1/runs"))
    assert refused.value.status == status


def test_it_gives_up_in_the_end(impatient):
    with pytest.raises(ServiceAway):
        list(client_of(Failing(*[None] * requests.MOST_TRIES)).items("/v1/runs"))
    with pytest.raises(ApiError) as refused:
        list(client_of(Failing(*[503] * requests.MOST_TRIES)).items("/v1/runs"))
    assert refused.value.code == "rate-limited"


def test_a_repeated_post_carries_one_key_and_two_posts_two(impatient):
    service = Failing(None, 503, 404, 404)
    client = client_of(service)
    for _ in range(2):
        with pytest.raises(ApiError):
            client.cancel("run_x")
    keys = [request.headers["Idempotency-Key"] for request in service.seen]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_a_pause_is_at_least_what_the_service_asks_for_and_grows():
    def pause(question, reply):
        step = question.send(reply)
        assert isinstance(step, requests.Pause)
        return step.seconds

    question = requests.call("GET", "/v1/runs")
    next(question)
    pauses = []
    for _ in range(4):
        pauses.append(pause(question, requests.Reply(status=503)))
        next(question)
    assert 0.1 <= pauses[0] <= 0.3
    assert 0.8 <= pauses[3] <= 2.4
    asking = requests.call("GET", "/v1/runs")
    next(asking)
    assert pause(asking, requests.Reply(status=429, headers={"retry-after": "7"})) == 7.0


def command(capsys, *words):
    from backprobe.cli import main

    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_submit_runs_and_compare_from_the_command_line(served, samples, capsys, tmp_path, monkeypatch):
    site, url = served
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKPROBE_URL", url)
    (tmp_path / "train.py").write_text(samples.TUTORIAL)
    code, out, _ = command(
        capsys, "submit", "train.py", "--label", "pr=12", "--ignore", "BP2,BP3", "--every", "5", "--seed", "3"
    )
    assert (code, out.split()[1]) == (0, "queued")
    run = out.split()[0]
    told = site.app.test_client().get(f"/v1/runs/{run}").json
    assert told["rules"] == {"ignore": ["BP2", "BP3"]}
    assert (told["capture"], told["seed"]) == ({"tier": "full", "every": 5, "histograms": False}, 3)
    site.finish(run, samples.tutorial())
    code, out, _ = command(capsys, "runs", "--status", "succeeded")
    assert (code, out.split()[0], "1 warning" in out, "train.py" in out) == (0, run, True, True)
    assert json.loads(command(capsys, "runs", "--format", "json")[1])[0]["labels"] == {"pr": "12"}
    code, out, _ = command(capsys, "compare", run, run)
    assert (code, out.splitlines()[0]) == (0, "findings: 0 new, 0 fixed, 1 as before")
    assert "5 aligned, 0 changed" in out


def test_submit_waits_and_its_exit_code_tells_what_was_found(served, samples, capsys, tmp_path, monkeypatch):
    site, url = served
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(samples.TUTORIAL)

    def work():
        while not (queued := site.app.test_client().get("/v1/runs?status=queued").json["items"]):
            pass
        site.finish(queued[0]["id"], samples.tutorial())

    worker = threading.Thread(target=work)
    worker.start()
    code, out, _ = command(capsys, "submit", "train.py", "--wait", "60", "--url", url)
    worker.join()
    assert code == 1
    assert "snippet.py:5:1: non-leaf-grad-read BP101 warning:" in out


@pytest.mark.parametrize("form", ["text", "json"])
def test_submit_tells_why_a_run_failed(served, samples, capsys, tmp_path, monkeypatch, form):
    from store.runs.model import RunError

    site, url = served
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(samples.TUTORIAL)
    error = RunError(
        whose="program", code="raised", type="ValueError", message="two\nlines \x1b[2J", path="train.py", line=4
    )

    def work():
        while not (queued := site.app.test_client().get("/v1/runs?status=queued").json["items"]):
            pass
        site.finish(queued[0]["id"], samples.tutorial(), status="failed", exit_code=1, error=error)

    worker = threading.Thread(target=work)
    worker.start()
    code, out, _ = command(capsys, "submit", "train.py", "--wait", "60", "--url", url, "--format", form)
    worker.join()
    assert code == 4
    if form == "json":
        told = json.loads(out)["run"]["error"]
        assert {name: told[name] for name in ("type", "path", "line")} == {
            "type": "ValueError", "path": "train.py", "line": 4,
        }  # fmt: skip
        return
    assert out.splitlines()[-3:-1] == ["the program failed: ValueError at train.py:4", "  two"]
    assert out.splitlines()[-1].startswith("  lines ")
    assert "\x1b" not in out


def test_submit_takes_a_module(served, capsys, tmp_path, monkeypatch):
    site, url = served
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text("x = 1\n")
    code, out, _ = command(capsys, "submit", "-m", "pkg.train", "pkg/train.py", "--url", url)
    assert code == 0
    assert site.app.test_client().get(f"/v1/runs/{out.split()[0]}").json["entry"] == "pkg.train"


def test_a_program_without_a_name_is_listed_as_that(served, samples, capsys, monkeypatch):
    site, url = served
    monkeypatch.setenv("BACKPROBE_URL", url)
    run = site.app.test_client().post("/v1/runs", json={"source": samples.TUTORIAL}).json
    code, out, _ = command(capsys, "runs")
    assert (code, f"snippet {run['snippet'][-6:]}" in out, "snippet.py" in out) == (0, True, False)


def test_a_terminal_is_told_how_the_run_stands_while_it_is_waited_for(served, samples, capsys, tmp_path, monkeypatch):
    from backprobe.cli import run_progress

    site, url = served
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(samples.TUTORIAL)
    told, usual = [], run_progress.standing

    def standing(run):
        told.append(usual(run))
        if len(told) == 1:
            threading.Thread(target=site.finish, args=(run.id, samples.tutorial())).start()
        return told[-1]

    monkeypatch.setattr(run_progress, "standing", standing)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    code, out, _ = command(capsys, "submit", "train.py", "--wait", "60", "--url", url)
    assert (code, "BP101" in out) == (1, True)
    assert told[0].endswith("is queued, next")
    assert told[-1].endswith("is succeeded: 5 tensors, 7 snapshots")


def test_a_run_of_the_service_is_shown_as_a_saved_record_is(served, capsys, tmp_path, monkeypatch):
    site, url = served
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKPROBE_URL", url)
    run = site.finished()
    code, out, _ = command(capsys, "show", run, "--format", "concise")
    (tmp_path / "saved.bprec").write_bytes(site.app.test_client().get(f"/v1/runs/{run}/record", buffered=True).data)
    assert (code, out) == command(capsys, "show", "saved.bprec", "--format", "concise")[:2]
    assert "BP101" in out
    (tmp_path / run).write_bytes(b"a file of that name")
    code, _, err = command(capsys, "show", run)
    assert (code, "not a record" in err) == (2, True)
    code, _, err = command(capsys, "rules", "check", "run_01JD0000000000000000000000")
    assert (code, "`backprobe show` takes the id of a run" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "run_01JD0000000000000000000000"), 2),
        (("show", "run_01JD0000000000000000000000", "--url", "http://127.0.0.1:1"), 3),
        (("submit", "none-such.py"), 2),
        (("submit", "bad.py"), 2),
        (("submit", "train.py", "--label", "x"), 2),
        (("runs", "--url", "ftp://x"), 2),
        (("compare", "a", "b"), 2),
        (("runs", "--url", "http://127.0.0.1:1"), 3),
    ],
)
def test_what_cannot_be_done_is_said(served, impatient, capsys, tmp_path, monkeypatch, words, code):
    _, url = served
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKPROBE_URL", url)
    (tmp_path / "train.py").write_text("x = 1\n")
    (tmp_path / "bad.py").write_text("x = (\n")
    ended, out, err = command(capsys, *words)
    assert (ended, out) == (code, "")
    assert err.startswith("backprobe: ")


def test_an_audit_is_begun_by_lines_waited_for_and_goes_on_when_there_is_room(served, impatient, samples):
    from store import tables

    def may_queue(count):
        with site.context.database.begin() as transaction:
            transaction.execute(tables.tenant.update().values(max_queued=count))

    class Freed(httpx.HTTPTransport):
        """After the first refusal there is room."""

        def handle_request(self, request):
            response = super().handle_request(request)
            refused.append(response.status_code)
            may_queue(10)
            return response

    site, url = served
    refused: list[int] = []
    items = [{"custom_id": str(n), "source": samples.TUTORIAL} for n in range(3)]
    may_queue(2)
    with Client(url, transport=Freed()) as client:
        audit = client.audit(iter(items), name="nightly", labels={"pr": "12"})
        assert (refused, audit["status"], audit["items"]["total"]) == ([429, 202], "running", 3)
        assert [row["custom_id"] for row in client.items(f"/v1/audits/{audit['id']}/items")] == ["0", "1", "2"]
    known = site.client.get("/v1/runs").json["items"][0]["id"]
    site.client.post(f"/v1/runs/{known}/cancel")

    async def waited():
        async with AsyncClient(url) as client:
            return await client.audit([{"custom_id": "a", "run": known}], wait=20)

    with site.judging():
        told = ThreadPoolExecutor(1).submit(asyncio.run, waited()).result()
    assert (told["status"], told["verdict"], told["items"]["not_run"]) == ("judged", "failed", 1)
