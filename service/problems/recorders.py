"""The problems of recorders: see `service.problems.catalogue`."""

from typing import Final

from service.problems.kind import Kind

RECORDER_KINDS: Final = (
    Kind(
        code="run-ended",
        status=409,
        title="The run has ended",
        hint="Frames sent after the end are not stored. Start another run with a new id.",
    ),
    Kind(
        code="run-differs",
        status=409,
        title="Another run has this id",
        hint="Only an identical request can be repeated, and only runs of recorders accept frames. Use a new run id.",
    ),
    Kind(
        code="frame-differs",
        status=409,
        title="A frame with this number and other bytes is stored already",
        hint="Nothing was stored. Another recorder already sends to this run. Start the job with a new run id.",
    ),
    Kind(
        code="frame-missing",
        status=409,
        title="Earlier frames are missing",
        hint="Nothing is lost. Continue with the frame number in the Next-Frame header.",
    ),
    Kind(
        code="id-time-refused",
        status=422,
        title="The time in this id differs too much from the server's",
        hint="Correct the clock of the machine and create a new id. A UUIDv7 contains its creation time.",
    ),
)
