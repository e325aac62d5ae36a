"""Settings, limits and ids: values that need no database."""

import datetime
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.database import ids
from store.database.settings import EMBEDDED_TRANSPORT, StoreSettings, celery_settings, with_driver
from store.database.text import decode_text, encode_text, json_text, json_value
from store.runs.limits import LIMITS, LimitOutOfRange, Limits, UnknownLimit


def test_without_a_word_everything_lies_in_the_users_home(tmp_path):
    settings = StoreSettings.from_environment({}, home=tmp_path / "home")
    assert settings.database_url == f"sqlite:///{tmp_path}/home/backprobe.db"
    assert settings.embedded
    assert stat.S_IMODE(settings.make_home().stat().st_mode) == 0o700
    assert StoreSettings.from_environment({"BACKPROBE_HOME": str(tmp_path)}).home == tmp_path
    assert StoreSettings.from_environment({"BACKPROBE_HOME": ""}).home.name == "backprobe"


def test_a_database_url_gets_our_driver():
    environment = {"BACKPROBE_DATABASE_URL": "postgresql://u@h/d", "BACKPROBE_BROKER_URL": "redis://h/1"}
    settings = StoreSettings.from_environment(environment, home=Path("h"))
    assert settings.database_url == "postgresql+psycopg://u@h/d"
    assert not settings.embedded
    assert with_driver("postgres://h/d") == "postgresql+psycopg://h/d"
    assert with_driver("sqlite:////tmp/x.db") == "sqlite:////tmp/x.db"


def test_celery_is_told_of_the_broker(tmp_path):
    embedded = celery_settings(StoreSettings.from_environment({}, home=tmp_path))
    assert embedded["broker_transport"] == EMBEDDED_TRANSPORT
    assert embedded["broker_transport_options"]["data_folder_in"] == str(tmp_path / "broker" / "messages")
    assert (embedded["task_acks_late"], embedded["worker_prefetch_multiplier"]) == (False, 1)
    for url, option in (("redis://h/0", "health_check_interval"), ("amqp://h//", "confirm_publish")):
        server = celery_settings(StoreSettings.from_environment({"BACKPROBE_BROKER_URL": url}, home=tmp_path))
        assert server["broker_url"] == url
        assert option in server["broker_transport_options"]


def test_limits_have_a_default_between_least_and_most():
    for limit in LIMITS.values():
        assert limit.least <= limit.default <= limit.most
        assert getattr(Limits(), limit.name) == limit.default
    assert set(Limits().to_column()) == set(LIMITS)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_outside_its_range_is_refused_by_name(name):
    limit = LIMITS[name]
    for value in (limit.least - 1, limit.most + 1, 1.5, "9", True, None):
        with pytest.raises(LimitOutOfRange, match=name) as refused:
            Limits.from_request({name: value})
        assert (refused.value.name, refused.value.least, refused.value.most) == (name, limit.least, limit.most)
    for value in (limit.least, limit.most):
        assert Limits.from_request({name: value}).to_column()[name] == value


def test_an_unknown_limit_is_refused_and_an_old_one_is_dropped():
    with pytest.raises(UnknownLimit, match="wishes"):
        Limits.from_request({"wishes": 3})
    assert Limits.from_stored({"wishes": 3, "threads": 2}) == Limits(threads=2)


@given(ms=st.integers(0, 2**47))
def test_an_id_tells_its_time_and_sorts_by_it(ms):
    public_id = ids.new_id("run", ms)
    assert ids.is_id("run", public_id)
    assert not ids.is_id("snp", public_id)
    assert ids.milliseconds(public_id) == ms
    assert public_id < ids.new_id("run", ms + 1)


def test_an_id_is_a_uuid_of_version_7():
    bits = 0
    for letter in ids.new_id("run").partition("_")[2]:
        bits = bits << 5 | "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    assert (bits >> 76 & 15, bits >> 62 & 3) == (7, 2)


def test_the_part_of_an_id_counts_months_since_2020():
    for year, month, part in ((2020, 1, 0), (2020, 12, 11), (2026, 11, 82)):
        at = datetime.datetime(year, month, 28, 23, 59, tzinfo=datetime.UTC)
        assert ids.part(ids.new_id("run", int(at.timestamp() * 1000))) == part


@pytest.mark.parametrize(
    "text",
    ["", "run_", "run_01JD8PZ4T8W2K5C7Q9R3M6X1B", "run_81JD8PZ4T8W2K5C7Q9R3M6X1BA", "run_01jd8pz4t8w2k5c7q9r3m6x1ba"],
)
def test_what_is_no_id_is_refused(text):
    assert not ids.is_id("run", text)
    with pytest.raises(ValueError, match="is not a public id"):
        ids.part(text)


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\0\x1a01")))
def test_text_comes_back_and_holds_no_nul_meanwhile(text):
    assert "\0" not in encode_text(text)
    assert decode_text(encode_text(text)) == text


PLAIN = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\0\x1a\\u0"), max_size=8)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | PLAIN,
        lambda inner: st.lists(inner) | st.dictionaries(PLAIN, inner),
        max_leaves=12,
    )
)
def test_json_comes_back_and_holds_no_nul_meanwhile(value):
    text = json_text(value)
    assert "\\u0000" not in text.replace("\\\\", "")
    assert json_value(text) == json_value(text.encode()) == value


def test_lone_surrogates_are_written_as_escapes():
    assert encode_text("a\ud800") == "a\\ud800"
    assert json_value(json_text({"k": ["\ud800"]})) == {"k": ["\\ud800"]}
    assert json_text([float("nan"), float("-inf")]) == '["NaN","-Infinity"]'
