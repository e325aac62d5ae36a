"""A record that is refused: nothing of it stays in the supervisor, and how the run ended does not depend on who was quicker."""

import gc
import weakref

import pytest

from backprobe.record import encode
from store.runs.limits import Limits
from tests.backprobe.record.rows import full_record
from tests.support.waiting import wait_until
from workers.sandbox.supervisor.attempt import Attempt
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import _Ears

VALID = b"".join(encode(full_record()))


@pytest.mark.parametrize(
    ("stream", "code"), [(VALID + b"\x00", "bytes-after-end"), (VALID[:400] + b"\x00" * 400, "bad-frame")]
)
def test_no_row_of_it_waits_for_a_collection(stream, code):
    gc.disable()
    try:
        ears = _Ears(Attempt(Job(files={"main.py": ""}, entry="main.py"), gpu=False), None)
        assert ears.hear(stream) == "refused"
        ears.record()
        assert ears.refused.code == code
        reader = weakref.ref(ears)
        del ears
        assert reader() is None
    finally:
        gc.enable()


def test_garbage_that_passes_its_limit_before_it_is_decoded_is_garbage(run, monkeypatch):
    hear = _Ears.hear

    def late(ears, heard):
        attempt = ears._attempt
        wait_until(lambda: attempt.stop is not None, "its bytes have passed the limit")
        return hear(ears, heard)

    monkeypatch.setattr(_Ears, "hear", late)
    outcome = run("import os\nwhile True: os.write(3, b'\\0' * 65536)", record_bytes=1 << 20)
    assert (outcome.status, outcome.reason, outcome.error.code) == ("failed", "record", "bad-record")
    assert outcome.facts.record_bytes > 1 << 20


@pytest.mark.parametrize("stop", [None, "record_bytes", "record_rows", "wall", "canceled"])
def test_a_record_that_is_valid_changes_nothing_of_how_its_run_ended(stop):
    ears = _Ears(Attempt(Job(files={"main.py": ""}, entry="main.py"), gpu=False), None)
    ears.hear(VALID)
    assert ears.why_ended(stop) == stop


def test_a_limit_that_the_decoding_found_is_the_one_that_is_named():
    job = Job(files={"main.py": ""}, entry="main.py", limits=Limits(record_rows=1))
    ears = _Ears(Attempt(job, gpu=False), None)
    assert ears.hear(VALID) == "record_rows"
    assert [ears.why_ended(stop) for stop in (None, "record_bytes")] == ["record_rows", "record_rows"]
