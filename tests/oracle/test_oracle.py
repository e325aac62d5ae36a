"""0 wrong facts: a slice of the generated programs in every test run; `make oracle` takes 10,000 of them."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from backprobe.record.record import Tier
from tests.oracle.campaign import found_in, warmed
from tests.oracle.programs import programs

PROGRAMS = {"full": 150, "grad": 40, "state": 40}


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warmed()


@pytest.mark.parametrize("tier", PROGRAMS)
def test_a_record_says_what_torch_says(tier: Tier) -> None:
    @settings(
        max_examples=PROGRAMS[tier], derandomize=True, database=None, deadline=None,
        phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(1))
    def agrees(program: str) -> None:
        found = found_in(program, tier)
        assert not found, "\n" + program + "\n".join(found)

    agrees()
    gc.unfreeze()
    gc.collect()
