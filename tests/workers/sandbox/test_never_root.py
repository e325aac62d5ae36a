"""A worker that is root executes no program as root: not at any level, nor with a device, nor behind an executor."""

import os
from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.addresses import own_uid
from tests.support.isolation import WARM_SECONDS
from tests.workers.sandbox.test_one_shot import STAND_IN
from workers.sandbox.levels import attestation, capabilities
from workers.sandbox.levels.names import SLOT_UIDS, Confinement
from workers.sandbox.process import landlock, namespaces
from workers.sandbox.remote import boot
from workers.sandbox.supervisor import start
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings

pytestmark = pytest.mark.usefixtures("sandbox")

UID = own_uid()
WHO = "import os\nprint(*os.getresuid(), *os.getresgid(), *os.getgroups())"

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts such a worker")


@pytest.fixture(scope="module")
def trusted() -> Iterator[Supervisor]:
    """Over programs at level `none`, as a worker's settings ask for it."""
    with start.supervisor_for(
        WorkerSettings(isolation="none", sandbox_uid=UID, warm_further=False), "cpu"
    ) as supervisor:
        assert supervisor.wait_warm(WARM_SECONDS), supervisor.failure
        yield supervisor


@pytest.fixture
def with_a_device(monkeypatch) -> Iterator[Supervisor]:
    """Over programs of the gpu queue, with a stand-in for the device."""
    monkeypatch.setattr(start, "exec_keeper", partial(boot.exec_keeper, program=(STAND_IN,)))
    with start.supervisor_for(WorkerSettings(trust_code=True, sandbox_uid=UID), "gpu") as supervisor:
        assert supervisor.wait_warm(WARM_SECONDS), supervisor.failure
        yield supervisor


@root_only
@pytest.mark.parametrize("where", ["trusted", "locked", "apart", "guest", "with_a_device"])
def test_a_program_is_never_roots(where, request, start):
    outcome = start(request.getfixturevalue(where), WHO)
    assert outcome.status == "succeeded", outcome
    ids = {int(part) for part in outcome.facts.stdout.split()}
    assert 0 not in ids
    if where in ("trusted", "with_a_device"):
        assert ids == {UID}
    else:
        assert all(1000 < id_ < 1 << 31 for id_ in ids)


@root_only
def test_what_would_be_roots_is_not_started_and_not_let_go():
    for begin in (boot.exec_zygote, boot.exec_keeper):
        with pytest.raises(PermissionError, match="BACKPROBE_SANDBOX_UID"):
            begin("", confinement=Confinement())
    ourselves = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(attestation.Differs, match="its uid and gid are"):
            attestation.never_root(ourselves, Confinement())
    finally:
        os.close(ourselves)


@root_only
@pytest.mark.parametrize("queue", ["cpu", "gpu"])
def test_a_worker_whose_uid_cannot_read_python_does_not_start(queue, monkeypatch):
    monkeypatch.setattr(landlock, "hidden", lambda _: ("/root",))
    monkeypatch.setattr(namespaces, "may_mount", lambda: False)
    with pytest.raises(capabilities.CannotConfine, match=r"uid \d+ cannot read /root, .*may not mount"):
        start.supervisor_for(WorkerSettings(isolation="none", trust_code=True), queue)


@pytest.mark.parametrize("uid", ["0", "-1", "nobody", str(1 << 32), str((1 << 32) - SLOT_UIDS)])
def test_the_uid_of_programs_is_a_number_that_is_not_roots(uid):
    with pytest.raises(ValueError, match="BACKPROBE_SANDBOX_UID is"):
        WorkerSettings.from_environment({"BACKPROBE_SANDBOX_UID": uid})
