"""A run of the service: submitted, waited for, told; and the run of a program that was submitted before, by its hash.

A task that is cancelled cancels its run: a newer save takes the older one's place.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from backprobe.language_server.runs.answers import from_service
from backprobe.language_server.runs.engine import NotRun
from backprobe.language_server.runs.program import Program
from backprobe.language_server.runs.results import Result, Unreadable, paths_of, place_result

if TYPE_CHECKING:
    from backprobe.client import AsyncClient
    from backprobe.language_server.settings import Settings

MOST_IN_A_PAGE: Final = 1000
LOOK_SECONDS: Final = 5.0
"""For a stored result: nobody waits for it."""

CANCEL_SECONDS: Final = 5.0
_ENDED: Final = "succeeded,failed,exceeded"


class Service:
    """A service, asked from the server's own loop.

    Args:
        url: Of it. key: of its API; None: none is sent.

    Raises:
        NotRun: httpx is not installed.
    """

    def __init__(self, url: str, key: str | None) -> None:
        try:
            from backprobe.client import AsyncClient
        except ModuleNotFoundError as error:
            raise NotRun(f"a service needs {error.name}: `pip install 'backprobe[client]'`") from None
        self.url = url.rstrip("/")
        self._client: AsyncClient = AsyncClient(self.url, key)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def run(self, program: Program, settings: Settings, rules: Mapping[str, Any]) -> Result:
        """Submit a program and tell what was seen.

        Args:
            rules: Which rules judge, as `POST /v1/runs` takes them.

        Raises:
            NotRun: the service is away, slow, or refused it, or the run was lost.
            asyncio.CancelledError: as for every task; the run was asked to end then.
        """
        try:
            async with asyncio.timeout(settings.service_seconds):
                with self._answers_read():
                    return await self._run(program, settings, rules)
        except TimeoutError:
            told = f"no result within {settings.service_seconds:g} s: try again, or set `service.seconds`"
            raise NotRun(f"the service at {self.url}: {told}") from None

    async def _run(self, program: Program, settings: Settings, rules: Mapping[str, Any]) -> Result:
        files = [{"path": path, "text": text} for path, text in program.files.items()]
        body: dict[str, Any] = {"files": files, "entry": program.entry, "isolation": settings.isolation}
        body |= {"arguments": list(program.arguments)} if program.arguments else {}
        body |= {"rules": dict(rules)} if rules else {}
        body |= {"capture": {"tier": settings.tier}} if settings.tier is not None else {}
        run = await self._submit_run(body)
        told: Mapping[str, Any] = {"ended": False}
        try:
            while not told["ended"]:
                told = await self._send_request(
                    "GET", f"/v1/runs/{run}", headers={"Prefer": "wait=30"}, include="findings,tensors"
                )
            return await self._run_to_result(told, program)
        finally:
            if not told["ended"]:
                await self._cancel(run)

    async def _submit_run(self, body: Mapping[str, Any]) -> str:
        """Submit a run and return its id. If canceled before the id is known, wait for the id and cancel the run."""
        asked = asyncio.ensure_future(self._send_request("POST", "/v1/runs", body=body))
        try:
            return str((await asyncio.shield(asked))["id"])
        except asyncio.CancelledError:
            with contextlib.suppress(NotRun, TimeoutError, KeyError, TypeError):
                await self._cancel(str((await asyncio.wait_for(asked, CANCEL_SECONDS))["id"]))
            raise

    async def _cancel(self, run: str) -> None:
        with contextlib.suppress(Exception):  # it ends by its limits then
            await asyncio.wait_for(self._client.cancel(run), CANCEL_SECONDS)

    async def find_stored_run(self, program: Program) -> Result | None:
        """Load what the newest ended run of exactly this program found, without sending its text; None if none.

        Raises:
            NotRun: the service is away or slow, or refused.
        """
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self._load_result(program)
        except TimeoutError:
            raise NotRun(f"the service at {self.url} does not answer within {LOOK_SECONDS:g} s") from None

    async def _load_result(self, program: Program) -> Result | None:
        with self._answers_read():
            found = await self._send_request("GET", "/v1/runs", snippet_sha256=program.sha256, status=_ENDED, limit=1)
            if not found["items"]:
                return None
            run = found["items"][0]["id"]
            told = await self._send_request("GET", f"/v1/runs/{run}", include="findings,tensors")
            return await self._run_to_result(told, program)

    @contextlib.contextmanager
    def _answers_read(self) -> Iterator[None]:
        """Report an answer that is not one of Backprobe's API: the address may be another server's."""
        try:
            yield
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            told = f"another answer than a service of this version gives ({type(error).__name__}: {error})"
            raise NotRun(f"the service at {self.url}: {told}") from None

    async def _run_to_result(self, run: Mapping[str, Any], program: Program) -> Result:
        if run["status"] == "lost":
            raise NotRun(f"the service lost the run: {(run['error'] or {}).get('message', run['id'])}")
        base = f"/v1/runs/{run['id']}"
        calls: list[Any] = []
        if (run.get("record") or {}).get("state") in {"partial", "whole"}:
            calls = (await self._send_request("GET", f"{base}/backward-calls", limit=MOST_IN_A_PAGE))["items"]
        lists = run["included"]
        try:
            result = from_service(
                run,
                findings=await self._whole(f"{base}/findings", lists["findings"]),
                tensors=await self._whole(f"{base}/tensors", lists["tensors"]),
                calls=calls,
                page=f"{self.url}/runs/{run['id']}",
            )
        except Unreadable as error:
            raise NotRun(f"{error}; is the service of another version?") from None
        files = {path: (program.absolute(path), text) for path, text in program.files.items()}
        folder = os.path.dirname(program.entry)  # noqa: PTH120 - a POSIX path of the program's, not of this machine
        beside = {path: path if path in files else f"{folder}/{path}".lstrip("/") for path in paths_of(result)}
        known = {told: files[path] for told, path in beside.items() if path in files}
        entry = program.absolute(program.entry)
        return place_result(result, entry, known | {program.entry: files[program.entry]})

    async def _whole(self, path: str, first: Mapping[str, Any]) -> list[Any]:
        """Load a whole list of which the first hundred items are known."""
        if first["next_cursor"] is None:
            return first["items"]
        return (await self._send_request("GET", path, limit=MOST_IN_A_PAGE))["items"]

    async def _send_request(self, method: str, path: str, **given: Any) -> Any:
        from backprobe.client import ApiError, ServiceAway

        try:
            return await self._client.call(method, path, **given)
        except ServiceAway as error:
            raise NotRun(f"the service at {self.url} does not answer: {error}") from None
        except ApiError as error:
            hint = "set BACKPROBE_API_KEY to a key of it" if error.status == 401 else error.hint
            raise NotRun(
                f"the service at {self.url} refused ({error.status} {error.code}): {error.detail} {hint}"
            ) from None
