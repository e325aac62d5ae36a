"""No secret is in the text of the settings, in a refusal to start, in an answer or in a log line."""

from __future__ import annotations

import base64
import functools
import logging

import pytest

SECRETS = {
    "BACKPROBE_API_KEY": "planted-key-of-the-server",
    "BACKPROBE_SECRET": "planted-secret-of-the-server-32-characters",
    "BACKPROBE_DATABASE_URL": "postgresql://ann:planted-database@127.0.0.1:1/x",
    "BACKPROBE_BROKER_URL": "redis://:planted-broker@127.0.0.1:1/0",
    "BACKPROBE_RATE_URL": "redis://:planted-rates@127.0.0.1:1/0",
    "BACKPROBE_SPANS_URL": "http://ann:planted-spans@127.0.0.1:1/v1/traces",
    "BACKPROBE_OIDC_ISSUER": "https://id.example",
    "BACKPROBE_OIDC_CLIENT_ID": "backprobe",
    "BACKPROBE_OIDC_CLIENT_SECRET": "planted-client",
    "BACKPROBE_OIDC_URL": "https://backprobe.example",
    "BACKPROBE_OIDC_ALLOWED": "@example.org",
}


def test_settings_do_not_show_what_is_secret_in_them(tmp_path):
    from service.settings import Settings

    found = Settings.from_environment(SECRETS, tmp_path)
    kept = (found.api_key, found.secret, found.store.database_url, found.store.broker_url, found.rates.url,
            found.store.spans_url, found.oidc.client_secret)  # fmt: skip
    assert all("planted" in str(value) for value in kept)
    for shown in (repr(found), str(found), f"{found.store!r} {found.rates!r} {found.oidc!r}"):
        assert "planted" not in shown
        assert "tmp" in shown or "reads=600" in shown  # what is no secret is still told


@pytest.mark.parametrize(
    "wrong",
    [
        {"BACKPROBE_SPANS_URL": "grpc://ann:planted@collector"},
        {"BACKPROBE_OIDC_ISSUER": "ftp://ann:planted@id.example"},
        {"BACKPROBE_OIDC_ISSUER": "https://ann:planted@id.example?x"},
        {"BACKPROBE_OIDC_URL": "https://ann:planted@backprobe.example/below"},
        {"BACKPROBE_SECRET": "planted"},
    ],
)
def test_a_refusal_to_start_does_not_repeat_a_password(tmp_path, wrong):
    from service.settings import Settings

    with pytest.raises(ValueError, match="BACKPROBE_") as error:
        Settings.from_environment(SECRETS | wrong, tmp_path)
    assert "planted" not in str(error.value)


def test_no_answer_and_no_log_line_tells_a_secret(make, samples, caplog):
    """Every address of the document is read by the operator, who may see all there is to see."""
    secret = b"planted-secret-of-the-server-32-characters"
    site = make(api_key="planted-key-of-the-server", secret=secret)
    caplog.set_level(logging.DEBUG)
    site.client.environ_base["HTTP_AUTHORIZATION"] = "Bearer planted-key-of-the-server"
    key = site.client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}).json["secret"]
    asked = {"url": "https://hooks.example/planted-path", "events": ["run.ended"]}
    hook = site.client.post("/v1/webhooks", json=asked).json
    run = site.finished(samples.tutorial(nan=True))
    known = {"run": run, "webhook": hook["id"], "name": "BP101", "no": "0", "node": "0", "call": "1", "table": "sites",
             "code": "not-found"}  # fmt: skip
    told = {}
    for path, item in site.client.get("/openapi.json").json["paths"].items():
        if "get" in item and not path.endswith("/events"):
            there = functools.reduce(lambda text, item: text.replace("{" + item[0] + "}", item[1]), known.items(), path)
            told[there] = site.client.get(there)
    for path in ("/runs", f"/runs/{run}", "/rules", "/nowhere", "/metrics", "/readyz"):
        told[path] = site.client.get(path, headers={"Accept": "text/html"})
    told["401"] = site.client.get("/v1/runs", headers={"Authorization": f"Bearer {key}x"})
    told["query"] = site.client.get("/v1/runs", query_string={"api_key": key, "access_token": key})
    told["path"] = site.client.get(f"/v1/runs/{hook['secret']}")
    assert sum(answer.status_code == 200 for answer in told.values()) > 30
    known = ("planted-key", secret.decode(), secret.hex(), base64.b64encode(secret).decode(), key)
    for path, answer in told.items():
        for text in (*known, *((hook["secret"],) if path != "path" else ())):
            assert text.encode() not in answer.data, path
            assert text not in str(answer.headers), path
    for text in (*known, hook["secret"]):
        assert text not in caplog.text
    assert len(caplog.records) > 30
