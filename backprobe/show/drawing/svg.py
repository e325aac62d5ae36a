"""The drawing of an autograd graph: shape first, colour second, a word always.

1. No script, no style but the tokens: colours are CSS variables with a light value to fall back to, so a page may bring
   its own, and `standalone` drawings bring both themes.
2. Every text comes from a stranger's program: it is escaped, and control characters are shown as escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import Final

from backprobe.show.drawing.box_layout import Placed, place
from backprobe.show.drawing.graph import Box, Grad, Graph, Kind, State
from backprobe.show.plain_text import cut, plain

TOKENS: Final = {
    "bg": ("#ffffff", "#14171a"),
    "fg": ("#1a1d20", "#e6e8ea"),
    "muted": ("#5a6168", "#a3abb2"),
    "leaf": ("#0b7a4b", "#4fc79a"),
    "held": ("#1f5fbf", "#6ea8fe"),
    "freed": ("#6b737a", "#8b949c"),
    "on": ("#ffffff", "#14171a"),
}
"""Colours, light and dark; contrast of each against the page is at least 4.5 (WCAG 2.2, AA)."""

_HEIGHT: Final = 44.0
_MARGIN: Final = 16.0
_MOST_CHARACTERS: Final = 34


def style() -> str:
    """Write the tokens as CSS for both themes; it follows `color-scheme` of the page, or of the viewer."""
    light = "".join(f"--bp-{name}:{value[0]};" for name, value in TOKENS.items())
    dark = "".join(f"--bp-{name}:{value[1]};" for name, value in TOKENS.items())
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def render(graph: Graph, *, standalone: bool = True) -> str:
    """Render the graph as one `<svg>` element.

    Args:
        standalone: Bring the colours of both themes in a `<style>`, a background and a legend; else the page defines
            the variables `--bp-...` (see `TOKENS`) and explains the signs, and the drawing has none of these.
    """
    widths = {box.id: _width(box) for box in graph.boxes}
    pairs = [(edge.start, edge.end) for edge in graph.edges]
    placed = place(widths, pairs, box_height=_HEIGHT, gap=18, row_gap=34)
    width = max(placed.width, 7.0 * 40, _legend_width(graph) if standalone else 0) + 2 * _MARGIN
    height = placed.height + 2 * _MARGIN + (58 if standalone else 0)
    title = _headline(graph)
    parts = [
        _opening(width, height, title),
        f"<title>{_text(title)}</title>",
        f"<style>{style()}</style>" if standalone else "",
        _HATCH,
        f'<rect class="bp-page" width="100%" height="100%" {_ink(fill="bg")}/>' if standalone else "",
        f'<g transform="translate({(width - placed.width) / 2:.1f} {_MARGIN:.0f})">',
        *_edges(graph, placed),
        *(_box(box, placed.centres[box.id], widths[box.id]) for box in graph.boxes),
        "</g>",
        *(_placed_legend(graph, height) if standalone else ()),
        "</svg>",
    ]
    return "".join(parts)


def _opening(width: float, height: float, title: str) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="bp-graph" role="img" {size} aria-label="{_text(title)}">'


def _ink(*, fill: str | None = None, stroke: str | None = None, width: float = 1) -> str:
    """Presentation attributes in the colours of the tokens."""
    shown = f'fill="{_colour(fill)}"' if fill else 'fill="none"'
    return shown + (f' stroke="{_colour(stroke)}" stroke-width="{width:g}"' if stroke else "")


def _colour(token: str) -> str:
    return f"var(--bp-{token}, {TOKENS[token][0]})"


_HATCH: Final = (
    '<defs><pattern id="bp-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="2.5" height="6" fill="{_colour("freed")}"/></pattern></defs>'
)
_FONT: Final = 'font-family="system-ui, sans-serif"'


def _text(text: str) -> str:
    """Escaped for markup; characters that XML cannot hold are already shown as escapes."""
    return escape(re.sub("[\ufffe\uffff]", "\ufffd", plain(text)))


def _headline(graph: Graph) -> str:
    if graph.call is None:
        return "No backward call was walked: there is no graph to draw"
    more = "".join(f", {count:,} {what} not drawn" for what, count in graph.hidden.items())
    cut_off = ", record incomplete" if graph.truncated else ""
    return f"Autograd graph of backward call {graph.call}: {len(graph.boxes)} boxes{more}{cut_off}"


def _label(box: Box) -> str:
    return cut(plain(box.label), _MOST_CHARACTERS)


def _detail(box: Box) -> str:
    return cut(plain(box.detail), _MOST_CHARACTERS + 8)


def _line(box: Box) -> str:
    return "" if box.line is None else f"line {box.line}"


def _width(box: Box) -> float:
    """Wide enough for both lines of text, as far as that can be told without a font."""
    first = len(_label(box)) * (8.5 if _is_named(box) else 7.8) + len(_line(box)) * 5.4 + 14
    return max(112.0, 48 + max(first, len(_detail(box)) * 6.4))


def _is_named(box: Box) -> bool:
    """Return whether the label is a name of the program, not a type of node."""
    return box.kind != "node"


def _edges(graph: Graph, placed: Placed) -> Iterator[str]:
    for edge, path in zip(graph.edges, placed.paths, strict=True):
        points = [(x, y) for x, y in path]
        points[0] = (points[0][0], points[0][1] + _HEIGHT / 2)
        points[-1] = (points[-1][0], points[-1][1] - _HEIGHT / 2)
        dash = "" if edge.wanted else ' stroke-dasharray="2 4"'
        kind = "bp-edge" if edge.wanted else "bp-edge bp-unwanted"
        yield f'<path class="{kind}" d="{_curve(points)}" {_ink(stroke="muted", width=1.2)}{dash}/>'
        if edge.wanted:
            x, y = points[-1]
            yield f'<path d="M{x - 4:.1f} {y - 7:.1f}L{x:.1f} {y:.1f}L{x + 4:.1f} {y - 7:.1f}z" {_ink(fill="muted")}/>'


def _curve(points: list[tuple[float, float]]) -> str:
    drawn = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (y0 + y1) / 2
        drawn += f"C{x0:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}"
    return drawn


def _box(box: Box, centre: tuple[float, float], width: float) -> str:
    x, y = centre[0] - width / 2, centre[1] - _HEIGHT / 2
    first, second = ("on", "on") if box.state == "held" else ("fg", "muted")
    weight = 600 if _is_named(box) else 400
    words = (
        _words(38, 19, 13, first, _label(box), f'font-weight="{weight}"'),
        _words(38, 35, 11, second, _detail(box)),
        _words(width - 9, 19, 10, second, _line(box), 'text-anchor="end"'),
    )
    return (
        f'<g class="bp-box bp-{box.kind} bp-{box.state}" transform="translate({x:.1f} {y:.1f})">'
        f"<title>{_text(box.title)}</title>{_frame(box, width)}"
        f'<g transform="translate(12 12)">{_sign(box)}</g>{"".join(words)}</g>'
    )


def _words(x: float, y: float, size: int, colour: str, text: str, more: str = "") -> str:
    if not text:
        return ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" {_FONT} {_ink(fill=colour)} {more}>{_text(text)}</text>'


def _frame(box: Box, width: float) -> str:
    size = f'x="1" y="1" width="{width - 2:.1f}" height="{_HEIGHT - 2:.0f}"'
    if box.kind == "leaf":
        return f'<rect {size} rx="21" {_ink(fill="bg", stroke="leaf", width=2)}/>'
    if box.kind == "leaf-no-grad":
        dots = 'stroke-dasharray="1.5 3.5" stroke-linecap="round"'
        return f'<rect {size} rx="21" {_ink(fill="bg", stroke="freed", width=2)} {dots}/>'
    if box.state == "held":
        return f"<rect {size} {_ink(fill='held', stroke='held', width=2)}/>"
    if box.state == "freed":
        bar = f'<rect x="2" y="2" width="7" height="{_HEIGHT - 4:.0f}" fill="url(#bp-hatch)"/>'
        return f'<rect {size} {_ink(fill="bg", stroke="freed", width=2)} stroke-dasharray="6 4"/>{bar}'
    return f"<rect {size} {_ink(fill='bg', stroke='muted', width=1)}/>"


def _sign(box: Box) -> str:
    """Draw a circle for a leaf, a square for others; filled with a gradient, with a corner if it retains one."""
    if box.kind == "node":
        return f'<circle cx="10" cy="10" r="2.5" {_ink(fill="on" if box.state == "held" else "muted")}/>'
    colour = {"leaf": "leaf", "leaf-no-grad": "freed"}.get(box.kind, "on" if box.state == "held" else "fg")
    full = colour if box.grad == "present" else None
    ink = _ink(fill=full, stroke=colour, width=2)
    if box.kind == "leaf":
        return f'<circle cx="10" cy="10" r="7" {ink}/>'
    if box.kind == "leaf-no-grad":
        return f'<circle cx="10" cy="10" r="7" {ink} stroke-dasharray="2 2"/>'
    blue, edge = ("on", "held") if box.state == "held" else ("held", "bg")
    corner = f'<path d="M10 -1h11v11z" {_ink(fill=blue, stroke=edge, width=1.5)}/>' if box.retains_grad else ""
    return f'<rect x="3" y="3" width="14" height="14" {ink}/>{corner}'


_LEGEND: Final[tuple[tuple[Kind, State, str], ...]] = (
    ("leaf", "leaf", "leaf (filled: has a gradient)"),
    ("leaf-no-grad", "leaf", "leaf that needs no grad"),
    ("non-leaf", "nothing", "not a leaf"),
    ("node", "held", "saved tensors held"),
    ("node", "freed", "saved tensors freed"),
)


def _placed_legend(graph: Graph, height: float) -> Iterator[str]:
    yield f'<g class="bp-legend" transform="translate({_MARGIN:.0f} {height - 44:.0f})">'
    yield from _legend(graph)
    yield "</g>"


def _legend(graph: Graph) -> Iterator[str]:
    at = 0.0
    for kind, state, word in _LEGEND if graph.boxes else ():
        grad: Grad = "present" if kind == "leaf" else "none"
        box = Box(id="", kind=kind, label="", detail="", title="", state=state, grad=grad)
        yield f'<g transform="translate({at:.0f} 0)">{_swatch(box)}{_words(32, 15, 11, "muted", word)}</g>'
        at += 48 + len(word) * 6.0
    yield _words(0, 36, 11, "muted", _headline(graph))


def _swatch(box: Box) -> str:
    if box.state == "held":
        return f'<rect x="1" y="2" width="26" height="17" {_ink(fill="held", stroke="held", width=2)}/>'
    if box.state == "freed":
        bar = '<rect x="2" y="3" width="6" height="15" fill="url(#bp-hatch)"/>'
        return f'<rect x="1" y="2" width="26" height="17" {_ink(stroke="freed", width=2)} stroke-dasharray="4 3"/>{bar}'
    return f'<g transform="translate(4 0)">{_sign(box)}</g>'


def _legend_width(graph: Graph) -> float:
    return sum(48 + len(word) * 6.0 for _kind, _state, word in _LEGEND) if graph.boxes else 0.0
