"""These tests start processes with torch, servers or sandboxes: all are in the full tier."""

import pytest


@pytest.fixture(autouse=True)
def _full(full_tier: None) -> None:
    """Ask for the full tier."""
