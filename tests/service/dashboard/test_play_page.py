"""The playground without scripts: its examples, programs that were sent before, and a form that runs one."""

from __future__ import annotations

import html
import json
import re

import pytest

from backprobe.rules.framework.manual import manual
from service.dashboard.play.play_examples import EXAMPLES


def textarea_of(answer):
    assert answer.status_code == 200, answer.text
    (text,) = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", answer.text, re.DOTALL)
    return html.unescape(text)


def opened_by(answer):
    (text,) = re.findall(r'id="play-opened">(.*?)</script>', answer.text, re.DOTALL)
    return json.loads(text)


@pytest.mark.parametrize("path", ["/", "/play"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_each_question_opens_its_program(site, path, example):
    answer = site.client.get(f"{path}?example={example.name}")
    assert textarea_of(answer) == example.source
    assert example.question in html.unescape(answer.text)


def test_each_program_of_a_rules_manual_is_tried_in_the_playground(site):
    programs = [section.text for section in manual("BP101").sections if section.is_code]
    page = site.client.get("/rules/BP101").text
    links = [html.unescape(link) for link in re.findall(r'<a href="(/play\?[^"]+)">Try it in the playground</a>', page)]
    shown = [html.unescape(text) for text in re.findall(r'<pre class="program"[^>]*>(.*?)</pre>', page, re.DOTALL)]
    assert [textarea_of(site.client.get(link)) for link in links] == shown
    assert sorted(shown) == sorted(programs)
    assert textarea_of(site.client.get("/play?rule=non-leaf-grad-read")) == manual("BP101").of("Example")[0].text
    for wrong in ("rule=BP999", "rule=BP101&program=99"):
        assert site.client.get(f"/play?{wrong}").status_code == 404


def test_an_unknown_example_is_refused(site):
    assert site.client.get("/play?example=other").status_code == 422


def test_the_form_runs_the_program_and_leads_to_its_run(site):
    answer = site.client.post("/play", data={"source": "print(1)\r\nprint(2)\r\n"})
    assert answer.status_code == 303
    run = site.client.get(answer.location.replace("/runs/", "/v1/runs/")).json
    assert site.client.get(f"/v1/snippets/{run['snippet']}/files/snippet.py").text == "print(1)\nprint(2)\n"


@pytest.mark.parametrize(("text", "says"), [(" \n", "The program is empty"), ("x = (", "never closed")])
def test_the_form_refuses_what_is_no_program_in_words(site, text, says):
    answer = site.client.post("/play", data={"source": text}, headers={"Accept": "text/html"})
    assert answer.status_code == 422
    assert says in html.unescape(answer.text)


def test_the_form_is_for_pages_of_this_service_only(site):
    answer = site.client.post("/play", data={"source": "print(1)"}, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403


def test_a_key_that_only_reads_cannot_send_the_form(make):
    site = make(api_key="k" * 32)
    reader = site.client.post(
        "/v1/keys", json={"name": "reader", "scopes": ["read"]}, headers={"Authorization": f"Bearer {'k' * 32}"}
    ).json["secret"]
    answer = site.client.post("/play", data={"source": "print(1)"}, headers={"Authorization": f"Bearer {reader}"})
    assert (answer.status_code, answer.json["code"]) == (403, "scope-missing")


def test_a_program_that_was_sent_is_opened_with_its_other_files(site):
    files = [{"path": "main.py", "text": "import other\n"}]
    snippet = site.client.post("/v1/snippets", json={"files": files, "entry": "main.py"}).json["id"]
    assert textarea_of(site.client.get(f"/play/{snippet}")) == "import other\n"
    both = [*files, {"path": "other.py", "text": "'</script>'\n"}]
    snippet = site.client.post("/v1/snippets", json={"files": both, "entry": "main.py"}).json["id"]
    answer = site.client.get(f"/play/{snippet}?run=run_x")
    assert opened_by(answer)["entry"] == "main.py"
    assert opened_by(answer)["files"] == {"other.py": "'</script>'\n"}


def test_an_unknown_snippet_is_not_found(site):
    assert site.client.get("/play/snp_none").status_code == 404


def test_only_the_playground_allows_styles_by_a_nonce_which_is_new_each_time(site):
    policies = [site.client.get(path).headers["Content-Security-Policy"] for path in ("/play", "/play", "/runs")]
    nonces = [re.findall(r"style-src 'nonce-([\w-]{22})' 'self';", policy) for policy in policies]
    assert len({nonce for found in nonces for nonce in found}) == 2
    assert nonces[2] == []
