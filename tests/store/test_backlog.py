"""So many runs may wait in a queue, of all tenants together."""

from store.access.backlog import SURE_SECONDS, Backlog, Overfull


def test_runs_wait_up_to_the_bound_and_again_when_some_were_claimed(database, submit, claim, clock):
    backlog = Backlog(most=3, clock=clock)

    def list_queued(queue="cpu", runs=1):
        with database.read() as reading:
            try:
                backlog.demand(reading, queue, runs)
            except Overfull as full:
                return str(full)
        return "taken"

    for _ in range(3):
        assert list_queued() == "taken"
        submit()
    refused = "3 runs wait in the queue cpu, 3 may"
    assert list_queued() == refused
    assert list_queued("gpu", runs=3) == "taken"
    assert list_queued("gpu", runs=4) == "3 runs wait in the queue gpu, 3 may"
    claim()
    assert list_queued() == refused  # counted less than a second ago
    clock.now += SURE_SECONDS
    assert list_queued(runs=2) == "2 runs wait in the queue cpu, 3 may"
    assert list_queued() == "taken"
    assert list_queued() == refused  # what this process took is there, though it is not committed yet


def test_a_tenant_leaves_a_quarter_of_the_queue_to_the_others(database, submit, clock):
    from store.access import tenants

    backlog = Backlog(most=4, clock=clock)
    with database.begin() as transaction:
        other = tenants.create(transaction, "tnt_of_the_other")

    def read_taken(tenant, runs=1):
        with database.read() as reading:
            try:
                backlog.demand(reading, "cpu", runs, tenant_id=tenant)
            except Overfull as full:
                return str(full)
        return "taken"

    for _ in range(3):
        assert read_taken(1) == "taken"
        submit()
    clock.now += SURE_SECONDS
    assert read_taken(1) == "3 runs of one tenant wait in the queue cpu, 3 may"
    assert read_taken(other) == "taken"
    assert read_taken(other) == "4 runs wait in the queue cpu, 4 may"
    assert read_taken(None) == "4 runs wait in the queue cpu, 4 may"


def test_what_was_allowed_and_is_not_committed_yet_is_counted(database, submit, clock):
    backlog = Backlog(most=3, clock=clock)
    with database.read() as first:
        backlog.demand(first, "cpu", 2)
        clock.now += SURE_SECONDS
        with database.read() as second:
            try:
                backlog.demand(second, "cpu", 2)
            except Overfull as full:
                assert str(full) == "2 runs wait in the queue cpu, 3 may"
            else:
                raise AssertionError("four of three were taken")
    clock.now += SURE_SECONDS  # it ended, and came to nothing
    with database.read() as third:
        backlog.demand(third, "cpu", 3)
