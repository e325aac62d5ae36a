"""A key and a tenant may make so many requests; each answer says how many are left, and nobody else pays."""

from __future__ import annotations

import uuid

import pytest

KEY = {"Authorization": "Bearer the-server"}


@pytest.fixture
def limited(make, clock):
    """`limited(reads=3)`: an application with these limits and a clock that stands."""
    from service.settings import RateLimits

    def make_limited(**limits):
        none = dict.fromkeys(("reads", "submits", "tenant_reads", "tenant_submits"), 0)
        site = make(api_key="the-server", rates=RateLimits(**none | limits))
        site.context.rates.clock = clock
        return site

    return make_limited


def reads(site, count, headers=KEY):
    return [site.client.get("/v1/runs", headers=headers) for _ in range(count)]


def test_beyond_its_quota_a_key_is_told_when_to_come_again(limited):
    site = limited(reads=3)
    *good, over = reads(site, 4)
    assert [answer.status_code for answer in good] == [200] * 3
    assert [answer.headers["RateLimit"] for answer in good] == [
        '"key-reads";r=2;t=20', '"key-reads";r=1;t=40', '"key-reads";r=0;t=60',
    ]  # fmt: skip
    assert {answer.headers["RateLimit-Policy"] for answer in (*good, over)} == {'"key-reads";q=3;w=60'}
    assert (over.status_code, over.json["code"], over.headers["Retry-After"]) == (429, "rate-limited", "20")
    assert over.headers["RateLimit"] == '"key-reads";r=0;t=60'
    assert "3 reads in 60 s" in over.json["detail"]
    site.context.rates.clock.now += 20
    assert [answer.status_code for answer in reads(site, 2)] == [200, 429]
    site.context.rates.clock.now += 3600
    assert [answer.status_code for answer in reads(site, 4)] == [200, 200, 200, 429]


def test_submits_are_counted_apart_and_one_that_is_refused_stores_nothing(limited):
    site = limited(submits=2, reads=100)
    answers = [site.post(headers=KEY) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert len(reads(site, 1)[0].json["items"]) == 2
    again = site.client.post(f"/v1/runs/{answers[0].json['id']}/rerun", headers=KEY)
    assert again.status_code == 429
    assert site.client.post(f"/v1/runs/{answers[0].json['id']}/cancel", headers=KEY).status_code == 200


def test_all_keys_of_a_tenant_share_its_quota_and_anothers_does_not(limited):
    site = limited(tenant_reads=4)
    own = {"Authorization": f"Bearer {key_of(site, 1)}"}
    others = {"Authorization": f"Bearer {key_of(site, None)}"}
    assert [answer.status_code for answer in (*reads(site, 2), *reads(site, 3, own))] == [200] * 4 + [429]
    assert [answer.status_code for answer in reads(site, 5, others)] == [200] * 4 + [429]


def key_of(site, tenant):
    from service.auth.caller import digest_of, new_key
    from store.access import keys, tenants

    secret, prefix = new_key()
    with site.context.database.begin() as transaction:
        number = tenant or tenants.create(transaction, "other")
        digest = digest_of(secret, site.context.settings.secret)
        new = keys.NewKey(name="k", prefix=prefix, digest=digest, scopes=("read",), created_by="test")
        keys.create(transaction, new, tenant_id=number)
    return secret


def test_a_job_counts_as_one_submit_however_many_ranks_it_has_and_its_ends_as_none(limited):
    from backprobe.client import new_run_id

    site = limited(submits=2, reads=100)

    def begin(run=None, **labels):
        run = run or new_run_id()
        return site.client.put(f"/v1/runs/{run}", json={"labels": labels}, headers=KEY).status_code, run

    made = [begin(group="a", rank=str(rank), world_size="4") for rank in range(4)]
    assert [status for status, _ in made] == [201] * 4
    ends = [site.client.post(f"/v1/runs/{run}/end", headers=KEY).status_code for _, run in made]
    assert set(ends) <= {200, 202}
    assert begin(group="b", rank="0", world_size="2")[0] == 201
    assert begin(group="b", rank="0", world_size="2", restart="1")[0] == 429  # begun again, it is another job
    assert begin(group="c", rank="0", world_size="4")[0] == 429
    assert begin(group="b", rank="1", world_size="3")[0] == 429
    assert begin(group="b", world_size="2")[0] == 429
    assert begin()[0] == 429
    assert begin(group="b", rank="1", world_size="2")[0] == 201
    assert begin(group="b", rank="1", world_size="2")[0] == 429  # more than it may have


def test_what_nobody_pays_for_is_never_limited(limited):
    site = limited(reads=1)
    for path in ("/healthz", "/readyz", "/static/site.css", "/healthz"):
        with site.client.get(path, headers=KEY) as answer:
            assert answer.status_code == 200
            assert "RateLimit" not in answer.headers
    for _ in range(3):
        refused = site.client.get("/v1/runs", headers={"Authorization": "Bearer wrong"})
        assert (refused.status_code, "RateLimit" in refused.headers) == (401, False)
    assert reads(site, 1)[0].status_code == 200


def test_without_a_key_nothing_is_counted(make):
    from service.settings import RateLimits

    site = make(rates=RateLimits(reads=1, submits=1, tenant_reads=1, tenant_submits=1))
    assert {site.client.get("/v1/runs").status_code for _ in range(3)} == {200}
    assert site.client.get("/v1/me").json["rates"] == {}


def test_by_default_it_is_600_reads_and_60_submits(make, clock):
    site = make(api_key="the-server")
    site.context.rates.clock = clock
    assert site.client.get("/v1/me", headers=KEY).json["rates"] == {
        "key-reads": 600, "tenant-reads": 6000, "key-submits": 60, "tenant-submits": 600,
    }  # fmt: skip
    last = [site.client.get("/nowhere", headers=KEY) for _ in range(599)][-1]
    assert (last.status_code, last.headers["RateLimit"]) == (404, '"key-reads";r=0;t=60, "tenant-reads";r=5400;t=6')
    assert reads(site, 1)[0].status_code == 429


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "9" * 11])
def test_a_setting_that_is_no_number_is_refused(tmp_path, text):
    from service.settings import Settings

    with pytest.raises(ValueError, match="BACKPROBE_RATE_SUBMITS"):
        Settings.from_environment({"BACKPROBE_RATE_SUBMITS": text}, tmp_path)
    kept = Settings.from_environment({"BACKPROBE_RATE_SUBMITS": "0", "BACKPROBE_RATE_READS": ""}, tmp_path).rates
    assert (kept.submits, kept.reads) == (0, 600)


def test_processes_that_share_a_redis_share_the_quotas(redis_url):
    from service.limits.rates import Rates
    from service.settings import RateLimits

    here, there = (Rates(RateLimits(url=redis_url)) for _ in range(2))
    place = uuid.uuid4().hex
    asked = [("key-reads", f"{place}:a", 3), ("tenant-reads", f"{place}:b", 1000)]
    taken = [process.take(asked) for process in (here, there, here, there)]
    assert [is_allowed for is_allowed, _ in taken] == [True, True, True, False]
    assert [quotas[0].left for _, quotas in taken] == [2, 1, 0, 0]
    assert 0 < taken[-1][1][0].wait_seconds <= 20
    (tenant,) = here.take(asked[1:])[1]
    assert tenant.left == 996  # what was refused counts for nothing


def test_a_redis_that_is_away_limits_nobody(make, caplog):
    from service.settings import RateLimits

    site = make(api_key="the-server", rates=RateLimits(reads=1, url="redis://127.0.0.1:1/0"))
    answers = reads(site, 3)
    assert {answer.status_code for answer in answers} == {200}
    assert "RateLimit" not in answers[0].headers
    assert [record.message for record in caplog.records if "rates" in record.message] == [
        "rates are not limited: the Redis for them does not answer (ConnectionError)"
    ]


def test_a_quota_of_bytes_that_is_used_up_refuses_before_anything_is_stored(site):
    from store.tables import tenant

    run = site.finished()
    told = site.client.get("/v1/me").json["quotas"]
    used = told["stored_bytes"]["used"]
    assert used > told["record_bytes"]["used"] > 100
    with site.context.database.begin() as transaction:
        before = transaction.execute(tenant.select().where(tenant.c.id == 1)).one().max_record_bytes
        transaction.execute(tenant.update().where(tenant.c.id == 1).values(max_record_bytes=used))
    try:
        for path, body in (
            ("/v1/runs", {"source": "x = 1\n"}),
            (f"/v1/runs/{run}/rerun", {}),
            ("/v1/snippets", {"files": [{"path": "a.py", "text": "x = 1\n"}]}),
            ("/v1/audits", {"items": [{"custom_id": "a", "run": run}]}),
            ("/v1/policies", {"name": "p"}),
            ("/v1/projects", {"name": "p"}),
            ("/v1/webhooks", {"url": "https://hooks.example/in", "events": ["run.ended"]}),
        ):
            refused = site.client.post(path, json=body)
            assert (refused.status_code, refused.json["code"]) == (429, "quota-exceeded"), path
            assert refused.json["detail"] == f"quota stored_bytes: {used} bytes stored, {used} allowed."
            assert refused.headers["Retry-After"] == "600"
        match = {"If-Match": site.client.get(f"/v1/runs/{run}").headers["ETag"]}
        labels = site.client.patch(f"/v1/runs/{run}", json={"labels": {"a": "b"}}, headers=match)
        assert labels.json["code"] == "quota-exceeded"
        assert site.client.patch(f"/v1/runs/{run}", json={"pinned": True}, headers=match).status_code == 200
        assert len(site.client.get("/v1/runs").json["items"]) == 1
        assert site.client.get("/v1/me").json["quotas"]["stored_bytes"]["used"] == used
        assert site.client.delete(f"/v1/runs/{run}").status_code == 204
        assert site.post().status_code == 202
    finally:
        with site.context.database.begin() as transaction:
            transaction.execute(tenant.update().where(tenant.c.id == 1).values(max_record_bytes=before))


def test_me_tells_what_is_used_and_allowed(site):
    site.submit()
    told = site.client.get("/v1/me").json["quotas"]
    assert (told["queued"]["used"], told["running"]["used"], told["record_bytes"]["used"]) == (1, 0, 0)
    assert told["queued"]["allowed"] == 10_000
