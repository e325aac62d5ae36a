r"""The service's HTTP API from Python: `Client`, and `AsyncClient` with the same methods to be awaited.

    from backprobe.client import Client

    with Client("http://127.0.0.1:8000") as service:
        run = service.submit(source="import torch\\n...", wait=30)
        for finding in service.findings(run.id):
            print(finding["message"])

httpx is needed (`pip install 'backprobe[client]'`). A request that fails on the way or is asked to come back is sent
again, with pauses that grow; a POST carries an Idempotency-Key, so that it has one effect however often it is sent.
"""

from backprobe.client.clients import AsyncClient, Client
from backprobe.client.requests import ApiError, Run, ServiceAway
from backprobe.client.run_ids import new_run_id

__all__ = ["ApiError", "AsyncClient", "Client", "Run", "ServiceAway", "new_run_id"]
