"""`backprobe mcp --url`: an agent's tools over a real service, by the SDK's client over stdio."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest


@pytest.fixture
def there(served):
    """A run that has ended."""
    return served[0].finished()


@pytest.fixture
def working(served, samples, there):
    """What ends the next run that is queued, as a worker would."""
    site, _ = served
    over = threading.Event()

    def work():
        while not over.wait(0.02):
            if queued := site.app.test_client().get("/v1/runs?status=queued").json["items"]:
                site.finish(queued[0]["id"], samples.tutorial())
                return

    worker = threading.Thread(target=work)
    worker.start()
    yield
    over.set()
    worker.join()


@pytest.mark.usefixtures("fresh_python")
def test_runs_of_the_service_are_listed_told_and_made(served, working, there, samples, tmp_path):
    from mcp import Client, StdioServerParameters

    site, url = served

    async def talk():
        words = ["-m", "backprobe", "mcp", "--url", url, "--allow-run", "--seconds", "120"]
        async with Client(StdioServerParameters(command=sys.executable, args=words, cwd=tmp_path)) as client:

            async def call_tool(tool, **arguments):
                result = await client.call_tool(tool, arguments)
                return not result.is_error, result.content[0].text

            return [
                await call_tool("list_runs"),
                await call_tool("list_findings", run=there),
                await call_tool("run_program", source=samples.TUTORIAL),
                await call_tool("list_findings", run="run_01JD0000000000000000000000"),
            ]

    listed, found, made, missing = asyncio.run(asyncio.wait_for(talk(), 200))
    assert listed[0]
    assert f"{there}: succeeded" in listed[1]
    assert "1. BP101 non-leaf-grad-read (warning, proven) at " in found[1]
    assert made[0]
    assert made[1].startswith("run run_")
    assert "BP101" in made[1]
    assert "  | None" in made[1]
    assert not missing[0]
    assert "the service has no record of run_01JD0000000000000000000000" in missing[1]
    run = made[1].split()[1].rstrip(":")
    assert site.app.test_client().get(f"/v1/runs/{run}").json["labels"] == {"client": "mcp"}


def test_an_address_that_is_none_is_refused_before_the_protocol_begins(tmp_path, capsys):
    from backprobe.cli import main

    assert main(["mcp", "--url", "ftp://x"]) == 2
    assert main(["mcp", "--folder", str(tmp_path / "none")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "begins with http:// or https://" in said.err
    assert "there is no folder" in said.err
