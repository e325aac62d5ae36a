"""An empty database of either kind."""

import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'backprobe.db'}"
    return request.getfixturevalue("empty_postgres_url")
