"""`backprobe key`: keys from the command line, on the database that the server uses; and what commands say without it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import pytest

from tests.support.databases import migrated_sqlite


@pytest.fixture
def key(plain_site, capsys):
    """Runs `backprobe key ...` on the site's home; exit code and what was printed."""
    from service.commands.keys import key as add

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
    assert "  never used  " in line or "  used 20" in line
    assert me(plain_site, secret).status_code == 401
    assert key("revoke", line.split()[0])[0] == 2
    actions = plain_site.client.get("/v1/audit-log").json["items"]
    assert [entry["action"] for entry in actions][:2] == ["key.revoke", "key.create"]


def test_a_key_that_would_have_ended_already_is_refused(plain_site, key):
    code, out, err = key("create", "late", "--expires", "2020-01-01T00:00:00Z")
    assert (code, out) == (2, "")
    assert "2020-01-01T00:00:00.000Z, which is in the past" in err
    assert "  late" not in key("list")[1]


def test_a_tenant_is_made_with_its_first_key_and_sees_nothing_of_the_others(plain_site, key):
    plain_site.submit()
    _, secret, _ = key("create", "first", "--tenant", "acme")
    _, again, _ = key("create", "second", "--tenant", "acme")
    for printed in (secret, again):
        answer = plain_site.client.get("/v1/runs", headers={"Authorization": f"Bearer {printed.strip()}"})
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
    from service.commands.keys import key as add

    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    arguments = parser.parse_args(["key", "--home", str(tmp_path), "list"])
    with pytest.raises(SystemExit) as ended:
        arguments.run(arguments)
    assert ended.value.code == 2
    assert "backprobe migrate" in capsys.readouterr().err


COMMANDS = [
    "key list", "key create x", "key revoke key_1", "key deprecated", "tenant list", "tenant set default --weight 2",
    "migrate", "api --port 0", "backup FILE", "vacuum", "expire", "stats",
    "stats --check", "export run_1 FILE", "import FILE", "rejudge", "worker --check", "reaper",
]  # fmt: skip
EACH = """\
import contextlib, io, json, sys
from backprobe.cli import main
for words in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            code, _ = 1, said.write(f"Traceback: {error!r}")
    print(json.dumps([code, said.getvalue()]))
"""


def said_by_each(tmp_path, chosen=COMMANDS, **environ):
    """Of each command its exit code and what it wrote, one after the other in one process."""
    commands = [command.replace("FILE", str(tmp_path / "file")).split() for command in chosen]
    environment = os.environ | {"BACKPROBE_HOME": str(tmp_path / "home")} | environ
    done = subprocess.run(
        [sys.executable, "-c", EACH], input=json.dumps(commands), env=environment, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == len(chosen), done.stderr
    return dict(zip(chosen, map(json.loads, lines), strict=True))


def test_each_command_says_in_one_line_that_its_database_is_away(tmp_path):
    for command, (code, said) in said_by_each(
        tmp_path, BACKPROBE_DATABASE_URL="postgresql://nobody:hush-hush@127.0.0.1:1/none"
    ).items():
        assert code in {2, 3}, (command, said)
        assert len(said.splitlines()) == 1, (command, said)
        assert said.startswith("backprobe"), (command, said)
        assert "refused" in said, (command, said)
        assert "hush" not in said, (command, said)


DAMAGES = {
    "no database": lambda _: b"this is not a database\n" * 4000,
    "cut off": lambda whole: whole[: len(whole) // 2],
    "pages overwritten": lambda whole: whole[: 3 * 4096] + b"\xa5" * (len(whole) - 3 * 4096),
    "schema not UTF-8": lambda whole: whole.replace(b"CREATE TABLE tenant", b"CREATE T\xff\xff\xff\xff tenant"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_command_says_in_one_line_that_its_sqlite_file_is_damaged(tmp_path, damage):
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_bytes(bytes(range(32)))
    (home / "backprobe.db").write_bytes(DAMAGES[damage](migrated_sqlite()))
    for command, (code, said) in said_by_each(tmp_path).items():
        assert code in {2, 3}, (command, said)
        assert len(said.splitlines()) == 1, (command, said)
        assert said.startswith("backprobe"), (command, said)
        assert "damaged" in said or command == "backup FILE", (command, said)


def test_each_command_that_needs_the_secret_refuses_a_short_one_in_one_line(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_bytes(b"short")
    (home / "backprobe.db").write_bytes(migrated_sqlite())
    needing = [command for command in COMMANDS if command.startswith(("key", "tenant", "api", "reaper"))]
    for command, (code, said) in said_by_each(tmp_path, needing).items():
        assert code in {2, 3}, (command, said)
        assert len(said.splitlines()) == 1, (command, said)
        assert "has 5 bytes and needs at least 32" in said, (command, said)


@pytest.mark.parametrize(
    "environ",
    [
        {"BACKPROBE_DATABASE_URL": "nonsense"},
        {"BACKPROBE_DATABASE_URL": "postgresql://u:p@h:notaport/x"},
        {"BACKPROBE_DATABASE_URL": "sqlite:///:memory:"},
        {"BACKPROBE_WEBHOOK_PORTS": "https"},
    ],
    ids=["no URL", "no port", "no file", "a wrong setting"],
)
def test_each_command_says_in_one_line_that_its_environment_is_wrong(tmp_path, environ):
    for command, (code, said) in said_by_each(tmp_path, **environ).items():
        assert code in {2, 3}, (command, said)
        assert len(said.splitlines()) == 1, (command, said)
        assert said.startswith("backprobe"), (command, said)
