"""The problems of recorders: see `service.problems.catalogue`."""

from typing import Final

from service.problems.kind import Kind

RECORDER_KINDS: Final = (
    Kind(
        code="run-ended",
        status=409,
        title="The run has ended",
        hint="What had come until then is its record. Begin another run, under a new id.",
    ),
    Kind(
        code="run-differs",
        status=409,
        title="There is another run of this id",
        hint="Only the very same request is taken twice, and frames go to runs that a recorder made. Make a new id.",
    ),
    Kind(
        code="frame-differs",
        status=409,
        title="This frame has come with other bytes",
        hint="Nothing was changed. Two recorders send to one run, or one began anew: make a new id.",
    ),
    Kind(
        code="frame-missing",
        status=409,
        title="Frames before this one have not come",
        hint="Nothing is lost. Send on from the number in Next-Frame.",
    ),
    Kind(
        code="id-time-refused",
        status=422,
        title="The time in this id is too far from the server's",
        hint="Set the machine's clock, and make a new id: a UUIDv7 has the time of its making.",
    ),
)
