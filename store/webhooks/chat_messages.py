"""The body of a delivery: the event itself, or a message for a channel of Slack or Teams.

A message has ids, status and counts, as the event has, and a link to the page if the service knows its address.
Slack: Block Kit, https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks.
Teams: an Adaptive Card 1.4 in a message, https://adaptivecards.io/explorer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args
from urllib.parse import urlencode

import msgspec

from backprobe.rules.policy import VERDICTS
from backprobe.severity import LEVELS
from store.webhooks.deliveries import Due

Format = Literal["event", "slack", "teams"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

MOST_CHARACTERS: Final = 2000
"""Of a text; Slack takes 3000 in a section, and its escapes count."""

_TITLES: Final = {
    "run.ended": "Run {status}",
    "finding.new": "New finding: {rule} ({level})",
    "finding.returned": "A fixed finding is back: {rule} ({level})",
    "audit.judged": "Audit: {verdict}",
    "audit_item.ended": "Audit: {custom_id} {status}",
    "digest.weekly": "Week from {from}: {new} new, {regressed} regressed, {fixed} fixed",
    "webhook.test": "Test of webhook {webhook}",
}
_FACTS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "run.ended": {"run": (), "status": (), "findings": LEVELS},
    "finding.new": {"group": (), "run": (), "rule": (), "level": ()},
    "finding.returned": {"group": (), "run": (), "rule": (), "level": ()},
    "audit.judged": {"audit": (), "verdict": (), "items": VERDICTS, "findings": ("new", "known", "gone")},
    "audit_item.ended": {"audit": (), "run": (), "status": (), "custom_id": ()},
    "digest.weekly": dict.fromkeys(
        ("project", "project_name", "from", "to", "new", "regressed", "fixed", "open", "groups"), ()
    ),
    "webhook.test": {"webhook": ()},
}
"""The facts of each kind in the order of a message, and that of their counts: PostgreSQL sorts the keys of a body.

A fact that may be long is the last: a message is cut at its end."""

_SLACK: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""The three characters with a meaning in Slack's texts."""


def body_of(due: Due, public_url: str | None) -> bytes:
    """Return what a receiver gets, as JSON; the same bytes at each try.

    Args:
        due: The delivery.
        public_url: Where people open the pages, without a slash at the end; None: a message has no link.
    """
    if due.format == "event":
        return msgspec.json.encode({"type": due.kind, "timestamp": due.at, "data": dict(due.body)})
    title = _TITLES[due.kind].format_map({name: str(value)[:200] for name, value in due.body.items()})
    facts = _facts(due.kind, due.body)
    page = None if public_url is None else f"{public_url}{_page(due.body)}"
    message = _slack(title, facts, page) if due.format == "slack" else _teams(title, facts, page)
    return msgspec.json.encode(message)


def _facts(kind: str, body: Mapping[str, Any]) -> str:
    """Return a line for each of the rest, `findings: 1 error, 2 warning`, and one for each group of a digest."""
    lines: list[str] = []
    given = [(name, order, body[name]) for name, order in _FACTS[kind].items() if name in body]
    for name, order, value in given:
        if isinstance(value, Mapping):
            counts = cast("Mapping[str, Any]", value)
            lines.append(f"{name}: {', '.join(f'{counts[word]} {word}' for word in order if word in counts) or 'none'}")
        elif isinstance(value, list):
            groups = cast("list[Mapping[str, Any]]", value)
            lines += [f"{group['level']}: {group['rule']}, {group['runs']} runs" for group in groups]
        else:
            lines.append(f"{name}: {value}")
    return "\n".join(lines)[:MOST_CHARACTERS]


def _page(body: Mapping[str, Any]) -> str:
    """Return the path of the page that shows most of it."""
    if "run" in body:
        return f"/runs/{body['run']}"
    if "project" in body:
        return f"/findings?{urlencode({'project': body['project_name']})}"
    return f"/audits/{body['audit']}" if "audit" in body else "/"


def _slack(title: str, facts: str, page: str | None) -> dict[str, Any]:
    head = f"*{title.translate(_SLACK)}*"
    text = f"{head}\n{facts.translate(_SLACK)}" + ("" if page is None else f"\n<{page}|Open in Backprobe>")
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    return {"text": title.translate(_SLACK), "blocks": [section]}


def _teams(title: str, facts: str, page: str | None) -> dict[str, Any]:
    """Return a card whose texts are runs of plain text, not Markdown."""
    lines = [{"type": "TextRun", "text": title, "weight": "Bolder"}], [{"type": "TextRun", "text": facts}]
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": line} for line in lines],
    }
    if page is not None:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open in Backprobe", "url": page}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}
