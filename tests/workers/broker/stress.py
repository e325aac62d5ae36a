"""One process of the transport's stress test: `python -m tests.workers.broker.stress produce|consume TRANSPORT FOLDER NUMBER COUNT`.

A producer sends COUNT messages named NUMBER:0, NUMBER:1 ... and prints each name; it waits while thousands lie there,
because consumers that fall behind would measure the folder. A consumer prints the names of what it takes, one a line,
and acknowledges it afterwards; and "error CLASS" for each failure, until the file FOLDER/stop exists and nothing is left.
"""

import os
import sys
import time
from pathlib import Path
from queue import Empty
from typing import Any

from kombu import Connection

PADDING = "a" * 2000
BACKLOG = 5000


def channel(transport: str, folder: Path) -> Any:
    options = {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "control_folder": str(folder / "control"),
    }
    return Connection("filesystem://", transport=transport, transport_options=options).channel()


def produce(channel: Any, number: str, count: int) -> None:
    for k in range(count):
        while k % 100 == 0 and len(os.listdir(channel.data_folder_out)) > BACKLOG:
            time.sleep(0.05)
        name = f"{number}:{k}"
        channel._put("work", {"body": PADDING, "properties": {"delivery_tag": name}})
        print(f"{number}:{k}", flush=True)


def consume(channel: Any, stop: Path) -> None:
    idle = 0
    while idle < 3:
        try:
            name = channel._get("work")["properties"]["delivery_tag"]
            print(name, flush=True)
            channel.basic_ack(name)
            idle = 0
        except Empty:
            idle += stop.exists()
        except Exception as error:  # the stock transport fails in several ways
            print("error", type(error).__name__)


if __name__ == "__main__":
    role, transport, folder, number, count = sys.argv[1:]
    mine = channel(transport, Path(folder))
    if role == "produce":
        produce(mine, number, int(count))
    else:
        consume(mine, Path(folder) / "stop")
