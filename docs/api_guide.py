"""`docs/api/README.md`: a newcomer's way through the API, step by step, in curl and in Python, with the answers.

A test goes the same way, top to bottom, on a running service, and holds each answer against the one that is shown:
`...` in it stands for what differs from time to time, or is left out.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any, Final

from docs import api_reference
from docs.api_steps import STEPS

_BEFORE: Final = """\
Everything that the pages and the command line do goes by this API, and so can an editor, a dashboard or a nightly job.
`/openapi.json` of a running service describes it to machines; what stands here is made of the same document. It changes
within v1 by additions only. [The REST API at a glance](../rest.md) lists it on one page.

Other languages make their client of that document. In TypeScript: `npx openapi-typescript openapi.json -o api.d.ts
--default-non-nullable false`, then `openapi-fetch` with
`createClient<paths, "application/json" | "application/problem+json">`, and with
`querySerializer: {array: {style: "form", explode: false}}`, for a list in a parameter is joined by commas here. A
finding's place, fixes and edits are typed, and so are errors.

Start a service with `backprobe serve`, and go on in a second terminal. In Python, `pip install 'backprobe[client]'`."""


def format_answer(answer: Any) -> str:
    """An answer for people; a field `...` is a line `...`."""
    if isinstance(answer, str):
        return f"{answer}\n..."
    return json.dumps(answer, indent=2).replace('"...": "..."', "...")


def like(told: Any, answer: Any) -> bool:
    """Whether an answer is as it is shown."""
    if isinstance(told, str) and isinstance(answer, str):
        return told == answer or ("..." in told and answer.startswith(told.partition("...")[0]))
    if told == "...":
        return True
    if isinstance(told, dict) and isinstance(answer, dict):
        named = {name for name in told if name != "..."}
        whole = "..." in told or "items" in told or named == set(answer) or named < {"status", "code", "errors"}
        return whole and all(name in answer and like(told[name], answer[name]) for name in named)
    if isinstance(told, list) and isinstance(answer, list):
        return len(told) == len(answer) and all(map(like, told, answer))
    return type(told) is type(answer) and told == answer


def page(document: dict[str, Any], notice: str) -> str:
    """The guide."""
    parts = [
        f"# The API\n\n{notice}\n",
        _BEFORE,
    ]
    for number, step in enumerate(STEPS, 1):
        parts += [
            "",
            f"## {number}. {step.title}",
            "",
            textwrap.fill(step.text, 120),
            "",
            "```sh",
            step.command,
            "```",
            "",
            "```python",
        ]
        parts += [step.python, "```"]
        if step.answer is not None:
            parts += ["", "```text" if isinstance(step.answer, str) else "```json", format_answer(step.answer), "```"]
    parts += ["", "## All of it", ""]
    for tag, operations in api_reference.by_tag(document).items():
        listed = ", ".join(f"`{method.upper()} {path}`" for path, method, _operation in operations)
        parts.append(f"* [{tag}]({api_reference.slug(tag)}.md): {listed}")
    parts.append("* [Models](models.md): what bodies and answers are made of")
    return "\n".join(parts) + "\n"
