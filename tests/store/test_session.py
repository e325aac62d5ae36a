"""Connections: what an error of theirs may say."""

import pytest
import sqlalchemy as sa

from store import tables


def test_an_error_of_the_database_does_not_show_what_was_to_be_stored(database) -> None:
    with pytest.raises(sa.exc.IntegrityError) as failed, database.begin() as transaction:
        transaction.execute(sa.insert(tables.project).values(tenant_id=-1, name="a stranger's text"))
    assert "a stranger's text" not in str(failed.value).split("DETAIL")[0]
