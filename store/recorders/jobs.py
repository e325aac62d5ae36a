"""Which jobs of several processes are being recorded: a rank that joins one is no new job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from store.database.ids import id_range, milliseconds
from store.database.session import Transaction
from store.runs.rank_labels import TOGETHER_SECONDS, place_of
from store.runs.reading.run_filter import build_label_conditions
from store.runs.transitions import in_status
from store.tables import run

_OPEN: Final = sa.select(sa.func.count()).where(
    run.c.tenant_id == sa.bindparam("its_tenant"),
    run.c.project_id == sa.bindparam("its_project"),
    in_status("running"),
    run.c.origin == "watched",
    run.c.public_id.between(sa.bindparam("first"), sa.bindparam("last")),
)


def joins(
    transaction: Transaction, public_id: str, labels: Mapping[str, str], *, tenant_id: int, project_id: int
) -> bool:
    """Whether this run is a further rank of a job that is being recorded, one that has fewer ranks than it may have.

    Args:
        transaction: To read by.
        public_id: The run's, which need not be there.
        labels: Its.
        tenant_id, project_id: Where it goes.
    """
    place = place_of(labels)
    if place is None:
        return False
    same = {name: labels[name] for name in ("group", "world_size")}
    restart, again = labels.get("restart"), run.c.labels["restart"].as_string()
    query = _OPEN.where(
        *build_label_conditions(run.c.labels, same), again.is_(None) if restart is None else again == restart
    )
    at, around = milliseconds(public_id), int(1000 * TOGETHER_SECONDS)
    first, last = id_range("run", at - around, at + around)
    which = {"its_tenant": tenant_id, "its_project": project_id, "first": first, "last": last}
    return 0 < transaction.execute(query, which).scalar_one() < place[2]
