"""The sender against a small real service: what it promises when all is well, and when it is not."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import socket
import stat
import struct
import threading
import time
from urllib.parse import urlsplit

import pytest

from backprobe.record import FrameReader
from backprobe.recorder import finding_poll, spool
from backprobe.recorder.connection import Connection
from backprobe.recorder.pace import RANK_ENDS_SECONDS
from backprobe.recorder.record_sender import Sender
from backprobe.recorder.resending import resend
from backprobe.recorder.spool import list_spooled_runs
from backprobe.recorder.target import Target


def send_run(left, service):
    """Send a run of the spool."""
    with contextlib.closing(Connection(service.url, None)) as connection:
        return resend(left, connection).left


def test_a_record_arrives_whole_in_few_requests_with_its_key_and_its_end(service, make, frames):
    sender = make(key="bp_secret")
    for frame in frames:
        sender.put(frame)
    sender.close({}, seconds=60.0)
    (run,) = service.frames
    assert service.frames[run] == frames
    assert service.ends == {run: {"frames": len(frames)}}
    assert [request.method for request in service.requests] == ["PUT", "PUT", "POST"]
    assert {request.key for request in service.requests} == {"Bearer bp_secret"}
    assert service.runs[run]["environment"]["torch"]
    assert (sender.health.state, sender.health.sent_frames, sender.health.why) == ("closed", len(frames), None)


def test_the_ranks_of_a_job_send_their_last_frames_one_after_the_other(service, frames, home, wait_until):
    labels = {"rank": "25", "world_size": "64"}
    sender = Sender(Target(url=service.url, labels=labels), home=home, source="full")
    sender.put(frames[0])
    wait_until(lambda: service.frames, "the first frame")
    sender.put(b"".join(frames[1:]))
    began = time.monotonic()
    sender.close({}, seconds=60.0)
    assert time.monotonic() - began >= 25 * RANK_ENDS_SECONDS
    assert list(service.frames.values()) == [frames]


def test_a_job_that_goes_on_is_seen_before_its_end(service, make, frames, wait_until):
    sender = make()
    sender.put(frames[0] + frames[1])
    wait_until(lambda: service.frames, "the first frames")
    sender.put(b"".join(frames[2:]))
    sender.close({}, seconds=60.0)
    assert list(service.frames.values()) == [frames]


def test_what_was_put_while_a_request_was_under_way_is_sent_before_the_end(service, make, frames, wait_until):
    came, answers = threading.Event(), threading.Event()

    def slow(request):
        if "/frames/" in request.path:
            came.set()
            answers.wait(60)

    service.refusal = slow
    sender = make()
    sender.put(frames[0])
    assert came.wait(60)
    sender.put(b"".join(frames[1:]))
    closing = threading.Thread(target=sender.close, args=({}, 60.0))
    closing.start()
    wait_until(lambda: sender.health.state == "closed", "the end of the job")
    answers.set()
    closing.join(60)
    assert list(service.frames.values()) == [frames]
    assert list(service.ends.values()) == [{"frames": len(frames)}]


def test_a_service_that_comes_back_gets_all_of_it_once(service, make, frames, wait_until, home):
    sender = make()
    sender.put(frames[0])
    wait_until(lambda: service.frames, "the first frame")
    service.stop()
    for frame in frames[1:-1]:
        sender.put(frame)
    wait_until(lambda: sender.health.spooled_bytes and sender.health.state == "away", "frames in files")
    service.start()
    wait_until(
        lambda: sender.health.state == "sending" and not sender.health.spooled_bytes, "the service has all of it"
    )
    sender.put(frames[-1])
    sender.close({}, seconds=60.0)
    assert list(service.frames.values()) == [frames]
    assert list(home.glob("run_*")) == []


@contextlib.contextmanager
def cut_line(url, cuts, most_bytes):
    """The address of a line to a service that breaks in its first `cuts` connections, after so many bytes went in."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=8)
    where = urlsplit(url)

    def carry(first, other, most=None):
        with contextlib.suppress(OSError):
            while held := first.recv(256):
                other.sendall(held)
                if most is not None and (most := most - len(held)) <= 0:
                    break
        reset = struct.pack("ii", 1, 0)
        for end in (first, other):
            with contextlib.suppress(OSError):
                if most is not None:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                end.shutdown(socket.SHUT_RDWR)
                end.close()

    def take():
        with contextlib.suppress(OSError):
            for number in itertools.count():
                near = listening.accept()[0]
                far = socket.create_connection((where.hostname, where.port))
                most = most_bytes if number < cuts else None
                for ends in ((near, far, most), (far, near)):
                    threading.Thread(target=carry, args=ends, daemon=True).start()

    threading.Thread(target=take, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()


@pytest.mark.parametrize("most_bytes", [100, 900, 3000])
def test_a_line_that_is_cut_in_the_middle_of_a_request_loses_and_doubles_nothing(
    service, make, frames, wait_until, most_bytes
):
    with cut_line(service.url, 3, most_bytes) as url:
        sender = make(url=url)
        sender.put(b"".join(frames))
        wait_until(lambda: frames in service.frames.values() and sender.health.state == "sending", "all of it")
        assert sender.health.why is not None, "it was cut"
        sender.close({}, seconds=60.0)
    assert list(service.frames.values()) == [frames]
    assert list(service.ends.values()) == [{"frames": len(frames)}]


@pytest.mark.parametrize("days", [-1, 1])
def test_a_clock_that_is_set_while_the_job_goes_on_delays_nothing(service, make, frames, wait_until, monkeypatch, days):
    sender = make()
    sender.put(frames[0])
    wait_until(lambda: service.frames, "the first frame")
    service.stop()
    sender.put(frames[1])
    wait_until(lambda: sender.health.state == "away", "it is away")
    plain = time.time
    monkeypatch.setattr(time, "time", lambda: plain() + days * 86_400)
    service.start()
    wait_until(lambda: sender.health.state == "sending" and not sender.health.spooled_bytes, "it is sent", 30.0)
    for frame in frames[2:]:
        sender.put(frame)
    wait_until(lambda: service.frames[sender.health.run] == frames, "the rest", 30.0)
    sender.close({}, seconds=60.0)
    assert list(service.ends.values()) == [{"frames": len(frames)}]


def test_what_the_service_never_took_lies_in_the_spool_and_is_sent_later(service, make, frames, home):
    service.stop()
    sender = make()
    for frame in frames:
        sender.put(frame)
    sender.close({})
    (left,) = list_spooled_runs(home)
    assert (left.size, left.end, left.in_use) == (sum(map(len, frames)), {"frames": len(frames)}, False)
    assert "secret" not in "".join(path.read_text(errors="replace") for path in left.folder.glob("*.json"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in left.folder.iterdir()}
    assert (modes, stat.S_IMODE(left.folder.stat().st_mode)) == ({0o600}, 0o700)
    service.start()
    assert send_run(left, service) is None
    assert service.frames == {left.run: frames}
    assert service.ends == {left.run: {"frames": len(frames)}}
    assert list(list_spooled_runs(home)) == []


def test_the_next_job_sends_what_the_one_before_it_spooled(service, make, frames, home, wait_until):
    service.stop()
    first = make()
    first.put(b"".join(frames))
    first.close({})
    assert len(list(list_spooled_runs(home))) == 1
    service.start()
    second = make()
    second.put(frames[0])
    wait_until(lambda: not list(list_spooled_runs(home)), "the spool is empty")
    assert frames in service.frames.values()


def test_a_killed_sender_between_two_frames_loses_and_doubles_nothing(service, make, frames, home):
    """The service has taken half of it, and the answer was lost: the same frames are sent again."""
    taken = threading.Event()

    def cut(request):
        if "/frames/" in request.path and not taken.is_set():
            taken.set()
            run = request.path.split("/")[3]
            service.frames[run] = list(frames[:1])
            return 503, {"code": "down"}, {}
        return None

    service.refusal = cut
    sender = make()
    sender.put(b"".join(frames))
    sender.close({}, seconds=60.0)
    left = list(list_spooled_runs(home))
    service.refusal = lambda _: None
    for leftover in left:
        assert send_run(leftover, service) is None
    assert list(service.frames.values()) == [frames]


@pytest.mark.parametrize(("status", "code"), [(401, "unauthorized"), (403, "forbidden"), (413, "too-large")])
def test_a_refusal_is_spooled_and_not_asked_again(service, make, frames, home, wait_until, caplog, status, code):
    service.refusal = lambda _: (status, {"code": code, "detail": "No."}, {})
    sender = make()
    with caplog.at_level(logging.WARNING, "backprobe.recorder"):
        sender.put(frames[0])
        wait_until(lambda: sender.health.state == "refused", "the refusal")
        for frame in frames[1:]:
            sender.put(frame)
        wait_until(lambda: sender.health.spooled_bytes == sum(map(len, frames)), "all of it in files")
        sender.close({})
    assert len(service.requests) == 1
    assert sender.health.why == f"{status} {code}: No."
    (said,) = caplog.messages
    assert said.startswith(f"backprobe: {service.url}: {status} "), "said once"
    (left,) = list_spooled_runs(home)
    assert left.end == {"frames": len(frames)}


def test_a_run_that_somebody_ended_is_wanted_no_more(service, make, frames, home, wait_until):
    service.refusal = lambda request: (409, {"code": "run-ended"}, {}) if "/frames/" in request.path else None
    sender = make()
    sender.put(frames[0])
    wait_until(lambda: sender.health.state == "over", "it is over")
    sender.put(frames[1])
    sender.close({})
    assert list(list_spooled_runs(home)) == []


def test_a_wrong_clock_takes_the_services_time_for_its_id(service, make, frames):
    first = []

    def refuse_later(request):
        if not first and request.method == "PUT":
            first.append(request.path.split("/")[3])
            return 422, {"code": "id-time-refused"}, {"Date": "Wed, 25 Nov 2026 12:00:00 GMT"}
        return None

    service.refusal = refuse_later
    sender = make()
    sender.put(b"".join(frames))
    sender.close({}, seconds=60.0)
    (run,) = service.frames
    assert run != first[0]
    assert service.runs[run]["labels"] == {"job": "a", "made-as": first[0]}
    assert (service.frames[run], sender.health.run) == (frames, run)


def test_a_full_disk_is_logged_and_the_job_goes_on(service, make, frames, home, wait_until, monkeypatch, caplog):
    service.stop()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    sender = make()
    for frame in frames:
        sender.put(frame)
    wait_until(lambda: "No space left" in (sender.health.why or ""), "the disk is full")
    monkeypatch.undo()
    assert sender.health.waiting_bytes == sum(map(len, frames)), "kept in memory"
    service.start()
    sender.close({}, seconds=60.0)
    assert list(service.frames.values()) == [frames]
    assert list(home.glob("run_*")) == []


def test_the_spool_stays_below_its_cap(service, make, frames, home, monkeypatch):
    service.stop()
    sender = make()
    monkeypatch.setattr(sender._folder, "_most", 10)
    sender.put(b"".join(frames))
    sender.close({})
    assert "the spool at" in sender.health.why
    assert list(home.glob("run_*/*.frames")) == []


def test_memory_is_bounded_and_what_is_left_out_is_told(service, make, frames):
    service.free.clear()
    sender = make(most_bytes=len(frames[0]) + len(frames[1]))
    for frame in frames[:-1]:
        sender.put(frame)
    assert sender.health.waiting_bytes <= len(frames[0]) + len(frames[1])
    assert sender.health.dropped == len(frames) - 3
    service.free.set()
    sender.close({}, seconds=60.0)
    (run,) = service.frames
    assert service.frames[run][:2] == frames[:2]
    (told,) = service.record(run).truncations
    assert (told.what, told.seen) == ("frames", len(frames) - 3)


def test_the_end_of_a_job_does_not_wait_for_a_service_that_never_answers(service, make, frames, home):
    service.free.clear()
    sender = make(timeout_seconds=60.0)
    sender.put(b"".join(frames))
    sender.close({}, seconds=1.5)
    (left,) = list_spooled_runs(home)
    assert (left.size, left.end) == (sum(map(len, frames)), {"frames": len(frames)})
    reader = FrameReader()
    for piece in left.pieces:
        reader.feed(piece.read())
    assert reader.has_ended


def test_at_its_end_a_job_gives_a_service_the_time_that_it_asks_for(service, make, frames, home):
    """Many ranks end at once: their ends are refused for a moment, or taken and written later."""
    refused = iter([503, 429, None, 503])

    def busy(request):
        status = next(refused, None)
        return None if status is None else (status, {"code": "too-many-streams"}, {"Retry-After": "0"})

    service.refusal = busy
    sender = make()
    sender.put(b"".join(frames))
    sender.close({}, seconds=60.0)
    assert list(service.frames.values()) == [frames]
    assert list(service.ends.values()) == [{"frames": len(frames)}]
    assert sender.health.state == "closed"
    assert list(list_spooled_runs(home)) == []


def test_an_end_that_will_be_written_is_not_told_again(service, make, frames, home):
    service.refusal = lambda request: (202, {}, {"Retry-After": "2"}) if request.path.endswith("/end") else None
    sender = make()
    sender.put(b"".join(frames))
    sender.close({}, seconds=60.0)
    assert [request.path.endswith("/end") for request in service.requests].count(True) == 1
    assert (sender.health.state, list(list_spooled_runs(home))) == ("closed", [])


def test_a_forked_child_has_no_part_in_it(service, make, frames):
    sender = make()
    sender.put(frames[0])

    child = os.fork()
    if child == 0:
        try:
            sender.put(frames[1])
            sender.close({})
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    sender.put(b"".join(frames[1:]))
    sender.close({})
    assert list(service.frames.values()) == [frames]


def test_after_is_asked_for_it_is_kept(service, make, frames, wait_until, home):
    service.refusal = lambda _: (429, {"code": "rate-limited"}, {"Retry-After": "300"})
    sender = make()
    sender.put(b"".join(frames))
    wait_until(lambda: sender.health.state == "away", "told to wait")
    assert 200 < sender._backoff.seconds_left() <= 450  # by up to a half later: not all come back at once
    sender.close({})
    assert len(list(list_spooled_runs(home))) == 1


def test_nothing_is_ever_raised_into_the_job(service, make, wait_until):
    sender = make()
    sender.put(b"no frame at all, and not Backprobe's: an internal error is one of the things that happen")
    wait_until(lambda: sender.health.state == "broken", "it broke")
    sender.put(b"more")
    sender.close({})
    assert service.requests == []


def test_each_finding_is_told_once_and_an_error_of_the_jobs_own_is_kept_from_it(
    service, make, frames, wait_until, monkeypatch
):
    monkeypatch.setattr(finding_poll, "SOON_SECONDS", 0.05)
    monkeypatch.setattr(finding_poll, "SHARE", 0.0)
    told = []

    def tell(finding):
        told.append(finding["fingerprint"])
        raise KeyError("theirs")

    service.findings = [{"fingerprint": "a"}]
    sender = make(on_finding=tell)
    sender.put(frames[0])
    wait_until(lambda: told == ["a"], "the first finding")
    service.findings = [{"fingerprint": "b"}, {"fingerprint": "a"}]
    wait_until(lambda: told == ["a", "b"], "the second one")
    assert "KeyError" in (sender.health.why or "")


def test_a_folder_that_is_none_of_ours_is_passed_over(home):
    (home / "run_x").mkdir(parents=True)
    (home / f"run_0{'0' * 25}").mkdir()
    assert list(list_spooled_runs(home)) == []
    with pytest.raises(ValueError, match="no id of a run"):
        spool.SpoolFolder(home, "../../etc")
