"""The link that opens a new issue on GitHub, with title and text about a group of findings. It needs no token.

GitHub fills the form by `title` and `body`:
https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/creating-an-issue.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from backprobe.show.plain_text import cut, plain

if TYPE_CHECKING:
    from store.findings.group_rows import GroupRow

MOST_NAME: Final = 100
"""Characters of a path or a commit."""

MOST_MESSAGE: Final = (1500, 400, 100)
"""Characters of a message: the most with which the link is short enough. One character is up to 12 of an address."""

LONGEST_LINK: Final = 8000
"""GitHub answers 414 to an address above 8 KiB."""

_TEMPLATE: Final = """\
{fence}text
{message}
{fence}

* rule: `{rule}` ({level})
* place: {place}
* runs: {runs}, first seen {first}, last seen {last}
* finding: {page}
"""


def new_issue_link(repository: str, group: GroupRow, page: str) -> str:
    """Return the address of the form for a new issue.

    The text of a finding holds names of a stranger's program. The link puts it into a block of code, in which Markdown,
    mentions and control characters mean nothing.

    Args:
        repository: https://github.com/OWNER/NAME.
        group: What the issue is about.
        page: The full address of its page.
    """
    link = ""
    for most in MOST_MESSAGE:
        link = f"{repository}/issues/new?{urlencode(_fill_form(group, page, most))}"
        if len(link) <= LONGEST_LINK:
            break
    return link


def _fill_form(group: GroupRow, page: str, most: int) -> dict[str, str]:
    message = cut(plain(group.message, keep_newlines=True), most)
    place = cut(plain(f"{group.path}:{group.line}"), MOST_NAME)
    body = _TEMPLATE.format(
        fence=_fence_around(message, 3),
        message=message,
        rule=group.rule,
        level=group.level,
        place=_inline_code(place),
        runs=group.runs,
        first=_describe_sighting(group.first_seen_at, group.first_commit),
        last=_describe_sighting(group.last_seen_at, group.last_commit),
        page=page,
    )
    return {"title": f"{group.rule} in {place}", "body": body}


def _describe_sighting(at: str, commit: str | None) -> str:
    return at[:10] if commit is None else f"{at[:10]} in {_inline_code(cut(plain(commit), MOST_NAME))}"


def _inline_code(text: str) -> str:
    fence = _fence_around(text, 1)
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def _fence_around(text: str, least: int) -> str:
    """Return more backticks than stand together anywhere in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)
