"""The home's secret: made once for good, never so short that it can be guessed, and never replaced unnoticed."""

import os
import stat

import pytest

from store.access import keys
from store.access.secret import SecretRefused, server_secret
from store.database import durable_files
from store.database.session import Database
from store.database.settings import StoreSettings
from tests.support.databases import migrated_sqlite


@pytest.fixture
def settings(tmp_path):
    return StoreSettings.from_environment({}, home=tmp_path / "home")


@pytest.fixture
def with_a_key(settings):
    """The settings of a home whose database has one key and which has no secret, the database, and the key's id."""
    path = settings.make_home() / "backprobe.db"
    path.write_bytes(migrated_sqlite())
    database = Database(settings.database_url)
    with database.begin() as transaction:
        new = keys.NewKey(name="k", prefix="abcd1234", digest=b"d" * 32, scopes=("read",), created_by="test")
        made = keys.create(transaction, new, tenant_id=1)
    yield settings, database, made.id
    database.close()


def test_a_new_secret_is_made_once_and_is_its_owners_alone(settings):
    made = server_secret(settings)
    assert (len(made), server_secret(settings)) == (32, made)
    assert stat.S_IMODE((settings.home / "secret").stat().st_mode) == 0o600
    assert [path.name for path in settings.home.iterdir()] == ["secret"]


@pytest.mark.parametrize("content", [b"", b"short", b"s" * 31])
def test_an_empty_or_short_secret_is_refused_with_its_path(settings, content):
    path = settings.make_home() / "secret"
    path.write_bytes(content)
    with pytest.raises(SecretRefused, match=f"{path} has {len(content)} bytes and needs at least 32"):
        server_secret(settings)
    assert path.read_bytes() == content
    path.write_bytes(bytes(range(32)))
    assert server_secret(settings) == bytes(range(32))


@pytest.mark.parametrize("byte", [b"\0", b"s", b"\xff"])
def test_a_secret_of_one_byte_repeated_is_refused(settings, byte):
    path = settings.make_home() / "secret"
    path.write_bytes(byte * 32)
    with pytest.raises(SecretRefused, match=f"{path} is one byte repeated"):
        server_secret(settings)
    assert path.read_bytes() == byte * 32


def test_the_file_and_its_name_are_on_the_disk_before_it_is_used(settings, monkeypatch):
    synced = []
    monkeypatch.setattr(
        durable_files.os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    )
    server_secret(settings)
    draft, folder = synced
    assert os.path.basename(draft).startswith(".secret.")
    assert folder == str(settings.home)


def test_no_new_secret_is_made_for_a_database_with_keys(with_a_key):
    settings, database, key = with_a_key
    with pytest.raises(SecretRefused, match=r"there is no secret .* and the database holds keys or webhooks"):
        server_secret(settings)
    assert not (settings.home / "secret").exists()
    with database.begin() as transaction:
        keys.revoke(transaction, key, tenant_id=1)
    assert len(server_secret(settings)) == 32


def test_a_secret_of_the_environment_needs_no_file(with_a_key):
    settings, _, _ = with_a_key
    secret = "0123456789abcdef" * 2
    named = StoreSettings.from_environment({"BACKPROBE_SECRET": secret}, home=settings.home)
    assert server_secret(named) == secret.encode()


def test_an_empty_database_is_no_reason_to_refuse(settings):
    (settings.make_home() / "backprobe.db").touch()
    assert len(server_secret(settings)) == 32
