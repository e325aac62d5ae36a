"""Problems of who asks for more at the same time than is served at once."""

from typing import Final

from service.problems.kind import Kind

CAPACITY_KINDS: Final = (
    Kind(
        code="queue-full",
        status=503,
        title="The queue is full",
        hint="Nothing was stored. Send it again after the seconds that Retry-After names; workers do not keep up.",
    ),
    Kind(
        code="too-many-streams",
        status=503,
        title="No more streams are served now",
        hint="Ask again after the seconds that Retry-After names, or take the events as a list with `after=`.",
    ),
    Kind(
        code="too-many-at-work",
        status=503,
        title="This tenant has all at work that it may have",
        hint="Nothing was done. Ask again after the seconds that Retry-After names, with fewer requests at the same "
        "time; the operator may raise BACKPROBE_TENANT_THREADS.",
    ),
)
