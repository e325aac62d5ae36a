"""The sender, against real receivers on loopback, on both databases: signed, bounded, tried again, never led astray."""

import base64
import hmac
import json
import ssl
import threading
import time

import jsonschema
import pytest
import sqlalchemy as sa
import trustme

from store import tables
from store.tables import Now
from store.webhooks import chat_messages, deliveries, delivery_log, outbox, signing, webhooks
from store.webhooks.destination import Allowed
from tests.support.receiver import Raw, Receiver
from tests.support.waiting import wait_until
from workers.upkeep.sender import Sender

SECRET = b"s" * 32
PORTS = {"BACKPROBE_WEBHOOK_PORTS": "1-65535"}
LOOPBACK = Allowed.from_environment({"BACKPROBE_WEBHOOK_NETWORKS": "127.0.0.0/8,::1/128", **PORTS})
TENANT = webhooks.Scope()


@pytest.fixture
def hook(database):
    """`hook(url)`: a webhook that wants the ends of runs, and one such event planned for it."""

    def make_webhook(url, events=1, tenant_id=1):
        with database.begin() as transaction:
            given = {"url": url, "events": ["run.ended"], "enabled": True, "project": None}
            scope = webhooks.Scope(tenant_id=tenant_id)
            made = webhooks.create(transaction, scope, given, signing.new_seal(SECRET))
        for _ in range(events):
            with database.begin() as transaction:
                ended = {"run": "run_1", "status": "failed"}
                outbox.enqueue(transaction, "run.ended", "run_1", ended, tenant_id=tenant_id)
                outbox.plan(transaction)
        return made

    return make_webhook


@pytest.fixture
def sender(database):
    def build_sender(**more):
        return Sender(database, SECRET, more.pop("allowed", LOOPBACK), **{"seconds": 30.0, **more})

    return build_sender


@pytest.fixture
def log(database):
    """`log(hook)`: its deliveries, newest first."""

    def read_log(made):
        with database.read() as reading:
            return delivery_log.page(reading, made.number).items

    return read_log


@pytest.fixture
def make_due(database):
    def moved():
        with database.begin() as transaction:
            transaction.execute(sa.update(tables.delivery).values(next_at=Now(-1.0), lease_until=None))

    return moved


def only_try(log, made):
    (found,) = log(made)
    (tried,) = found.tries
    return found, tried


def keys(database, made):
    with database.read() as reading:
        row = reading.execute(sa.select(tables.webhook).where(tables.webhook.c.id == made.number)).one()
    return [signing.unseal_secret(seal, SECRET) for seal in (row.secret, row.old_secret) if seal is not None]


def test_an_event_arrives_signed_with_ids_and_counts_only(database, hook, sender, log):
    with Receiver(answers=[(200, {}, b"thanks")]) as receiver:
        made = hook(receiver.url("/in?x=1"))
        assert sender().turn() == 1
        assert sender().turn() == 0
    ((path, headers, body),) = receiver.got
    assert path == "/in?x=1"
    told = json.loads(body)
    assert (told["type"], told["data"]) == ("run.ended", {"run": "run_1", "status": "failed"})
    found, tried = only_try(log, made)
    assert told["timestamp"] == found.created_at
    assert headers["webhook-id"] == found.event
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 600
    signed = f"{found.event}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(keys(database, made)[0], signed, "sha256")
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    assert (found.state, tried.status, tried.answer, tried.address) == ("delivered", 200, "thanks", "127.0.0.1")


def test_a_failed_try_comes_again_with_the_same_id_and_bytes(hook, sender, log, make_due):
    with Receiver(answers=[(500, {}, b"broken"), (204, {}, b"")]) as receiver:
        made = hook(receiver.url())
        sender().turn()
        assert log(made)[0].state == "pending"
        assert log(made)[0].next_at is not None
        make_due()
        sender().turn()
    (found,) = log(made)
    assert (found.state, [tried.status for tried in found.tries]) == ("delivered", [500, 204])
    first, second = receiver.got
    assert (first[1]["webhook-id"], first[2]) == (second[1]["webhook-id"], second[2])


def test_after_rotation_two_secrets_sign_until_the_old_one_ends(database, hook, sender, make_due):
    with Receiver() as receiver:
        made = hook(receiver.url())
        (old,) = keys(database, made)
        with database.begin() as transaction:
            webhooks.rotate(transaction, made, signing.new_seal(SECRET))
        sender().turn()
        with database.begin() as transaction:
            transaction.execute(sa.update(tables.webhook).values(old_until=Now(-1.0)))
            outbox.enqueue(transaction, "run.ended", "run_2", {})
            outbox.plan(transaction)
        sender().turn()
    new, kept = keys(database, made)
    assert kept == old
    for (_, headers, body), signing_keys in zip(receiver.got, ([new, old], [new]), strict=True):
        at = int(headers["webhook-timestamp"])
        assert headers["webhook-signature"] == signing.signature(signing_keys, headers["webhook-id"], at, body)


def test_a_redirect_is_not_followed(hook, sender, log):
    with Receiver() as inside, Receiver(answers=[(307, {"Location": inside.url()}, b"")]) as receiver:
        made = hook(receiver.url())
        sender().turn()
        assert (len(receiver.got), inside.got) == (1, [])
    found, tried = only_try(log, made)
    assert (found.state, tried.status) == ("pending", 307)


def test_a_name_that_comes_to_lead_inside_is_refused_at_the_next_try(hook, sender, log, make_due):
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    asked = []

    def resolve(host, port):
        asked.append(host)
        return answers.pop(0)

    with Receiver(answers=[(500, {}, b"")]) as receiver:
        made = hook(f"http://receiver.test:{receiver.port}/")
        sender(resolve=resolve).turn()
        make_due()
        sender(resolve=resolve).turn()
        assert len(receiver.got) == 1
    assert receiver.got[0][1]["host"] == f"receiver.test:{receiver.port}"
    assert asked == ["receiver.test", "receiver.test"]  # once for each try: what was looked at is what is connected to
    (found,) = log(made)
    assert [tried.status for tried in found.tries] == [500, None]
    assert found.tries[1].error == "address-refused: its name leads to an address that is not allowed"


def test_without_the_operator_s_word_loopback_is_refused_and_nothing_is_sent(hook, sender, log):
    with Receiver() as receiver:
        made = hook(f"https://127.0.0.1:{receiver.port}/")
        named = hook("https://localhost/", events=0)
        sender(allowed=Allowed.from_environment(PORTS)).turn()
        assert receiver.got == []
    for webhook, said in ((made, "127.0.0.1 is a loopback"), (named, "its name leads to")):
        for found in log(webhook):
            assert found.tries[0].error.startswith(f"address-refused: {said}")


def test_a_port_is_looked_at_again_at_each_try(hook, sender, log, make_due):
    """The operator has taken a port back since the webhook was made."""
    with Receiver() as receiver:
        made = hook(receiver.url(), events=0)
        named = hook(f"http://receiver.test:{receiver.port}/")
        only = Allowed.from_environment({"BACKPROBE_WEBHOOK_NETWORKS": "127.0.0.0/8"})
        sender(allowed=only, resolve=lambda *_: ["127.0.0.1"]).turn()
        assert receiver.got == []
        said = f"address-refused: port {receiver.port} is not allowed; 443 or 80 is"
        assert [log(webhook)[0].tries[0].error for webhook in (made, named)] == [said, said]
        make_due()
        sender(resolve=lambda *_: ["127.0.0.1"]).turn()
        assert len(receiver.got) == 2


def test_an_address_that_takes_no_connection_makes_way_for_the_next(hook, sender, log):
    with Receiver() as receiver:
        made = hook(f"http://receiver.test:{receiver.port}/")
        sender(resolve=lambda *_: ["::1", "127.0.0.1"]).turn()
    assert only_try(log, made)[0].state == "delivered"


def test_a_name_that_nobody_knows_is_said(hook, sender, log):
    def resolve(host, port):
        raise OSError("no such name")

    made = hook("https://receiver.test/")
    sender(resolve=resolve).turn()
    assert only_try(log, made)[1].error == "not-resolved: the name has no address"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.mark.parametrize(("name", "error"), [("receiver.test", None), ("other.test", "bad-certificate")])
def test_tls_goes_to_the_address_with_the_name_of_the_url(hook, sender, log, authority, name, error):
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert(name).configure_cert(server)
    authority.configure_trust(client)
    with Receiver(tls=server) as receiver:
        made = hook(f"https://receiver.test:{receiver.port}/")
        sender(resolve=lambda *_: ["127.0.0.1"], tls=client).turn()
    found, tried = only_try(log, made)
    assert receiver.names == ["receiver.test"]
    assert len(receiver.got) == (error is None)
    assert found.state == ("delivered" if error is None else "pending")
    assert (tried.error or "").startswith(error or "")


def test_a_certificate_that_nobody_vouches_for_is_refused(hook, sender, log, authority):
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("receiver.test").configure_cert(server)
    with Receiver(tls=server) as receiver:
        made = hook(f"https://receiver.test:{receiver.port}/")
        sender(resolve=lambda *_: ["127.0.0.1"]).turn()
        assert receiver.got == []
    assert only_try(log, made)[1].error.startswith("bad-certificate: ")


def silent(connection):
    while connection.recv(65536):
        pass


def dripping(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        connection.sendall(b"a")
        threading.Event().wait(0.01)


@pytest.mark.parametrize("speak", [silent, dripping])
def test_a_receiver_that_gives_no_answer_in_time_is_left(hook, sender, log, speak):
    with Raw(speak) as receiver:
        made = hook(receiver.url())
        sender(seconds=0.3).turn()
    found, tried = only_try(log, made)
    assert (found.state, tried.status) == ("pending", None)
    assert tried.error.startswith("timed-out: ")
    assert tried.ms >= 250


def test_one_that_breaks_off_after_its_status_has_it(hook, sender, log):
    def speak(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 500\r\n\r\nhalf")

    with Raw(speak) as receiver:
        made = hook(receiver.url())
        sender().turn()
    found, tried = only_try(log, made)
    assert (found.state, tried.status, tried.answer) == ("delivered", 202, "half")


def test_of_an_endless_answer_the_first_kibibyte_is_read(hook, sender, log):
    def speak(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 503 Busy\r\n\r\n")
        while True:
            connection.sendall(b"\xff" + b"b" * 65535)

    with Raw(speak) as receiver:
        made = hook(receiver.url())
        sender().turn()
        assert receiver.broken.wait(30)
    _, tried = only_try(log, made)
    assert (tried.status, len(tried.answer)) == (503, 1024)
    assert tried.answer.startswith("\ufffdbbb")


def test_what_is_no_http_is_said_in_our_words(hook, sender, log):
    def speak(connection):
        connection.recv(65536)
        connection.sendall(b"SSH-2.0-secret words\r\n\r\n")

    with Raw(speak) as receiver:
        made = hook(receiver.url())
        sender().turn()
    tried = only_try(log, made)[1]
    assert tried.error.startswith("no-http: ")
    assert "secret" not in tried.error


def test_a_receiver_that_is_gone_is_switched_off(database, hook, sender, log):
    with Receiver(answers=[(410, {}, b"")]) as receiver:
        made = hook(receiver.url(), events=3)
        assert sender().turn() == 1
    with database.read() as reading:
        now = webhooks.get(reading, TENANT, made.id)
    assert (now.enabled, "410" in now.disabled_reason) == (False, True)
    assert sorted(found.state for found in log(made)) == ["canceled", "canceled", "dead"]


def test_a_test_call_is_tried_once_and_counts_for_nothing(database, hook, sender, log):
    with Receiver(answers=[(410, {}, b"no")]) as receiver:
        made = hook(receiver.url(), events=0)
        with database.begin() as transaction:
            assert outbox.enqueue_test(transaction, made.id, tenant_id=2) is None
            public_id = outbox.enqueue_test(transaction, made.id)
        sender().turn()
    ((_, _, body),) = receiver.got
    assert json.loads(body)["type"] == "webhook.test"
    found, tried = only_try(log, made)
    assert (found.id, found.state, tried.status) == (public_id, "dead", 410)
    with database.read() as reading:
        now = webhooks.get(reading, TENANT, made.id)
    assert (now.enabled, now.failures) == (True, 0)


def test_under_another_secret_of_the_server_nothing_is_sent(database, hook, log):
    with Receiver() as receiver:
        made = hook(receiver.url())
        Sender(database, b"t" * 32, LOOPBACK).turn()
        assert receiver.got == []
    assert only_try(log, made)[1].error.startswith("foreign-seal: ")


def test_one_that_hangs_leaves_the_others_their_turn(database, hook, sender, log):
    """Three events wait for one that hangs and one for another; all seats are never the first one's."""
    stop, released = threading.Event(), threading.Event()
    with Raw(lambda _: released.wait(60)) as hanging, Receiver() as receiver:
        hangs, works = hook(hanging.url(), events=3), hook(receiver.url(), events=1)
        thread = threading.Thread(target=sender().serve, args=(stop,), daemon=True)
        thread.start()
        wait_until(lambda: receiver.got, "the quick one has its delivery", 30)
        assert hanging.connections <= 2
        stop.set()
        released.set()
        thread.join(30)
    assert not thread.is_alive()
    assert log(works)[0].state == "delivered"
    assert {found.state for found in log(hangs)} == {"pending"}


def test_a_tenant_whose_webhooks_all_hang_leaves_the_others_their_turn(database, hook, sender, log):
    from store.access import tenants

    stop, released = threading.Event(), threading.Event()
    with database.begin() as transaction:
        other = tenants.create(transaction, "tnt_of_one_that_works")
    with Raw(lambda _: released.wait(60)) as hanging, Receiver() as receiver:
        for _ in range(5):  # each may have two tries under way, which is more than there are seats
            hook(hanging.url(), events=2)
        works = hook(receiver.url(), tenant_id=other)
        thread = threading.Thread(target=sender().serve, args=(stop,), daemon=True)
        thread.start()
        wait_until(lambda: receiver.got, "the quick one has its delivery", 60)
        stop.set()
        released.set()
        thread.join(30)
        assert receiver.got
    assert hanging.connections >= 6
    assert log(works)[0].state == "delivered"


def test_a_fault_of_ours_is_logged_by_its_class_and_the_delivery_comes_back(
    database, hook, sender, log, make_due, monkeypatch, caplog
):
    with Receiver() as receiver:
        made = hook(receiver.url())

        def broken(*_):
            raise ZeroDivisionError("a stranger's text")

        broken_sender = sender(resolve=broken)
        monkeypatch.setattr(deliveries, "settle", broken)
        broken_sender.turn()
        monkeypatch.undo()
        assert "failed on our side: ZeroDivisionError" in caplog.text
        assert "stranger" not in caplog.text
        make_due()
        broken_sender.turn()
    assert log(made)[0].state == "delivered"


def events():
    """One event of each kind, with texts that mean something to Slack or Markdown."""
    hostile = "<!channel> & [x](https://evil.test) *b*"
    yield "run.ended", {"run": "run_1", "status": "failed", "findings": {"error": 1, "warning": 2}}
    yield "finding.new", {"group": "grp_1", "run": "run_1", "rule": hostile, "level": "warning"}
    yield "finding.returned", {"group": "grp_1", "run": "run_1", "rule": "leaf", "level": "error"}
    yield (
        "audit.judged",
        {
            "audit": "aud_1",
            "verdict": "failed",
            "items": {"pass": 2, "not-run": 1},
            "findings": {"new": 0, "known": 3, "gone": 1},
        },
    )
    yield "audit_item.ended", {"audit": "aud_1", "custom_id": hostile * 100, "run": "run_1", "status": "failed"}
    groups = [{"group": "fg_1", "rule": hostile, "level": "error", "runs": 3}]
    week = {"project": "prj_1", "project_name": hostile, "from": "2026-11-23", "to": "2026-11-29", "new": 1}
    yield "digest.weekly", week | {"regressed": 0, "fixed": 2, "open": 4, "groups": groups}
    yield outbox.TEST, {"webhook": "wh_1"}


def due(kind, body, form):
    facts = {"id": "dlv_1", "attempt": 1, "event_id": "evt_1", "at": "", "webhook": "wh_1", "url": "", "secret": b""}
    return deliveries.Due(
        **facts, kind=kind, body=body, format=form, old_secret=None, number=1, webhook_id=1, tenant_id=1
    )


SLACK = {
    "type": "object", "additionalProperties": False, "required": ["text", "blocks"],
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "blocks": {"type": "array", "maxItems": 50, "items": {
            "type": "object", "additionalProperties": False, "required": ["type", "text"],
            "properties": {"type": {"const": "section"}, "text": {
                "type": "object", "additionalProperties": False, "required": ["type", "text"],
                "properties": {"type": {"const": "mrkdwn"}, "text": {"type": "string", "maxLength": 3000}},
            }},
        }},
    },
}  # fmt: skip
RUN_OF_TEXT = {
    "type": "object", "additionalProperties": False, "required": ["type", "text"],
    "properties": {"type": {"const": "TextRun"}, "text": {"type": "string"}, "weight": {"const": "Bolder"}},
}  # fmt: skip
CARD = {
    "type": "object", "additionalProperties": False, "required": ["$schema", "type", "version", "body"],
    "properties": {
        "$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"},
        "type": {"const": "AdaptiveCard"}, "version": {"const": "1.4"},
        "body": {"type": "array", "items": {
            "type": "object", "additionalProperties": False, "required": ["type", "inlines"],
            "properties": {"type": {"const": "RichTextBlock"}, "inlines": {"type": "array", "items": RUN_OF_TEXT}},
        }},
        "actions": {"type": "array", "items": {
            "type": "object", "additionalProperties": False, "required": ["type", "title", "url"],
            "properties": {"type": {"const": "Action.OpenUrl"}, "title": {"type": "string"}, "url": {"type": "string"}},
        }},
    },
}  # fmt: skip
TEAMS = {
    "type": "object", "additionalProperties": False, "required": ["type", "attachments"],
    "properties": {"type": {"const": "message"}, "attachments": {"type": "array", "items": {
        "type": "object", "additionalProperties": False, "required": ["contentType", "content"],
        "properties": {"contentType": {"const": "application/vnd.microsoft.card.adaptive"}, "content": CARD},
    }}},
}  # fmt: skip


@pytest.mark.parametrize(("form", "schema"), [("slack", SLACK), ("teams", TEAMS)])
@pytest.mark.parametrize("public_url", [None, "https://pages.test/backprobe"])
def test_every_kind_of_event_is_a_message_of_the_form_that_the_channel_takes(form, schema, public_url):
    for kind, body in events():
        sent = chat_messages.body_of(due(kind, body, form), public_url)
        message = json.loads(sent)
        jsonschema.validate(message, schema)
        assert sent == chat_messages.body_of(due(kind, body, form), public_url)
        assert (b"https://pages.test/backprobe/" in sent) == (public_url is not None)
        if form == "slack":
            assert "<!channel>" not in sent.decode()


def order_keys(value):
    """The value as PostgreSQL keeps it in JSONB: keys by their length, then by their bytes."""
    if isinstance(value, list):
        return [order_keys(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: order_keys(value[key]) for key in sorted(value, key=lambda key: (len(key.encode()), key.encode()))}


@pytest.mark.parametrize("form", ["slack", "teams"])
@pytest.mark.parametrize(("kind", "body"), list(events()))
def test_a_message_says_every_fact_and_is_the_same_whatever_the_order_of_the_keys(kind, body, form):
    sent = chat_messages.body_of(due(kind, body, form), None)
    assert chat_messages.body_of(due(kind, order_keys(body), form), None) == sent
    named = [name for name in body if name != "groups"]
    counted = [f"{count} {word}" for value in body.values() if isinstance(value, dict) for word, count in value.items()]
    said = [sent.decode().find(words) for words in [f"{name}: " for name in named] + counted]
    assert min(said) > 0


def test_a_webhook_for_slack_gets_a_message(database, hook, sender):
    with Receiver(answers=[(200, {}, b"ok")]) as receiver:
        made = hook(receiver.url())
        with database.begin() as transaction:
            assert webhooks.change(transaction, TENANT, made, {"format": "slack"})
        assert sender(public_url="https://pages.test").turn() == 1
    ((_path, _headers, body),) = receiver.got
    assert json.loads(body) == {
        "text": "Run failed",
        "blocks": [
            {
                "type": "section",
                "text": {
                    "type": "mrkdwn",
                    "text": "*Run failed*\nrun: run_1\nstatus: failed\n<https://pages.test/runs/run_1|Open in Backprobe>",
                },
            }
        ],
    }
