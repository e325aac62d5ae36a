"""An audit as one HTML file: no script, no address that a browser would load, readable in light and dark."""

from __future__ import annotations

from html import escape
from typing import Final

import backprobe
from backprobe.rules import Finding
from backprobe.rules.policy import WORST
from backprobe.show.audits.report import AuditedItem, AuditReport
from backprobe.show.audits.text import summary
from backprobe.show.plain_text import plain

MOST_ROWS: Final = 2000
"""Findings that are listed, worst programs first."""

_HEAD: Final = "".join(
    f"<th scope=col>{name}</th>" for name in ("Verdict", "Program", "Rules that do not pass", "How it ended")
)
_STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .6rem; vertical-align: top;
border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); } code, pre { font-family: ui-monospace,
monospace; font-size: .9em; } pre { margin: .2rem 0; white-space: pre-wrap; } h2 { margin-top: 2.2rem; }
.fail, .error { color: #c62828; } .warn, .not-run { color: #a35a00; } .pass { color: #2e7d32; }
@media (prefers-color-scheme: dark) { .fail, .error { color: #ff8a80; } .warn, .not-run { color: #ffb74d; }
.pass { color: #81c784; } }
"""


def render(report: AuditReport) -> str:
    """Render the document."""
    title = f"{report.name}: {report.word}"
    items = sorted(report.items, key=lambda item: WORST.index(item.verdict or "not-run"))
    rows = "\n".join(_row(item) for item in items)
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body><main>",
            f"<h1>{_text(title)}</h1>",
            f"<p>{_text(summary(report).partition(chr(10))[0])}</p>",
            f"<h2>Programs</h2><table><thead><tr>{_HEAD}</tr></thead><tbody>",
            rows,
            "</tbody></table>",
            _findings(items),
            f"<footer><p>Backprobe {_text(backprobe.__version__)}</p></footer></main></body></html>",
        )
    )


def _row(item: AuditedItem) -> str:
    word = item.verdict or "not-run"
    said = ", ".join(f"{cell.rule} ({cell.findings})" if cell.findings else cell.rule for cell in item.cells)
    ended = item.problem or item.reported.ending
    return (
        f'<tr><td class="{word}">{word}</td><td><code>{_text(item.name)}</code></td><td>{_text(said)}</td>'
        f"<td>{_text(ended)}</td></tr>"
    )


def _findings(items: list[AuditedItem]) -> str:
    found = [(item, finding) for item in items for finding in item.reported.findings if finding.suppressed is None]
    if not found:
        return "<h2>Findings</h2><p>None.</p>"
    rows = "\n".join(_finding(item, finding) for item, finding in found[:MOST_ROWS])
    more = len(found) - MOST_ROWS
    rest = f"<p>{more} more are left out.</p>" if more > 0 else ""
    head = "".join(f"<th scope=col>{name}</th>" for name in ("Rule", "Place", "What"))
    return f"<h2>Findings</h2><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>{rest}"


def _finding(item: AuditedItem, finding: Finding) -> str:
    place = f"{finding.location.path}:{finding.location.region.start_line}"
    return (
        f"<tr><td>{_text(finding.rule.code)}<br>{_text(finding.rule.name)}<br>"
        f"{finding.level}, {finding.confidence}</td>"
        f"<td><code>{_text(place)}</code><br>{_text(item.name)}</td>"
        f"<td>{_text(finding.message, lines=True)}<pre>{_text(finding.location.text)}</pre></td></tr>"
    )


def _text(text: str, *, lines: bool = False) -> str:
    """Escape a stranger's text for HTML."""
    shown = escape(plain(text, keep_newlines=lines), quote=True)
    return shown.replace("\n", "<br>") if lines else shown
