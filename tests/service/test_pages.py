"""The pages: they tell every state in words, work without JavaScript, and a stranger's text never becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urlencode

import msgspec
import pytest

from backprobe.record.rows.series import Step

VOID = {"meta", "link", "img", "br", "wbr", "input", "hr", "path", "circle", "rect"}
BLOCKS = {"dt", "dd", "th", "td", "li", "div", "p", "h1", "h2", "h3"}


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and the text; unclosed elements are an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.text += " " if tag in BLOCKS else ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for found, attributes in self.elements if found == tag]

    def ids(self):
        return [attributes["id"] for _tag, attributes in self.elements if "id" in attributes]


def page_of(site, path, status=200):
    answer = site.client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    assert answer.mimetype == "text/html"
    return Page(answer.text)


def words(page):
    return " ".join(page.text.split())


def scripts(page):
    """Addresses of the page's scripts; none of them may stand in the page itself, but data that no browser runs."""
    return [script["src"] for script in page.all("script") if script.get("type") != "application/json"]


def only_the_bundle(page):
    """At most the scripts that `make web` bundles, each once."""
    found = scripts(page)
    names = [re.fullmatch(r"/static/dist/(pages|curves|matrix)-[0-9a-f]{12}\.js", path) for path in found]
    return all(names) and len({name[1] for name in names if name}) == len(found)


def test_the_root_offers_an_example_and_the_last_runs(site):
    told = words(page_of(site, "/"))
    assert "w = torch.ones(3, requires_grad=True) * 0.1" in told
    assert "None yet" in told
    run = site.finished()
    assert f"/runs/{run}" in {a["href"] for a in page_of(site, "/").all("a")}


def test_an_empty_list_tells_how_to_make_the_first_run(site):
    told = words(page_of(site, "/runs"))
    assert "No run yet" in told
    assert "curl -s 'http://localhost/v1/runs?include=findings'" in told
    assert "backprobe run train.py" in told
    assert "Authorization" not in told


def test_the_commands_carry_the_key_where_one_is_needed(make):
    site = make(api_key="k")
    answer = site.client.get("/runs", headers={"Authorization": "Bearer k"})
    assert "Bearer $BACKPROBE_API_KEY" in answer.text


def test_the_list_tells_status_entry_findings_and_duration(site):
    run = site.finished(body={"labels": {"pr": "12"}})
    page = page_of(site, "/runs")
    told = words(page)
    for expected in ("succeeded", "snippet.py", "1 warning", "250 ms", "pr: 12", "just now", "2.13.0+cpu"):
        assert expected in told
    assert {"href": f"/runs/{run}"} in page.all("a")


def test_a_program_without_a_name_is_told_by_its_snippet(site, samples):
    run = site.finished(body={"source": samples.TUTORIAL})
    called = f"snippet {site.client.get(f'/v1/runs/{run}').json['snippet'][-6:]}"
    for path in ("/runs", f"/runs/{run}"):
        told = words(page_of(site, path))
        assert called in told, path
        assert "snippet.py" not in told, path


def test_the_list_is_filtered_and_paged(site):
    for _ in range(3):
        site.submit()
    page = page_of(site, "/runs?status=queued&limit=2")
    (older,) = [link["href"] for link in page.all("a") if link.get("rel") == "next"]
    following = page_of(site, older)
    assert len([link for link in following.all("a") if link.get("href", "").startswith("/runs/run_")]) == 1
    assert "Newest" in following.text
    assert "No run matches the filter" in words(page_of(site, "/runs?status=failed"))


def test_a_run_page_tells_everything(site):
    run = site.finished()
    page = page_of(site, f"/runs/{run}")
    told = words(page)
    for expected in (
        "succeeded", "isolation none", "non-leaf-grad-read", "BP101", "proven", "is not a leaf", "1 warning",
        "loss.backward()", "retain_grad() was not called", "[[1, 1], [1, 1], [1, 1]]",
        "what arrived: [[1, 1]]", "it does not require grad", "AddBackward0", "Tensor.backward", "False default",
        "12 B", "leaf, requires no grad", "backward call 1", "None", "RuntimeError", "UserWarning",
    ):  # fmt: skip
        assert expected in told, expected
    assert "bp-graph" in " ".join(attributes.get("class") or "" for attributes in page.all("svg"))


def test_a_large_graph_is_not_waited_for_and_its_address_stands_in_the_page(site, samples):
    page = page_of(site, f"/runs/{site.finished(samples.deep(150))}")
    assert "The graph of this backward call has" in words(page)
    assert not [svg for svg in page.all("svg") if "bp-graph" in (svg.get("class") or "")]
    assert "graph" in [div.get("data-island") for div in page.all("div")]
    (image,) = page.all("img")
    assert b"<svg" in site.client.get(image["src"]).data
    small = page_of(site, f"/runs/{site.finished(samples.deep(20))}")
    assert [svg for svg in small.all("svg") if "bp-graph" in (svg.get("class") or "")]


def test_a_run_of_which_steps_were_left_out_says_how_many_were_looked_at(site, samples):
    whole = samples.tutorial()
    assert "taken in full" not in words(page_of(site, f"/runs/{site.finished(whole)}"))
    steps = tuple(Step(step=n, sampled=n < 2) for n in range(300))
    run = site.finished(msgspec.structs.replace(whole, steps=steps))
    assert "steps 2 of 300 taken in full" in words(page_of(site, f"/runs/{run}"))
    told = site.client.get(f"/v1/runs/{run}").json["record"]
    assert (told["steps_looked_at"], told["steps_made"]) == (2, 300)


def test_links_within_a_page_lead_somewhere_and_ids_are_unique(site):
    run = site.finished()
    page = page_of(site, f"/runs/{run}")
    ids = page.ids()
    assert len(ids) == len(set(ids))
    inner = {link["href"][1:] for link in page.all("a") if link.get("href", "").startswith("#")}
    assert inner <= set(ids)
    assert {"L5", "t3", "call-0", "findings", "source", "tensors", "backward-calls", "graph"} <= set(ids)


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (
            {"status": "failed", "whose": "program", "code": "raised"},
            "The program itself failed: ValueError at line 3.",
        ),
        (
            {"status": "failed", "whose": "program", "code": "signal", "type": None, "signal": 11},
            "The program itself failed: signal",
        ),
        (
            {"status": "exceeded", "whose": "limit", "code": "wall-seconds", "limit": "wall_seconds"},
            "Stopped by the limit wall_seconds (60)",
        ),
        ({"status": "canceled", "whose": "asked", "code": "canceled"}, "Canceled on request"),
        (
            {"status": "lost", "whose": "ours", "code": "worker-lost"},
            "Lost, and that is our fault (worker lost): 1 attempt made",
        ),
    ],
)
def test_every_bad_end_is_told_in_words_and_whose_it_was(site, samples, ending, said):
    from store.runs.model import RunError

    facts = dict(ending)
    error = RunError(
        whose=facts.pop("whose"),
        code=facts.pop("code"),
        message="it <b>broke</b>",
        type=facts.pop("type", "ValueError"),
        line=3,
    )
    run = site.finished(samples.tutorial(), error=error, **facts)
    page = page_of(site, f"/runs/{run}")
    assert said in words(page)
    assert "b" not in [tag for tag, _ in page.elements]
    listed = words(page_of(site, "/runs"))
    assert {"failed": "your program", "exceeded": "a limit", "canceled": "on request", "lost": "service error"}[
        facts["status"]
    ] in listed


def test_a_queued_run_tells_its_place_and_whether_a_worker_lives(site):
    run = site.submit()
    page = page_of(site, f"/runs/{run}")
    assert "no worker of the queue cpu is alive" in words(page)
    assert [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "refresh"] == ["3"]
    assert f"/v1/runs/{run}" in {section.get("data-live") for section in page.all("section")}
    assert only_the_bundle(page)
    site.worker()
    assert "it is next" in words(page_of(site, f"/runs/{run}"))
    assert "1 run is ahead of it" in words(page_of(site, f"/runs/{site.submit()}"))


def test_an_ended_page_looks_for_no_news(site):
    page = page_of(site, f"/runs/{site.finished()}")
    assert only_the_bundle(page)
    assert not any("data-live" in attributes for _tag, attributes in page.elements)
    assert not any(meta.get("http-equiv") for meta in page.all("meta"))


def test_a_running_run_tells_that_it_was_asked_to_stop(site):
    from store.runs import lifecycle

    run = site.submit()
    lifecycle.claim(site.context.database, site.worker())
    assert "Running" in words(page_of(site, f"/runs/{run}"))
    site.client.post(f"/v1/runs/{run}/cancel")
    assert "asked to stop" in words(page_of(site, f"/runs/{run}"))


def test_a_run_without_a_record_says_so_in_every_pane(site):
    run = site.submit()
    site.finish(run, None)
    told = words(page_of(site, f"/runs/{run}"))
    assert "Not judged" in told
    assert told.count("There is no record of this run.") == 4


def test_several_files_are_shown_one_at_a_time(site, samples):
    body = {
        "files": [{"path": "pkg/a.py", "text": "import b\n"}, {"path": "b.py", "text": "y = 1\n"}],
        "entry": "pkg/a.py",
    }
    run = site.post(body).json["id"]
    page = page_of(site, f"/runs/{run}")
    assert "import b" in page.text
    other = page_of(site, f"/runs/{run}?file=b.py")
    assert "y = 1" in other.text
    page_of(site, f"/runs/{run}?file=c.py", 404)
    page_of(site, f"/runs/{run}?lines=3", 422)


def test_a_long_source_comes_in_parts(site):
    run = site.submit(source="".join(f"x{n} = {n}\n" for n in range(1000)))
    page = page_of(site, f"/runs/{run}")
    assert "L400" in page.ids()
    assert "L401" not in page.ids()
    assert "Lines after 400, of 1000" in words(page)
    assert "L999" in page_of(site, f"/runs/{run}?from=801").ids()


def hostile_site_pages(site, samples):
    words_ = samples.Words(name=samples.HOSTILE, message=samples.HOSTILE * 3, warning=samples.HOSTILE)
    text = samples.TUTORIAL.replace("import torch", f"import torch  # {samples.HOSTILE}")
    record = samples.tutorial(words_, text=text)
    from store.runs.completion import Stream
    from store.runs.model import RunError

    error = RunError(whose="program", code="raised", message=samples.HOSTILE, type=samples.HOSTILE, line=2)
    run = site.submit(source=text, labels={"who": "<b>&amp;\u00e9"}, arguments=[samples.HOSTILE])
    out = Stream(tail=samples.HOSTILE + "\x07\x00<script>alert(2)</script>", total_bytes=9999)
    site.finish(run, record, status="failed", exit_code=1, error=error, stdout=out, stderr=out, torch=samples.HOSTILE)
    return run


def test_a_strangers_text_never_becomes_markup(site, samples):
    run = hostile_site_pages(site, samples)
    for path in (f"/runs/{run}", "/runs"):
        raw = site.client.get(path).text
        page = Page(raw)
        assert only_the_bundle(page)
        assert page.all("img") == []
        assert not any(
            name.startswith("on") or name == "style" for _tag, attributes in page.elements for name in attributes
        )
        for invisible in ("\u202e", "\x1b", "\x07", "\x00"):
            assert invisible not in raw
        assert "\\u202e" in page.text
        assert "{{7*7}}" in page.text


def test_the_policy_forbids_what_the_pages_do_not_need(site, samples):
    policy = site.client.get(f"/runs/{site.finished()}").headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "base-uri 'none'" in policy


def test_a_rule_shows_its_manual(plain_site):
    told = words(page_of(plain_site, "/rules/BP101"))
    assert "non-leaf-grad-read" in told
    assert words(page_of(plain_site, "/rules/non-leaf-grad-read")) == told


def test_templates_never_switch_escaping_off():
    from pathlib import Path

    import service.dashboard

    folder = Path(service.dashboard.__file__).parent
    for template in (folder / "templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"\|\s*safe|autoescape|style=|<style| on[a-z]+=", text), template.name
    users = [path.name for path in folder.rglob("*.py") if re.search(r"\bMarkup\(", path.read_text())]
    assert users == ["run_page.py"]


def test_the_rules_are_listed_by_family_and_chosen_by_family_level_and_words(plain_site):
    from backprobe.rules.framework.manual import every_rule

    every = page_of(plain_site, "/rules")
    links = {link["href"] for link in every.all("a") if link.get("href", "").startswith("/rules/")}
    assert links == {f"/rules/{rule.code}" for rule in every_rule()}
    assert f"{len(links)} of {len(links)} rules." in words(every)
    chosen = page_of(plain_site, "/rules?family=leaf&level=warning&q=non-leaf")
    found = {link["href"] for link in chosen.all("a") if link.get("href", "").startswith("/rules/")}
    assert "/rules/BP101" in found
    assert all(href.startswith("/rules/BP1") for href in found)
    assert "No rule matches the filter" in words(page_of(plain_site, "/rules?q=%3Cscript%3E"))
    assert plain_site.client.get("/rules?family=wind", headers={"Accept": "text/html"}).status_code == 422


def test_the_manual_of_every_rule_reads_as_prose(plain_site):
    """A line's end inside a paragraph is a blank, and no control character is shown for it."""
    from backprobe.rules.framework.manual import every_rule

    for rule in every_rule():
        assert "\\x0a" not in page_of(plain_site, rule.url).text, rule.url


@pytest.mark.parametrize(
    "path", ["/runs?X=1", "/runs?q=X", "/runs?label.X=1", "/rules?q=X", "/rules/X", "/runs/X", "/X"]
)
def test_what_an_address_holds_is_shown_as_it_is_and_turns_nothing_round(plain_site, path):
    there = path.replace("X", "%E2%80%AE%1B%07%3Cb%3Ex")
    raw = plain_site.client.get(there, headers={"Accept": "text/html"}).text
    assert "<b>x" not in raw
    for invisible in ("\u202e", "\x1b", "\x07"):
        assert invisible not in raw


def test_a_tensors_page_tells_why_it_has_no_gradient(site):
    run = site.finished()
    told = words(page_of(site, f"/runs/{run}/tensors/3"))
    assert "not a leaf" in told
    assert "retain_grad() was not called" in told
    assert "History" in told
    page_of(site, f"/runs/{run}/tensors/99", 404)


def test_two_runs_that_are_ticked_are_compared_the_older_one_first(site, samples):
    before, after = site.finished(), site.finished(samples.tutorial(nan=True))
    answer = site.client.get(f"/compare?run={after}&run={before}")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/compare?a={before}&b={after}")
    told = words(page_of(site, answer.headers["Location"]))
    assert "What changed" in told
    assert "in another state" in told
    assert "No differences" in words(page_of(site, f"/compare?a={before}&b={before}"))


def choices_of(page):
    """The ids that can be chosen as before and as after, and the ones that are chosen."""
    radios = [tag for tag in page.all("input") if tag.get("type") == "radio"]
    offered = {side: [tag["value"] for tag in radios if tag["name"] == side] for side in ("a", "b")}
    return offered, {tag["name"]: tag["value"] for tag in radios if "checked" in tag}


def test_fewer_or_more_than_two_runs_lead_to_a_form_that_chooses_two(site):
    assert "Two runs that have ended are needed" in words(page_of(site, "/compare"))
    runs = [site.finished() for _ in range(4)]
    site.submit()
    newest_first = runs[::-1]
    for asked, offered, chosen in (
        ("", newest_first, {"a": runs[2], "b": runs[3]}),
        (f"run={runs[1]}", newest_first, {"a": runs[3], "b": runs[1]}),
        (f"a={runs[1]}", newest_first, {"a": runs[1], "b": runs[3]}),
        (f"run={runs[2]}&run={runs[0]}&run={runs[1]}", [runs[2], runs[1], runs[0]], {"a": runs[0], "b": runs[2]}),
    ):
        answer = site.client.get(f"/compare?{asked}")
        page = page_of(site, answer.headers.get("Location", f"/compare?{asked}"))
        seen, checked = choices_of(page)
        assert {side: sorted(ids) for side, ids in seen.items()} == dict.fromkeys("ab", sorted(offered)), asked
        assert checked == chosen, asked
        assert ("3 runs are ticked" in words(page)) == (asked.count("run=") == 3)
    page_of(site, f"/compare?run={runs[0]},run_00000000000000000000000000", 404)
    page_of(site, "/compare?a=x", 422)


def test_a_project_is_called_by_its_name_where_a_run_is_shown(site):
    name = "vision & \u00fcber"
    project = site.client.post("/v1/projects", json={"name": name}).json["id"]
    run = site.submit(project=project)
    page = page_of(site, f"/runs/{run}")
    (link,) = [tag["href"] for tag in page.all("a") if tag.get("href", "").startswith("/projects/")]
    assert f"project {name}" in words(page)
    assert project not in words(page)
    assert f"{name} 1 run in the last 30 days" in words(page_of(site, link))
    listed = page_of(site, f"/runs?{urlencode({'project': name})}")
    assert f"project {name}" in words(listed)
    assert [tag["value"] for tag in listed.all("input") if tag.get("name") == "project"] == [name]
    by_id = page_of(site, f"/runs?project={project}")
    assert [tag["value"] for tag in by_id.all("input") if tag.get("name") == "project"] == [name]
    assert project not in words(by_id)
    made = site.client.post(
        "/admin/keys", data={"name": "k", "scopes": "read", "project": project, "expires": "7 days"}
    )
    assert project not in made.text


def test_empty_fields_of_a_form_are_no_filters(site):
    run = site.finished()
    answer = site.client.get("/runs?q=&level=&rule=BP101")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/runs?rule=BP101")
    assert f"/runs/{run}" in {a["href"] for a in page_of(site, "/runs?rule=BP101").all("a") if "href" in a}
    assert "No run matches the filter" in words(page_of(site, "/runs?q=nothing-is-called-so"))


def test_a_succeeded_run_with_bad_news_says_so_in_its_head(site):
    assert "ran to its end, and did not do what it should: 1 warning." in words(
        page_of(site, f"/runs/{site.finished()}")
    )


def test_an_editor_has_lines_and_findings_in_one_call(site):
    run = site.finished()
    told = site.client.get(f"/v1/runs/{run}?include=source,findings").json["included"]
    assert told["tensors"] is None
    alone = site.client.get(f"/v1/runs/{run}/source").json
    assert told["source"] == alone
    assert max(line["step_bytes"] for line in alone["lines"]) == max(line["saved_bytes"] for line in alone["lines"]) > 0


def test_a_bare_series_answers_with_what_is_trained(site):
    run = site.finished()
    assert {row["name"] for row in site.client.get(f"/v1/runs/{run}/series").json["rows"]} == {"W", "b"}


def test_the_gradient_that_reached_a_tensor_is_told_by_its_norm_of_any_size(plain_site):
    run = plain_site.finished()
    told = plain_site.client.get(f"/v1/runs/{run}/tensors/3").json
    assert told["arrived"] == [{"backward_call": 0, "norm": 1.0, "nan": 0, "inf": 0}]
    assert plain_site.client.get(f"/v1/runs/{run}/tensors/1").json["arrived"] == []  # a leaf: no node made it
    page = page_of(plain_site, f"/runs/{run}/tensors/3")
    assert "A gradient came to it all the same, last in backward call 1, with the norm 1." in " ".join(
        page.text.split()
    )


def test_a_parameter_behind_a_cut_leads_to_the_finding_that_knows_why(plain_site):
    import dataclasses

    import msgspec

    from backprobe.rules import judge
    from tests.support import samples

    judgement = judge(samples.tutorial())
    cut = msgspec.structs.replace(judgement.findings[0], evidence={"without_gradient": [0, 1]})
    run = plain_site.finished(judgement=dataclasses.replace(judgement, findings=(cut,)))
    page = page_of(plain_site, f"/runs/{run}")
    (finding,) = [more["id"] for tag, more in page.elements if str(more.get("id", "")).startswith("finding-")]
    links = [more["href"] for tag, more in page.elements if tag == "a"]
    assert {f"/runs/{run}/tensors/0", f"/runs/{run}/tensors/1"} <= set(links)
    assert links.count(f"#{finding}") >= 2
    of_tensor = page_of(plain_site, f"/runs/{run}/tensors/0")
    assert f"/runs/{run}#{finding}" in [more.get("href") for tag, more in of_tensor.elements]
