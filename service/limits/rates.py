"""How many requests a key, and a tenant, may make in a minute: counted here, or in a Redis that all processes share.

1. A request that is refused counts for nothing; one that is taken counts for its key and for its tenant, or for none.
2. A whole quota may come at once; then it comes back evenly, so there is no moment at which everybody starts again.
3. Without a key nothing is counted: that is a person's own service, on loopback.
4. A Redis that is away limits nobody: it is logged, and requests are answered.

Source: the generic cell rate algorithm (ITU-T I.371, annex A), which keeps one time for each quota: until then it is
spoken for. With `w` the window and `q` the quota, a request moves that time on by `w / q`, and is taken if it then lies
at most `w` ahead.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from flask import g

from service.problems.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flask import Response

    from service.auth.caller import Caller
    from service.settings import RateLimits

log = logging.getLogger("backprobe.service")

WINDOW_SECONDS: Final = 60
MOST_KEPT: Final = 10_000
"""Times kept in memory; beyond, those that have passed are dropped: they say nothing."""

TELL_SECONDS: Final = 60.0
"""Between two lines of the log about a Redis that is away."""

Kind = Literal["reads", "submits"]

_TAKE: Final = """
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local window = tonumber(ARGV[1])
local after, taken = {}, 1
for n, key in ipairs(KEYS) do
  local step = window / tonumber(ARGV[n + 1])
  after[n] = math.max(tonumber(redis.call('GET', key) or '0'), now) + step
  if after[n] - now > window + 0.000001 then taken = 0 end
end
local ahead = {}
for n, key in ipairs(KEYS) do
  if taken == 1 then redis.call('SET', key, string.format('%.6f', after[n]), 'PX', math.ceil(window * 1000)) end
  ahead[n] = string.format('%.6f', after[n] - now)
end
return {taken, ahead}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What may come in a window, and how it stands.

    Attributes:
        name: key-reads, key-submits, tenant-reads, tenant-submits. most: requests in `WINDOW_SECONDS`.
        left: How many more may come now. reset_seconds: till all of it is there again.
        wait_seconds: Till the next may come; 0: now.
    """

    name: str
    most: int
    left: int
    reset_seconds: float
    wait_seconds: float


class Rates:
    """The limits of one application.

    Args:
        limits: As set.
        clock: Seconds that only grow.
    """

    def __init__(self, limits: RateLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.clock = clock
        self._until: dict[str, float] = {}
        self._counting = threading.Lock()
        self._told_at = -math.inf
        self._script: Any = None
        if limits.url is not None:
            from redis import Redis

            client = Redis.from_url(limits.url, socket_timeout=1.0, socket_connect_timeout=1.0)
            self._script = client.register_script(_TAKE)

    def check(self, asking: Caller, kind: Kind) -> None:
        """Count this request and put the remaining quota into the answer's headers.

        Raises:
            Problem: `rate-limited`, with Retry-After.
        """
        asked = self._list_quotas(asking, kind)
        if not asked:
            return
        taken, quotas = self.take(asked)
        g.quotas = quotas
        if not taken:
            short = max(quotas, key=lambda quota: quota.wait_seconds)
            wait = max(1, math.ceil(short.wait_seconds))
            whose, what = short.name.split("-")
            detail = (
                f"This {whose} may make {short.most:,} {what} in {WINDOW_SECONDS} s; the next may come in {wait} s."
            )
            raise Problem("rate-limited", detail, headers={"Retry-After": str(wait)})

    def list_limits(self, asking: Caller) -> dict[str, int]:
        """Return the requests that are allowed in a minute, by quota. Quotas without a limit are left out."""
        kinds: tuple[Kind, ...] = ("reads", "submits")
        return {name: most for kind in kinds for name, _, most in self._list_quotas(asking, kind)}

    def _list_quotas(self, asking: Caller, kind: Kind) -> list[tuple[str, str, int]]:
        """Name, place and size of each quota that such a request is of."""
        if asking.sharing is None:
            return []
        mine = {"reads": self.limits.reads, "submits": self.limits.submits}[kind]
        ours = {"reads": self.limits.tenant_reads, "submits": self.limits.tenant_submits}[kind]
        places = (("key", asking.actor, mine), ("tenant", str(asking.tenant_id), ours))
        return [(f"{who}-{kind}", f"backprobe:{who}:{kind}:{place}", most) for who, place, most in places if most]

    def take(self, asked: Sequence[tuple[str, str, int]]) -> tuple[bool, tuple[Quota, ...]]:
        """Whether one more may come, and how the quotas stand after it."""
        if self._script is not None:
            try:
                taken, found = self._script(
                    keys=[bucket[1] for bucket in asked], args=[WINDOW_SECONDS, *(bucket[2] for bucket in asked)]
                )
            except Exception as error:  # noqa: BLE001 - whatever a client raises, its server limits nobody
                self._tell(error)
                return True, ()
            ahead = [float(seconds) for seconds in found]
        else:
            taken, ahead = self._take_here(asked)
        return bool(taken), tuple(
            _quota(name, most, seconds, taken=bool(taken))
            for (name, _, most), seconds in zip(asked, ahead, strict=True)
        )

    def _take_here(self, asked: Sequence[tuple[str, str, int]]) -> tuple[bool, list[float]]:
        with self._counting:
            now = self.clock()
            after = [max(self._until.get(place, now), now) + WINDOW_SECONDS / most for _, place, most in asked]
            taken = all(until - now <= WINDOW_SECONDS + 1e-6 for until in after)
            if taken:
                self._until.update({place: until for (_, place, _), until in zip(asked, after, strict=True)})
                if len(self._until) > MOST_KEPT:
                    self._until = {place: until for place, until in self._until.items() if until > now}
        return taken, [until - now for until in after]

    def _tell(self, error: Exception) -> None:
        now = self.clock()
        if now - self._told_at > TELL_SECONDS:
            self._told_at = now
            log.warning("rates are not limited: the Redis for them does not answer (%s)", type(error).__name__)


def _quota(name: str, most: int, ahead: float, *, taken: bool) -> Quota:
    """How a quota stands, `ahead` being the seconds that it is spoken for once this request has been taken."""
    step = WINDOW_SECONDS / most
    over = ahead - WINDOW_SECONDS
    spoken_for = ahead if taken else ahead - step
    return Quota(
        name=name,
        most=most,
        left=max(0, math.floor((WINDOW_SECONDS - spoken_for) / step + 1e-6)),
        reset_seconds=spoken_for,
        wait_seconds=0.0 if taken else max(0.0, over),
    )


def tell(response: Response) -> None:
    """Add the quotas that counted this request, as RateLimit fields (draft-ietf-httpapi-ratelimit-headers-10)."""
    quotas: tuple[Quota, ...] = g.get("quotas", ())
    if quotas:
        policies = (f'"{quota.name}";q={quota.most};w={WINDOW_SECONDS}' for quota in quotas)
        states = (f'"{quota.name}";r={quota.left};t={math.ceil(quota.reset_seconds)}' for quota in quotas)
        response.headers["RateLimit-Policy"] = ", ".join(policies)
        response.headers["RateLimit"] = ", ".join(states)
