"""The embedded broker's transport: nothing torn, nothing taken twice, under load; the stock one as control."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection, Exchange, Queue

from store.database.settings import EMBEDDED_TRANSPORT
from tests.support.resources import ROOT

pytestmark = pytest.mark.usefixtures("full_tier")

STRESS = "tests.workers.broker.stress"
STOCK = "kombu.transport.filesystem:Transport"
PRODUCERS, CONSUMERS, MESSAGES, BURNERS = 2, 3, 1500, 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "messages").mkdir()
    (tmp_path / "control").mkdir()
    return tmp_path


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system than the temporary one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        for name in ("messages", "control"):
            (Path(path) / name).mkdir()
        yield Path(path)


@pytest.fixture
def load() -> Iterator[None]:
    """A processor with more to do than it has cores."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BURNERS)]
    yield
    for burner in burners:
        burner.kill()
        burner.wait()


def spawn(role: str, transport: str, folder: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", STRESS, role, transport, str(folder), str(number), str(MESSAGES)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)


def taken_names(transport: str, folder: Path) -> tuple[Counter[str], list[str]]:
    """What consumers took while producers sent: names with how often, and the errors they met."""
    consumers = [spawn("consume", transport, folder, k) for k in range(CONSUMERS)]
    producers = [spawn("produce", transport, folder, k) for k in range(PRODUCERS)]
    for producer in producers:
        producer.communicate(timeout=600)
    (folder / "stop").touch()
    lines = [line for consumer in consumers for line in consumer.communicate(timeout=600)[0].splitlines()]
    return Counter(line for line in lines if ":" in line), [line for line in lines if line.startswith("error")]


@pytest.mark.usefixtures("load")
def test_every_message_is_taken_once_on_a_loaded_machine(folder: Path) -> None:
    names, errors = taken_names(EMBEDDED_TRANSPORT, folder)
    assert errors == []
    assert names == Counter(f"{k}:{n}" for k in range(PRODUCERS) for n in range(MESSAGES))
    assert list((folder / "messages").iterdir()) == []


@pytest.mark.usefixtures("load")
def test_every_message_is_taken_once_across_file_systems(elsewhere: Path) -> None:
    names, errors = taken_names(EMBEDDED_TRANSPORT, elsewhere)
    assert errors == []
    assert names == Counter(f"{k}:{n}" for k in range(PRODUCERS) for n in range(MESSAGES))


@pytest.mark.usefixtures("load")
def test_the_stock_transport_loses_messages_which_is_why_ours_exists(elsewhere: Path) -> None:
    if elsewhere.stat().st_dev == Path(tempfile.gettempdir()).stat().st_dev:
        pytest.skip("/dev/shm is not another file system here")
    for _ in range(5):
        names, errors = taken_names(STOCK, elsewhere)
        if errors or names != Counter(f"{k}:{n}" for k in range(PRODUCERS) for n in range(MESSAGES)):
            return
        shutil.rmtree(elsewhere / "messages")
        (elsewhere / "messages").mkdir()
        (elsewhere / "stop").unlink()
    pytest.fail("the control lost nothing in five tries: is this transport still needed?")


def test_what_one_process_publishes_another_receives_by_its_queue(folder: Path) -> None:
    options = {name: str(folder / "m") for name in ("data_folder_in", "data_folder_out")}
    options |= {"control_folder": str(folder / "c"), "polling_interval": 0.01}
    name = f"queue.{uuid.uuid4().hex}"  # kombu keeps the bindings of a process, whatever folder they were made in
    queue = Queue(name, Exchange(name), routing_key=name)
    with Connection("filesystem://", transport=EMBEDDED_TRANSPORT, transport_options=options) as connection:
        with connection.Producer() as producer:
            producer.publish({"n": 1}, declare=[queue], exchange=queue.exchange, routing_key=queue.routing_key)
        got: list[object] = []
        with connection.Consumer([queue], callbacks=[lambda body, message: (got.append(body), message.ack())]):
            deadline = time.monotonic() + 30
            while not got and time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):  # it looks in short spells, to hear of signals
                    connection.drain_events(timeout=1)
    assert got == [{"n": 1}]


def test_a_message_left_half_written_is_never_read(folder: Path) -> None:
    (folder / "messages" / ".abc.unfinished").write_text("{", encoding="utf-8")
    names, errors = taken_names(EMBEDDED_TRANSPORT, folder)
    assert errors == []
    assert len(names) == PRODUCERS * MESSAGES


@pytest.fixture
def channel(folder: Path) -> Iterator[Callable[[], Any]]:
    """`channel()`: one more reader or writer on the folder."""
    options = {name: str(folder / "messages") for name in ("data_folder_in", "data_folder_out")}
    options |= {"control_folder": str(folder / "control")}
    made = []

    def open_channel() -> Any:
        connection = Connection("filesystem://", transport=EMBEDDED_TRANSPORT, transport_options=options)
        made.append(connection)
        return connection.channel()

    yield open_channel
    for connection in made:
        connection.release()


TAKE_AND_HANG = """
import sys
from pathlib import Path
from tests.workers.broker.stress import channel
mine = channel(sys.argv[1], Path(sys.argv[2]))
print(mine._get("work")["properties"]["delivery_tag"], flush=True)
sys.stdin.read()
"""


def put(channel: Any, *names: str) -> None:
    for name in names:
        channel._put("work", {"body": "x", "properties": {"delivery_tag": name}})


def take_all(channel: Any) -> list[str]:
    """Everything that can be taken, each acknowledged."""
    found = []
    with contextlib.suppress(Empty):
        while True:
            found.append(channel._get("work")["properties"]["delivery_tag"])
            channel.basic_ack(found[-1])
    return found


def test_what_a_killed_reader_had_in_hand_is_taken_by_another(folder: Path, channel: Callable[[], Any]) -> None:
    ours = channel()
    put(ours, "a", "b")
    command = [sys.executable, "-c", TAKE_AND_HANG, EMBEDDED_TRANSPORT, str(folder)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert other.stdout is not None
    assert other.stdout.readline() == "a\n"
    assert take_all(ours) == ["b"]
    assert take_all(channel()) == []  # it lives, however long it takes
    other.kill()
    other.communicate()
    assert take_all(ours) == ["a"]
    assert take_all(ours) == []
    assert list((folder / "messages").iterdir()) == []


def test_what_is_rejected_or_left_at_close_is_there_again_and_what_is_acknowledged_is_not(
    folder: Path, channel: Callable[[], Any]
) -> None:
    first, second = channel(), channel()
    put(second, "a", "b", "c", "d")
    taken = [first.basic_get("work") for _ in range(4)]
    first.basic_ack(taken[0].delivery_tag)
    first.basic_reject(taken[1].delivery_tag, requeue=True)
    first.basic_reject(taken[2].delivery_tag, requeue=False)
    assert take_all(second) == ["b"]
    first.close()
    assert take_all(second) == ["d"]
    assert list((folder / "messages").iterdir()) == []


def test_without_acknowledgements_a_message_is_gone_when_it_was_taken(folder: Path, channel: Callable[[], Any]) -> None:
    ours = channel()
    put(ours, "a")
    assert ours.basic_get("work", no_ack=True).delivery_tag == "a"
    put(ours, "b")
    ours.basic_consume("work", True, print, "tag")
    assert ours._get("work")["properties"]["delivery_tag"] == "b"
    assert list((folder / "messages").iterdir()) == []


def test_a_file_that_is_no_message_is_dropped_and_stops_nobody(folder: Path, channel: Callable[[], Any]) -> None:
    ours = channel()
    (folder / "messages" / "0_a.work.msg").write_bytes(b"")
    put(ours, "b")
    assert take_all(ours) == ["b"]
    assert list((folder / "messages").iterdir()) == []
