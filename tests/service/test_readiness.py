"""What runs get now, and what keeps them from it: on /readyz, on the pages, and in the API's log."""

import logging

import pytest

from service.app import create_app
from store.database.settings import StoreSettings
from store.telemetry.broker_probe import find_failure
from tests.support.site import Site

HOLDS_NOT = "isolation process does not hold: files: it printed 'CANARY'"


def ready(site):
    answer = site.client.get("/readyz")
    return answer.status_code, answer.json


def test_what_workers_give_is_told_with_what_keeps_them_from_more(make):
    site = make()
    assert ready(site)[1]["isolation"]["cpu"] == {"state": "absent", "levels": [], "why": []}
    missed = "isolation process cannot be given here: Landlock is version 0"
    site.worker(levels=("none",), probe={"sandbox": "ready", "missed": [missed]})
    status, told = ready(site)
    assert (status, told["status"], told["degraded"], told["broker"]) == (200, "ready", [], "ok")
    assert told["isolation"]["cpu"] == {"state": "ready", "levels": ["none"], "why": [missed]}
    page = site.client.get("/runs").text
    assert "Runs execute at isolation level none, which holds nothing back: for trusted code only." in page
    assert missed in page
    site.worker(levels=("none", "process"), probe={"sandbox": "ready", "missed": []})
    assert ready(site)[1]["isolation"]["cpu"]["levels"] == ["none", "process"]


def test_workers_that_can_execute_nothing_make_it_degraded_and_say_why(make):
    site = make()
    site.worker(levels=(), probe={"sandbox": "broken", "why": HOLDS_NOT})
    status, told = ready(site)
    assert (status, told["status"], told["degraded"]) == (200, "ready", ["workers"])
    assert told["isolation"]["cpu"] == {"state": "broken", "levels": [], "why": [HOLDS_NOT]}
    run = site.submit()
    for path in ("/runs", f"/runs/{run}"):
        assert "No run is executed now: isolation process does not hold: files" in site.client.get(path).text
    refused = site.post({"source": "x = 1", "isolation": "process"})
    assert refused.status_code == 409
    assert "No live worker of the queue cpu can execute a run now" in refused.json["detail"]


def test_where_a_key_is_asked_for_the_reasons_are_the_operators(make):
    site = make(api_key="k")
    site.worker(levels=(), probe={"sandbox": "broken", "why": HOLDS_NOT})
    assert ready(site)[1]["isolation"]["cpu"] == {"state": "broken", "levels": [], "why": []}
    told = site.client.get("/v1/workers", headers={"Authorization": "Bearer k"}).json["items"]
    assert [worker["broken"] for worker in told] == [HOLDS_NOT]


def test_a_service_whose_own_workers_cannot_start_is_not_ready(make):
    settings = make().context.settings
    line = "backprobe worker: isolation gvisor cannot be given here: runsc is not installed"
    app = create_app(settings, lambda: (line,))
    site = Site(app=app, client=app.test_client(), context=app.extensions["backprobe"])
    try:
        status, told = ready(site)
        assert (status, told["status"]) == (503, "not-ready")
        assert told["isolation"]["cpu"] == {"state": "cannot-start", "levels": [], "why": [line]}
        assert f"a worker cannot start: {line}" in site.client.get("/runs").text
        site.worker()
        assert ready(site)[1]["status"] == "ready"
    finally:
        site.context.close()


@pytest.mark.parametrize("url", ["redis://:hush@127.0.0.1:1/0", "amqp://guest:hush@127.0.0.1:1//"])
def test_a_broker_that_is_away_is_named_without_its_password(make, tmp_path, caplog, url):
    store = StoreSettings.from_environment({"BACKPROBE_BROKER_URL": url}, home=tmp_path)
    site = make(store=store)
    with caplog.at_level(logging.WARNING):
        status, told = ready(site)
        ready(site)
    assert (status, told["status"], told["degraded"]) == (200, "ready", ["broker"])
    assert (told["broker"], told["missing_modules"]) == ("unavailable", [])
    (said,) = [record.getMessage() for record in caplog.records if "the broker " in record.getMessage()]
    assert "127.0.0.1:1" in said
    assert "hush" not in said


@pytest.mark.parametrize("key", [None, "k"])
def test_a_module_that_the_broker_needs_is_named_in_the_log_and_on_readyz(make, tmp_path, caplog, key):
    """kombu's transport for MongoDB needs pymongo, which nothing here installs."""
    url = "mongodb://:hush@127.0.0.1:1/0"
    store = StoreSettings.from_environment({"BACKPROBE_BROKER_URL": url}, home=tmp_path)
    site = make(store=store, api_key=key)
    with caplog.at_level(logging.WARNING):
        status, told = ready(site)
    assert (status, told["degraded"], told["missing_modules"]) == (200, ["broker"], ["pymongo"])
    (said,) = [record.getMessage() for record in caplog.records if "the broker " in record.getMessage()]
    assert "cannot be used: the Python module `pymongo` is not installed" in said
    assert "hush" not in said


def test_a_broker_of_a_kind_that_kombu_does_not_know_leaves_readyz_readable(make, tmp_path):
    store = StoreSettings.from_environment({"BACKPROBE_BROKER_URL": "nonsense://127.0.0.1"}, home=tmp_path)
    assert ready(make(store=store))[1]["degraded"] == ["broker"]
    assert "names no kind of broker" in find_failure(store).text


def test_an_embedded_broker_is_there_as_long_as_its_folder_can_be_made(tmp_path):
    store = StoreSettings.from_environment({}, home=tmp_path / "home")
    assert find_failure(store) is None
    (tmp_path / "home").write_text("")
    assert "cannot be written" in find_failure(store).text
