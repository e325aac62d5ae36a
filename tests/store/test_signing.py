"""Secrets that sign: only a seal is stored, and signatures are those of Standard Webhooks."""

import base64
import hmac

import pytest

from store.access.secret import server_secret
from store.database.settings import StoreSettings
from store.webhooks import signing

SERVER = b"s" * 32


def test_the_public_vector():
    """standard-webhooks, libraries: `whsec_MfKQ...`, the expected signature of each language's tests."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = signing.signature([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_keys_give_two_signatures_the_newest_first():
    new, old = (signing.signature([key], "evt_1", 5, b"{}") for key in (b"new", b"old"))
    assert signing.signature([b"new", b"old"], "evt_1", 5, b"{}") == f"{new} {old}"


def test_a_seal_gives_its_secret_to_this_server_only():
    seal = signing.new_seal(SERVER)
    key = signing.unseal_secret(seal, SERVER)
    assert len(key) == 32
    assert signing.unseal_secret(seal, SERVER) == key
    assert key not in seal
    assert signing.unseal_secret(signing.new_seal(SERVER), SERVER) != key
    for other in (b"t" * 32, b""):
        with pytest.raises(signing.ForeignSeal, match="BACKPROBE_SECRET"):
            signing.unseal_secret(seal, other)
    with pytest.raises(signing.ForeignSeal):
        signing.unseal_secret(seal[:-1] + bytes([seal[-1] ^ 1]), SERVER)


def test_what_is_shown_is_the_key_in_base64():
    key = signing.unseal_secret(signing.new_seal(SERVER), SERVER)
    shown = signing.secret_text(key)
    assert shown.startswith("whsec_")
    assert base64.b64decode(shown.removeprefix("whsec_")) == key
    assert 24 <= len(key) <= 64  # the standard's bounds
    assert hmac.compare_digest(base64.b64decode(shown[6:]), key)


def test_the_server_s_secret_is_the_environment_s_or_the_home_s(tmp_path):
    def secret(**environ):
        return server_secret(StoreSettings.from_environment(environ, tmp_path))

    made = secret()
    assert len(made) == 32
    assert secret(BACKPROBE_SECRET="") == made
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    named = "0123456789abcdef" * 2
    assert secret(BACKPROBE_SECRET=named) == named.encode()
    with pytest.raises(ValueError, match="has 31 of the 32 characters that it needs"):
        secret(BACKPROBE_SECRET=named[1:])
    with pytest.raises(ValueError, match="is one character repeated"):
        secret(BACKPROBE_SECRET="x" * 64)
    assert "abcdef" not in repr(StoreSettings.from_environment({"BACKPROBE_SECRET": named}, tmp_path))
