"""A record that is refused leaves nothing in the supervisor: its rows go with the run."""

import gc
import weakref

import pytest

from backprobe.record import encode
from tests.backprobe.record.rows import full_record
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
