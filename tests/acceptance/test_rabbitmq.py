"""The same service with RabbitMQ as its broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.served import SMALL, Served

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\n"


def test_runs_are_woken_through_rabbitmq(postgres_url: str, rabbitmq_url: str, tmp_path: Path) -> None:
    servers = {"BACKPROBE_DATABASE_URL": postgres_url, "BACKPROBE_BROKER_URL": rabbitmq_url}
    stack = Served(tmp_path, servers | SMALL)
    try:
        assert [stack.run(SOURCE)["status"] for _ in range(5)] == ["succeeded"] * 5
        assert stack.get("/readyz")["status"] == "ready"
    finally:
        stack.stop()
        stack.client.close()
