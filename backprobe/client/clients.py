"""`Client` and `AsyncClient`: they drive the questions of `requests.py` over httpx, and add nothing to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar

import backprobe
from backprobe.client import requests
from backprobe.client.audits import submit_audit
from backprobe.client.requests import Pause, Question, Reply, Resumed, Run, Send

try:
    import httpx
    from httpx_sse import EventSource
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"backprobe.client needs {error.name}: `pip install 'backprobe[client]'`", name=error.name
    ) from error

T = TypeVar("T")
_TIMEOUT: Final = httpx.Timeout(10.0, read=requests.MOST_WAIT_SECONDS + 15.0)
"""Reading is waited for longer than the service may wait."""


def _settings(url: str, key: str | None) -> dict[str, Any]:
    headers = {"User-Agent": f"backprobe/{backprobe.__version__}", "Accept": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": url, "headers": headers, "timeout": _TIMEOUT, "follow_redirects": False}


def _request(send: Send) -> dict[str, Any]:
    sent = {"method": send.method, "url": send.path, "params": dict(send.params), "headers": dict(send.headers)}
    if send.content is not None:
        return {**sent, "content": send.content}
    return sent if send.body is None else {**sent, "json": send.body}


def _reply(response: httpx.Response) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(status=response.status_code, headers=headers, body=response.content)


class Client:
    """The service, asked from this thread. Close it, or use it as a context.

    Args:
        url: Of the service, `http://127.0.0.1:8000`.
        key: An API key; None: none is sent.
        transport: For tests.
    """

    def __init__(self, url: str, key: str | None = None, *, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(**_settings(url, key), transport=transport)

    @property
    def url(self) -> str:
        """Of the service, without a slash at its end."""
        return str(self._http.base_url).rstrip("/")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def _ask(self, question: Question[T]) -> T:
        answer: Reply | None = None
        while True:
            try:
                step = question.send(answer)
            except StopIteration as done:
                return done.value
            if isinstance(step, Pause):
                time.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = _reply(self._http.request(**_request(step)))
            except httpx.TransportError as error:
                answer = Reply(lost=f"{type(error).__name__}: {error}")

    def call(
        self, method: str, path: str, *, body: Any = None, headers: Mapping[str, str] | None = None, **params: Any
    ) -> Any:
        """Whatever else the API has (docs/api): `call("GET", "/v1/usage", **{"from": "2026-11-01"})`.

        Args:
            body: Goes as JSON; bytes go as they are, and `headers` says of which type.

        Returns:
            The value of the answer's JSON, the bytes of any other answer, None where it has no body.

        Raises:
            ApiError: it was refused. ServiceAway: the service did not answer.
        """
        return self._ask(requests.ask_answer(method, path, body=body, headers=headers, params=params))

    def submit(self, *, wait: float = 0, **body: Any) -> Run:
        """Submit a snippet: `source=` or `files=` and `entry=`, and whatever else `POST /v1/runs` takes.

        Raises:
            ApiError: it was refused; nothing was stored. ServiceAway: the service did not answer.
        """
        return self._ask(requests.submit_run(body, wait))

    def run(self, run: str, *, wait: float = 0) -> Run:
        """One run; with `wait`, as soon as it has ended, or after so many seconds as it stands."""
        return self._ask(requests.wait_for_run(run, wait))

    def rerun(self, run: str, **body: Any) -> Run:
        """Run the same program again; `body` names what is to be other than it was (`POST /v1/runs/{run}/rerun`)."""
        return requests.run_of(self._ask(requests.ask_json("POST", f"/v1/runs/{run}/rerun", body=body)))

    def cancel(self, run: str) -> Run:
        """Ask for a run's end."""
        return requests.run_of(self._ask(requests.ask_json("POST", f"/v1/runs/{run}/cancel")))

    def events(self, run: str, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the events of a run as they happen, until it has ended; `after` is the `seq` of the last one seen.

        A stream that breaks is asked for again, behind the last event that came.

        Raises:
            ApiError: it was refused. ServiceAway: the service did not answer.
        """
        stands = Resumed(run, after)
        while not stands.over:
            reply = Reply()
            try:
                with self._http.stream("GET", stands.path, headers=stands.headers) as response:
                    if response.status_code != 200:
                        response.read()
                        reply = _reply(response)
                    else:
                        for event in EventSource(response).iter_sse():
                            told = stands.decode_event(event.event, event.id, event.data)
                            if told is not None:
                                yield told
            except httpx.TransportError as error:
                reply = Reply(lost=f"{type(error).__name__}: {error}")
            if not stands.over:
                time.sleep(stands.broken(reply))

    def record(self, run: str) -> bytes:
        """Fetch the record of an ended run as the bytes of a file: `backprobe.load` reads them."""
        return self._ask(requests.record(run))

    def upload(self, record: bytes, *, project: str | None = None) -> Run:
        """Store the bytes of a record file as a new run; its findings come within seconds."""
        return self._ask(requests.upload_record(record, project))

    def begin_recording(self, run: str, **body: Any) -> Run:
        """Make the run of a recorder under an id that the caller chose: `backprobe.client.new_run_id()`.

        `body` as `PUT /v1/runs/{run}` takes it. The same again changes nothing.
        """
        return self._ask(requests.began(run, body))

    def send_frame(self, run: str, n: int, frame: bytes) -> int:
        """Send one frame, cut by `backprobe.record.split`; the number of the frame that is wanted next.

        Raises:
            ApiError: `frame-missing`: some before it have not come, and `run(...)` tells in `told["recorder"]` which is
                wanted. `run-ended`, `frame-differs`, `bad-record`, `too-large`: see the hint.
        """
        return self._ask(requests.put_frame(run, n, frame))

    def end_recording(self, run: str, **body: Any) -> Run:
        """Say how the job ended (`POST /v1/runs/{run}/end`); the run, ended. Again changes nothing."""
        return self._ask(requests.ask_ended_run(run, body))

    def audit(self, items: Iterable[Mapping[str, Any]], *, wait: float = 0, **head: Any) -> Mapping[str, Any]:
        """Begin an audit of up to 50,000 items; `head` and each item as `POST /v1/audits` takes them."""
        return self._ask(submit_audit(items, head, wait))

    def compare(self, a: str, b: str) -> Mapping[str, Any]:
        """Fetch what differs between two runs."""
        return self._ask(requests.ask_json("GET", "/v1/compare", {"a": a, "b": b}))

    def items(self, path: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page: `items("/v1/runs", status="failed")`."""
        cursor: str | None = None
        while True:
            found, cursor = self._ask(requests.page(path, params, cursor))
            yield from found
            if cursor is None:
                return

    def runs(self, **filters: Any) -> Iterator[Run]:
        """Yield runs, newest first."""
        return (requests.run_of(told) for told in self.items("/v1/runs", **filters))

    def findings(self, run: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield the findings of a run, `backprobe.finding/1`, worst first."""
        return self.items(f"/v1/runs/{run}/findings", **filters)

    def tensors(self, run: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield the tensors of a run with their last state."""
        return self.items(f"/v1/runs/{run}/tensors", **filters)


class AsyncClient:
    """The same, to be awaited. Close it with `aclose`, or use it as an asynchronous context."""

    def __init__(self, url: str, key: str | None = None, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._http = httpx.AsyncClient(**_settings(url, key), transport=transport)

    @property
    def url(self) -> str:
        """As `Client.url`."""
        return str(self._http.base_url).rstrip("/")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def _ask(self, question: Question[T]) -> T:
        answer: Reply | None = None
        while True:
            try:
                step = question.send(answer)
            except StopIteration as done:
                return done.value
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = _reply(await self._http.request(**_request(step)))
            except httpx.TransportError as error:
                answer = Reply(lost=f"{type(error).__name__}: {error}")

    async def call(
        self, method: str, path: str, *, body: Any = None, headers: Mapping[str, str] | None = None, **params: Any
    ) -> Any:
        """As `Client.call`."""
        return await self._ask(requests.ask_answer(method, path, body=body, headers=headers, params=params))

    async def submit(self, *, wait: float = 0, **body: Any) -> Run:
        """As `Client.submit`."""
        return await self._ask(requests.submit_run(body, wait))

    async def run(self, run: str, *, wait: float = 0) -> Run:
        """As `Client.run`."""
        return await self._ask(requests.wait_for_run(run, wait))

    async def rerun(self, run: str, **body: Any) -> Run:
        """As `Client.rerun`."""
        return requests.run_of(await self._ask(requests.ask_json("POST", f"/v1/runs/{run}/rerun", body=body)))

    async def cancel(self, run: str) -> Run:
        """As `Client.cancel`."""
        return requests.run_of(await self._ask(requests.ask_json("POST", f"/v1/runs/{run}/cancel")))

    async def events(self, run: str, *, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """As `Client.events`."""
        stands = Resumed(run, after)
        while not stands.over:
            reply = Reply()
            try:
                async with self._http.stream("GET", stands.path, headers=stands.headers) as response:
                    if response.status_code != 200:
                        await response.aread()
                        reply = _reply(response)
                    else:
                        async for event in EventSource(response).aiter_sse():
                            told = stands.decode_event(event.event, event.id, event.data)
                            if told is not None:
                                yield told
            except httpx.TransportError as error:
                reply = Reply(lost=f"{type(error).__name__}: {error}")
            if not stands.over:
                await asyncio.sleep(stands.broken(reply))

    async def record(self, run: str) -> bytes:
        """As `Client.record`."""
        return await self._ask(requests.record(run))

    async def upload(self, record: bytes, *, project: str | None = None) -> Run:
        """As `Client.upload`."""
        return await self._ask(requests.upload_record(record, project))

    async def begin_recording(self, run: str, **body: Any) -> Run:
        """As `Client.begin_recording`."""
        return await self._ask(requests.began(run, body))

    async def send_frame(self, run: str, n: int, frame: bytes) -> int:
        """As `Client.send_frame`."""
        return await self._ask(requests.put_frame(run, n, frame))

    async def end_recording(self, run: str, **body: Any) -> Run:
        """As `Client.end_recording`."""
        return await self._ask(requests.ask_ended_run(run, body))

    async def audit(self, items: Iterable[Mapping[str, Any]], *, wait: float = 0, **head: Any) -> Mapping[str, Any]:
        """As `Client.audit`."""
        return await self._ask(submit_audit(items, head, wait))

    async def compare(self, a: str, b: str) -> Mapping[str, Any]:
        """As `Client.compare`."""
        return await self._ask(requests.ask_json("GET", "/v1/compare", {"a": a, "b": b}))

    async def items(self, path: str, **params: Any) -> AsyncIterator[dict[str, Any]]:
        """As `Client.items`."""
        cursor: str | None = None
        while True:
            found, cursor = await self._ask(requests.page(path, params, cursor))
            for item in found:
                yield item
            if cursor is None:
                return

    async def runs(self, **filters: Any) -> AsyncIterator[Run]:
        """As `Client.runs`."""
        async for told in self.items("/v1/runs", **filters):
            yield requests.run_of(told)

    def findings(self, run: str, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """As `Client.findings`."""
        return self.items(f"/v1/runs/{run}/findings", **filters)

    def tensors(self, run: str, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """As `Client.tensors`."""
        return self.items(f"/v1/runs/{run}/tensors", **filters)
