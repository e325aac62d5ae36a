"""The bound of a rate that was seen in a few trials."""

from __future__ import annotations

import math

CONFIDENCE = 0.95


def upper_bound(events: int, trials: int) -> float:
    """The rate that is not exceeded at 95 % confidence where `events` were seen in `trials`.

    The one-sided bound of C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404: the rate p at which `events` or
    fewer are seen in 5 of 100 repetitions, sum over k <= events of C(n, k) p^k (1 - p)^(n - k) = 0.05. With none it is
    1 - 0.05^(1/n), about 3/n.

    Raises:
        ValueError: there are fewer trials than events, or none.
    """
    if not 0 <= events <= trials or trials == 0:
        raise ValueError(f"{events} of {trials} is no rate")
    if events == trials:
        return 1.0
    low, high = events / trials, 1.0
    for _ in range(60):  # halves: beyond the precision of a float
        middle = (low + high) / 2
        if _at_most(events, trials, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _at_most(events: int, trials: int, rate: float) -> float:
    """The probability of `events` or fewer; in logarithms, for a binomial coefficient may exceed a float."""
    if rate in (0.0, 1.0):
        return 1.0 - rate
    terms = [
        math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
        + k * math.log(rate) + (trials - k) * math.log1p(-rate)
        for k in range(events + 1)
    ]  # fmt: skip
    return math.fsum(map(math.exp, terms))
