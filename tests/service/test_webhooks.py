"""Webhooks over HTTP: made with a secret that is shown once, changed, given another, tested, and their log read."""

from __future__ import annotations

import base64
import contextlib
import hmac
import re
import ssl
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
import trustme

from store import tables
from store.tables import Now
from store.webhooks import signing
from store.webhooks.destination import Allowed
from tests.support.addresses import free_port
from tests.support.receiver import Receiver
from workers.upkeep.sender import Sender

ASKED = {"url": "https://hooks.example/in", "events": ["run.ended", "finding.new"]}
MANUAL = Path(__file__).parents[2] / "docs" / "how-to" / "receive-webhooks.md"
LOOPBACK = Allowed.from_environment({"BACKPROBE_WEBHOOK_NETWORKS": "127.0.0.0/8", "BACKPROBE_WEBHOOK_PORTS": "1-65535"})


def create_webhook(site, status=201, headers=None, **more):
    answer = site.client.post("/v1/webhooks", json={**ASKED, **more}, headers=headers or {})
    assert answer.status_code == status, answer.text
    return answer.json


def key_of(site, *scopes, project=None):
    asked = {"name": "t", "scopes": list(scopes), "project": project}
    return {"Authorization": f"Bearer {site.client.post('/v1/keys', json=asked).json['secret']}"}


@pytest.fixture
def project(site):
    from store.database.ids import new_id

    name = new_id("prj")
    with site.context.database.begin() as transaction:
        facts = {"public_id": name, "tenant_id": 1, "name": name, "settings": {}, "created_at": Now()}
        transaction.execute(sa.insert(tables.project).values(facts))
    return name


@pytest.fixture
def sending(make):
    """An application that may post to loopback, and a sender beside it."""
    site = make(networks="127.0.0.0/8")
    stop = threading.Event()
    sender = Sender(site.context.database, site.context.settings.secret, LOOPBACK)
    thread = threading.Thread(target=sender.serve, args=(stop,))
    thread.start()
    yield site
    stop.set()
    thread.join(30)


def test_a_webhook_is_told_with_its_secret_once(site):
    told = create_webhook(site)
    assert len(base64.b64decode(told["secret"].removeprefix("whsec_"))) == 32
    answer = site.client.get(f"/v1/webhooks/{told['id']}")
    assert answer.headers["ETag"] == '"1"'
    assert answer.json == {name: value for name, value in told.items() if name != "secret"}
    assert (answer.json["url"], answer.json["events"]) == (ASKED["url"], ASKED["events"])
    assert (answer.json["enabled"], answer.json["failures"], answer.json["project"]) == (True, 0, None)
    assert site.client.get("/v1/webhooks").json["items"] == [answer.json]


def test_the_database_holds_no_secret(site):
    told = create_webhook(site)
    key = base64.b64decode(told["secret"].removeprefix("whsec_"))
    with site.context.database.read() as transaction:
        row = transaction.execute(sa.select(tables.webhook)).one()
    assert key not in row.secret
    assert told["secret"] not in str(row)
    assert signing.unseal_secret(row.secret, site.context.settings.secret) == key


def test_the_same_request_again_makes_no_second_one_and_shows_no_secret(site):
    once = {"Idempotency-Key": "one"}
    first, again = create_webhook(site, headers=once), create_webhook(site, headers=once)
    assert (again["id"], again["secret"]) == (first["id"], None)
    assert len(site.client.get("/v1/webhooks").json["items"]) == 1
    for secret in (True, False):
        answer = site.client.post(f"/v1/webhooks/{first['id']}/rotate", headers={"Idempotency-Key": "two"})
        assert (answer.json["secret"] is not None) is secret
    assert answer.json["version"] == 2


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/",
        "https://hooks.example:8443/",
        "https://hooks.example:22/",
        "https://10.0.0.1/",
        "https://2130706433/",
        "https://[::1]/",
        "nonsense",
    ],
)
def test_an_address_that_nothing_is_sent_to_is_refused_before_anything_is_stored(site, url):
    refused = create_webhook(site, 422, url=url)
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("address-refused", "#/url")
    assert site.client.get("/v1/webhooks").json["items"] == []
    address = f"/v1/webhooks/{create_webhook(site)['id']}"
    answer = site.client.patch(address, json={"url": url}, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json["code"]) == (422, "address-refused")
    assert site.client.get(address).json["url"] == ASKED["url"]


@pytest.mark.parametrize(
    "more",
    [{"events": []}, {"events": ["run.began"]}, {"url": 7}, {"secret": "mine"}, {"url": "https://x/" + "a" * 2000}],
)
def test_what_is_not_as_described_is_refused(site, more):
    assert create_webhook(site, 422, **more)["code"] == "invalid-request"


def test_a_change_needs_the_state_that_it_was_made_for(site):
    address = f"/v1/webhooks/{create_webhook(site)['id']}"
    assert site.client.patch(address, json={"enabled": False}).json["code"] == "if-match-needed"
    answer = site.client.patch(address, json={"events": ["finding.returned"]}, headers={"If-Match": '"1"'})
    assert (answer.json["events"], answer.headers["ETag"], answer.json["url"]) == (
        ["finding.returned"], '"2"', ASKED["url"],
    )  # fmt: skip
    stale = site.client.patch(address, json={"enabled": False}, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json["code"]) == (412, "stale")
    assert site.client.get(address).json["enabled"] is True


def test_switched_on_again_it_begins_anew(site):
    address = f"/v1/webhooks/{create_webhook(site)['id']}"
    with site.context.database.begin() as transaction:
        failing = {"enabled": False, "disabled_reason": "it failed", "failures": 9, "failing_since": Now(-9e5)}
        transaction.execute(sa.update(tables.webhook).values(failing))
    told = site.client.get(address).json
    assert (told["enabled"], told["disabled_reason"], told["failures"]) == (False, "it failed", 9)
    told = site.client.patch(address, json={"enabled": True}, headers={"If-Match": '"1"'}).json
    assert (told["enabled"], told["disabled_reason"], told["failures"], told["failing_since"]) == (True, None, 0, None)


def test_a_rotated_secret_is_another_and_the_old_one_ends_in_a_day(site):
    told = create_webhook(site)
    again = site.client.post(f"/v1/webhooks/{told['id']}/rotate").json
    assert again["secret"] != told["secret"]
    with site.context.database.read() as transaction:
        row = transaction.execute(
            sa.select(tables.webhook, (tables.webhook.c.old_until > Now(86000.0)).label("day"))
        ).one()
    assert row.day
    assert again["old_secret_until"] == row.old_until
    shown = [
        signing.secret_text(signing.unseal_secret(seal, site.context.settings.secret))
        for seal in (row.secret, row.old_secret)
    ]
    assert shown == [again["secret"], told["secret"]]


def test_a_webhook_is_deleted_with_its_log(site, samples):
    address = f"/v1/webhooks/{create_webhook(site)['id']}"
    site.finished()
    with site.context.database.begin() as transaction:
        from store.webhooks import deliveries, outbox

        outbox.plan(transaction)
        for due in deliveries.claim(transaction):
            deliveries.settle(transaction, due, deliveries.Try(address="", ms=1, error="x: y"))
    assert len(site.client.get(f"{address}/deliveries").json["items"]) == 2
    assert site.client.delete(address).status_code == 204
    for method, path in (
        ("GET", address),
        ("DELETE", address),
        ("GET", f"{address}/deliveries"),
        ("POST", f"{address}/rotate"),
    ):
        assert site.client.open(path, method=method).status_code == 404
    with site.context.database.read() as transaction:
        for table in (tables.delivery, tables.delivery_try, tables.webhook):
            assert transaction.execute(sa.select(table)).first() is None


def test_lists_go_page_by_page_and_by_state(site):
    ids = [create_webhook(site)["id"] for _ in range(3)]
    page = site.client.get("/v1/webhooks?limit=2")
    assert [row["id"] for row in page.json["items"]] == ids[:0:-1]
    rest = site.client.get(f"/v1/webhooks?limit=2&cursor={page.json['next_cursor']}").json
    assert ([row["id"] for row in rest["items"]], rest["next_cursor"]) == (ids[:1], None)
    site.context.waiters.waiting = 1000
    sent = [site.client.post(f"/v1/webhooks/{ids[0]}/test").json["id"] for _ in range(3)]
    site.context.waiters.waiting = 0
    log = f"/v1/webhooks/{ids[0]}/deliveries"
    page = site.client.get(f"{log}?limit=2&state=pending,dead").json
    assert [row["id"] for row in page["items"]] == sent[:0:-1]
    rest = site.client.get(f"{log}?limit=2&state=pending,dead&cursor={page['next_cursor']}").json
    assert [row["id"] for row in rest["items"]] == sent[:1]
    assert site.client.get(f"{log}?state=delivered").json["items"] == []
    other = site.client.get(f"/v1/webhooks/{ids[1]}/deliveries?limit=2&state=pending,dead&cursor={page['next_cursor']}")
    assert other.json["code"] == "bad-cursor"


def test_a_key_of_one_project_makes_and_sees_webhooks_of_that_project(site, project):
    wide = create_webhook(site)["id"]
    key = key_of(site, "read", "webhooks:write", project=project)
    own = create_webhook(site, headers=key)
    assert own["project"] == project
    assert [row["id"] for row in site.client.get("/v1/webhooks", headers=key).json["items"]] == [own["id"]]
    assert site.client.get(f"/v1/webhooks/{wide}", headers=key).status_code == 404
    assert create_webhook(site, 404, headers=key, project="prj_01JD8PZ4T8W2K5C7Q9R3M6X1BA")["code"] == "not-found"
    sent = {**key, "If-Match": '"1"'}
    told = site.client.patch(f"/v1/webhooks/{own['id']}", json={"project": None}, headers=sent).json
    assert told["project"] == project
    assert {row["id"] for row in site.client.get("/v1/webhooks").json["items"]} == {wide, own["id"]}


def test_a_test_call_tells_what_the_receiver_said(sending):
    with Receiver(answers=[(200, {}, b"hello"), (500, {}, b"\x00<script>"), (410, {}, b"")]) as receiver:
        told = create_webhook(sending, url=receiver.url("/in"))
        answers = [sending.client.post(f"/v1/webhooks/{told['id']}/test") for _ in range(3)]
    assert [(answer.status_code, answer.json["state"]) for answer in answers] == [
        (200, "delivered"), (200, "dead"), (200, "dead"),
    ]  # fmt: skip
    assert [answer.json["tries"][0]["answer"] for answer in answers[:2]] == ["hello", "\x00<script>"]
    assert sending.client.get(f"/v1/webhooks/{told['id']}").json["enabled"] is True
    path, headers, body = receiver.got[0]
    key = base64.b64decode(told["secret"].removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    assert (path, headers["webhook-id"]) == ("/in", answers[0].json["event"])
    assert headers["webhook-signature"] == "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def test_a_test_call_to_a_name_that_leads_inside_is_refused_without_telling_where(make, caplog):
    site = make()
    stop = threading.Event()
    inside = Sender(site.context.database, site.context.settings.secret, Allowed(), resolve=lambda *_: ["10.0.0.1"])
    thread = threading.Thread(target=inside.serve, args=(stop,))
    thread.start()
    address = f"/v1/webhooks/{create_webhook(site)['id']}"
    answer = site.client.post(f"{address}/test")
    stop.set()
    thread.join(30)
    assert (answer.status_code, answer.json["code"]) == (422, "address-refused")
    assert answer.json["detail"] == "Its name leads to an address that is not allowed."
    log = site.client.get(f"{address}/deliveries")
    assert (
        log.json["items"][0]["tries"][0]["error"] == "address-refused: its name leads to an address that is not allowed"
    )
    for said in (answer.text, log.text):
        assert "10.0.0.1" not in said
        assert "private" not in said
    with site.context.database.read() as transaction:
        assert "10.0.0.1" not in str(transaction.execute(sa.select(tables.delivery_try)).all())
    assert "10.0.0.1 is a private or reserved address" in caplog.text


def test_what_a_name_resolves_to_is_not_told_of_a_delivery_that_arrived_either(make):
    site, stop = make(networks="127.0.0.0/8"), threading.Event()
    database, secret = site.context.database, site.context.settings.secret
    sender = Sender(database, secret, LOOPBACK, resolve=lambda *_: ["127.0.0.1"])
    thread = threading.Thread(target=sender.serve, args=(stop,))
    thread.start()
    with Receiver() as receiver:
        named, literal = (
            create_webhook(site, url=f"http://{host}:{receiver.port}/") for host in ("receiver.test", "127.0.0.1")
        )
        answers = [site.client.post(f"/v1/webhooks/{webhook['id']}/test") for webhook in (named, literal)]
    stop.set()
    thread.join(30)
    assert [answer.json["state"] for answer in answers] == ["delivered"] * 2
    assert [answer.json["tries"][0]["address"] for answer in answers] == ["", "127.0.0.1"]
    assert "127.0.0.1" not in answers[0].text
    with database.read() as transaction:  # the operator may know
        assert {row.address for row in transaction.execute(sa.select(tables.delivery_try))} == {"127.0.0.1"}


@pytest.fixture
def two_networks(make):
    """A public network and a private one beside it, as an attacker meets them.

    `two_networks(answers, outside_says)` yields the site, the webhook's id, the receivers outside and inside, and the names
    that were asked for. Outside is 127.0.0.1, which the operator allows and which stands for all public addresses, with
    TLS; inside is 127.0.0.2, which is as private as any, on the same port. Names resolve to the answers, one after the
    other.
    """
    authority = trustme.CA()
    tls, trusts = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("receiver.test").configure_cert(tls)
    authority.configure_trust(trusts)
    site, port = make(networks="127.0.0.1/32"), free_port()
    allowed = Allowed.from_environment(
        {"BACKPROBE_WEBHOOK_NETWORKS": "127.0.0.1/32", "BACKPROBE_WEBHOOK_PORTS": str(port)}
    )

    @contextlib.contextmanager
    def open_networks(resolutions, said=None):
        asked, left, stop = [], list(resolutions), threading.Event()

        def resolve(host, _port):
            asked.append(host)
            return left.pop(0)

        database, secret = site.context.database, site.context.settings.secret
        sender = Sender(database, secret, allowed, resolve=resolve, tls=trusts)
        with (
            Receiver(at=("127.0.0.2", port)) as inside,
            Receiver(at=("127.0.0.1", port), tls=tls, answers=said or [(204, {}, b"")]) as outside,
        ):
            thread = threading.Thread(target=sender.serve, args=(stop,))
            thread.start()
            webhook = create_webhook(site, url=f"https://receiver.test:{port}/in")["id"]
            try:
                yield site, f"/v1/webhooks/{webhook}", outside, inside, asked
            finally:
                stop.set()
                thread.join(60)

    return open_networks


def test_a_name_that_resolves_to_a_public_and_then_to_a_private_address_leads_nowhere_inside(two_networks):
    """Rebinding, live: over TLS, with a server that listens inside on the port of the URL."""
    with two_networks([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2", "127.0.0.1"]]) as (
        site,
        address,
        outside,
        inside,
        asked,
    ):
        first, rebound, both = (site.client.post(f"{address}/test") for _ in range(3))
        log = site.client.get(f"{address}/deliveries").text
    assert (first.status_code, first.json["state"]) == (200, "delivered")
    assert (rebound.status_code, rebound.json["code"]) == (422, "address-refused")
    assert (both.status_code, both.json["state"]) == (200, "delivered")
    assert asked == ["receiver.test"] * 3  # once for each try: what was looked at is what is connected to
    assert (len(outside.got), inside.got) == (2, [])
    assert set(outside.names) == {"receiver.test"}
    for said in (rebound.text, log):
        assert "127.0.0" not in said


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_not_followed(two_networks, status):
    where = [(status, {"Location": f"{scheme}://127.0.0.2/"}, b"") for scheme in ("http", "https")]
    with two_networks([["127.0.0.1"]] * 2, where) as (site, address, outside, inside, asked):
        where[0][1]["Location"] = f"http://127.0.0.2:{inside.port}/"
        where[1][1]["Location"] = f"//127.0.0.2:{inside.port}/"
        answers = [site.client.post(f"{address}/test") for _ in range(2)]
    assert [answer.json["tries"][0]["status"] for answer in answers] == [status] * 2
    assert {answer.json["state"] for answer in answers} == {"dead"}
    assert (len(outside.got), inside.got, asked) == (2, [], ["receiver.test"] * 2)


def test_the_manual_s_way_to_verify_takes_what_is_signed_and_nothing_else():
    (code,) = re.findall(r"```python\n(.*?)```", MANUAL.read_text(), re.DOTALL)
    manual = {}
    exec(code, manual)
    keys = [b"k" * 32, b"o" * 32]
    header = signing.signature(keys, "evt_1", 1000, b"{}")
    headers = {"webhook-id": "evt_1", "webhook-timestamp": "1000", "webhook-signature": header}
    for key in keys:
        assert manual["is_genuine"](headers, b"{}", signing.secret_text(key), lambda: 1200)
    wrong = ({"webhook-id": "evt_2"}, {"webhook-timestamp": "1001"}, {"webhook-signature": header[:-2]})
    for other in wrong:
        assert not manual["is_genuine"]({**headers, **other}, b"{}", signing.secret_text(keys[1]), lambda: 1200)
    assert not manual["is_genuine"](headers, b"{} ", signing.secret_text(keys[0]), lambda: 1200)
    assert not manual["is_genuine"](headers, b"{}", signing.secret_text(b"x" * 32), lambda: 1200)
    assert not manual["is_genuine"](headers, b"{}", signing.secret_text(keys[0]), lambda: 1300)


def test_the_end_of_a_run_and_its_new_findings_arrive_and_can_be_sent_again(make, samples):
    from store.webhooks import outbox

    site = make(networks="127.0.0.0/8")
    sender = Sender(site.context.database, site.context.settings.secret, LOOPBACK)
    with Receiver() as receiver:
        told = create_webhook(site, url=receiver.url())
        run = site.finished(samples.tutorial())
        with site.context.database.begin() as transaction:
            outbox.plan(transaction)
        assert sender.turn() == 2
        log = site.client.get(f"/v1/webhooks/{told['id']}/deliveries").json["items"]
        assert {(delivery["kind"], delivery["state"], delivery["attempts"]) for delivery in log} == {
            ("run.ended", "delivered", 1), ("finding.new", "delivered", 1),
        }  # fmt: skip
        (ended,) = (delivery for delivery in log if delivery["kind"] == "run.ended")
        assert ended["subject"] == run
        answer = site.client.post(f"/v1/deliveries/{ended['id']}/redeliver")
        assert (answer.status_code, answer.json["state"]) == (202, "pending")
        assert sender.turn() == 1
    ids = [headers["webhook-id"] for _, headers, _ in receiver.got]
    assert (len(ids), len(set(ids)), ids[-1]) == (3, 2, ended["event"])
    assert not any(samples.TUTORIAL.encode() in body for _, _, body in receiver.got)


def test_what_is_switched_off_is_not_sent_again(site):
    webhook = create_webhook(site)["id"]
    site.context.waiters.waiting = 1000
    delivery = site.client.post(f"/v1/webhooks/{webhook}/test").json["id"]
    site.context.waiters.waiting = 0
    site.client.patch(f"/v1/webhooks/{webhook}", json={"enabled": False}, headers={"If-Match": '"1"'})
    (told,) = site.client.get(f"/v1/webhooks/{webhook}/deliveries").json["items"]
    assert (told["state"], told["next_at"]) == ("canceled", None)
    answer = site.client.post(f"/v1/deliveries/{delivery}/redeliver")
    assert (answer.status_code, answer.json["code"]) == (409, "webhook-disabled")


def test_every_write_is_in_the_audit_log_without_a_secret(site):
    told = create_webhook(site)
    address = f"/v1/webhooks/{told['id']}"
    site.client.post(f"{address}/rotate")
    site.client.patch(address, json={"enabled": False}, headers={"If-Match": '"2"'})
    site.client.delete(address)
    entries = site.client.get(f"/v1/audit-log?object={told['id']}")
    assert [entry["action"] for entry in entries.json["items"]] == [
        "webhook.delete", "webhook.change", "webhook.rotate", "webhook.create",
    ]  # fmt: skip
    assert "whsec_" not in entries.text
