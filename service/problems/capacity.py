"""Problems of clients that exceed the capacity of the server."""

from typing import Final

from service.problems.kind import Kind

CAPACITY_KINDS: Final = (
    Kind(
        code="queue-full",
        status=503,
        title="The queue is full",
        hint=(
            "Nothing was stored; the workers are busy. Wait as many seconds as Retry-After says, "
            "then send the request again."
        ),
    ),
    Kind(
        code="too-many-streams",
        status=503,
        title="The server has no free stream",
        hint=(
            "Wait as many seconds as Retry-After says, then send the request again, or read the "
            "events as a list with `after=`."
        ),
    ),
    Kind(
        code="too-many-at-work",
        status=503,
        title="The tenant has too many requests in progress",
        hint="Nothing was done. Wait as many seconds as Retry-After says, then send the request "
        "again, with fewer requests at the "
        "same time. The operator can raise BACKPROBE_TENANT_THREADS.",
    ),
)
