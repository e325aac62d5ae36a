"""`backprobe key`: keys from the command line, on the database that the server uses."""

from __future__ import annotations

import argparse

import pytest


@pytest.fixture
def key(plain_site, capsys):
    """Runs `backprobe key ...` on the site's home; exit code and what was printed."""
    from service.key_commands import key as add

    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    home = str(plain_site.context.settings.store.home)

    def run(*words):
        arguments = parser.parse_args(["key", "--home", home, *words])
        code = arguments.run(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def me(site, secret):
    return site.client.get("/v1/me", headers={"Authorization": f"Bearer {secret.strip()}"})


def test_a_key_is_made_listed_and_taken_back(plain_site, key):
    code, secret, told = key("create", "nightly \x1b[31m", "--scope", "read", "--expires", "2120-01-01T00:00:00Z")
    assert (code, secret.startswith("bp_")) == (0, True)
    assert "shown this once" in told
    answer = me(plain_site, secret)
    assert (answer.json["scopes"], answer.json["expires_at"]) == (["read"], "2120-01-01T00:00:00.000Z")
    _, listed, _ = key("list")
    assert secret.strip() not in listed
    assert "\x1b" not in listed
    (line,) = [line for line in listed.splitlines() if "nightly" in line]
    assert key("revoke", line.split()[0])[0] == 0
    assert me(plain_site, secret).status_code == 401
    assert key("revoke", line.split()[0])[0] == 2
    actions = plain_site.client.get("/v1/audit-log").json["items"]
    assert [entry["action"] for entry in actions][:2] == ["key.revoke", "key.create"]


def test_a_tenant_is_made_with_its_first_key_and_sees_nothing_of_the_others(plain_site, key):
    plain_site.submit()
    _, secret, _ = key("create", "first", "--tenant", "acme")
    _, again, _ = key("create", "second", "--tenant", "acme")
    for one in (secret, again):
        answer = plain_site.client.get("/v1/runs", headers={"Authorization": f"Bearer {one.strip()}"})
        assert answer.json["items"] == []
    assert len(key("list", "--tenant", "acme")[1].splitlines()) == 2


@pytest.mark.parametrize(
    "words",
    [("create", "x", "--scope", "all"), ("create", "x", "--expires", "soon"), ("list", "--tenant", "none-such"),
     ("create", "x", "--expires", "2027-01-01T00:00:00"), ("revoke", "key_nonsense")],
)  # fmt: skip
def test_what_cannot_be_done_is_said_and_ends_with_2(key, words):
    code, out, err = key(*words)
    assert (code, out) == (2, "")
    assert err.startswith("backprobe: ")


def test_a_database_that_is_not_migrated_is_named(tmp_path, capsys):
    from service.key_commands import key as add

    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    arguments = parser.parse_args(["key", "--home", str(tmp_path), "list"])
    with pytest.raises(SystemExit) as ended:
        arguments.run(arguments)
    assert ended.value.code == 2
    assert "backprobe migrate" in capsys.readouterr().err
