"""An empty database of either kind."""

import pytest


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def empty_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'backprobe.db'}"
    return request.getfixturevalue("empty_postgres_url")
