"""Programs as hypothesis draws them: a tree of statements, so that a failing one shrinks to a few lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle import words

NAMES: Final = ("a", "b", "c", "d", "e")
"""The module's names, which hold tensors from the start."""

LOCALS: Final = ("x", "y", "a", "b")
"""The names in a function's body: its parameters, and names of the module that it reads or makes its own."""

_WORD: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Block:
    """A head with its body, and more of the kind: `try` with its `except`."""

    parts: tuple[tuple[str, tuple[Any, ...]], ...]


Node = str | Block


def text_of(nodes: Sequence[Node], indent: int = 0) -> list[str]:
    """The lines of statements."""
    lines: list[str] = []
    for node in nodes:
        if isinstance(node, str):
            lines += [" " * indent + line for line in node.split("\n")]
            continue
        for head, body in node.parts:
            lines += [" " * indent + line for line in head.split("\n")]
            lines += text_of(body, indent + 4)
    return lines


def _weighted(*groups: tuple[int, tuple[str, ...], str]) -> tuple[str, ...]:
    """Templates, each as often as its group's weight says; `@` in the group's form is the template."""
    most = max(len(templates) for _, templates, _ in groups)
    return tuple(
        form.replace("@", template)
        for weight, templates, form in groups
        for _ in range(round(weight * most / len(templates)))
        for template in templates
    )


SIMPLE: Final = _weighted(
    (6, words.VALUES, "{x} = @"),
    (4, words.VIEWS, "{x} = @"),
    (3, words.CUTS, "{x} = @"),
    (2, words.NEW, "{x} = @"),
    (4, words.CALLS, "{x} = @"),
    (2, words.GRADS, "{x} = @"),
    (6, words.INPLACE, "@"),
    (6, words.BACKWARD, "@"),
    (6, words.OTHER, "@"),
)
_SAFE: Final = re.compile(
    r"^(\w+ = (torch\.(tensor|rand|randn|ones|arange)\(.*|\w+|\w+ [*+-] \w+|\w+\.(exp|relu|sum)\(\)))$"
)
"""Statements that seldom fail and stand bare."""


def _simple(names: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """One simple statement, from two draws: hypothesis pays for each of them."""
    count = len(names)

    def build_program(drawn: tuple[str, int]) -> Node:
        template, rest = drawn
        rest, x = divmod(rest, count)
        rest, y = divmod(rest, count)
        rest, z = divmod(rest, count)
        how, flag = divmod(rest, 2)
        text = template.format(x=names[x], y=names[y], z=names[z], flag=flag == 0)
        return text if _SAFE.match(text) or how == 7 else guarded(text, how)

    return st.tuples(st.sampled_from(SIMPLE), st.integers(0, count**3 * 16 - 1)).map(build_program)


def guarded(text: str, how: int = 0) -> Block:
    """A statement whose exception is caught; in some of the forms something follows."""
    tries = ("try:", (text,))
    if how == 4:
        return Block((("with contextlib.suppress(Exception):", (text,)),))
    if how == 5:
        return Block((tries, ("except Exception as error:", ("kept = str(error)",)), ("finally:", ("n = 1",))))
    return Block((tries, ("except Exception:", ("pass",))))


def _block(names: tuple[str, ...], inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    @st.composite
    def built(draw: Any) -> Node:
        kind = draw(st.integers(0, 13))
        name = st.sampled_from(names)
        y, z, flag = draw(name), draw(name), draw(st.booleans())
        body = tuple(draw(st.lists(inner, min_size=1, max_size=3)))
        if kind == 0:
            return Block((("try:", body), ("except RuntimeError:", ("n = 2",)), ("else:", ("n = 3",))))
        if kind == 1:
            return Block((("k = 2\nwhile k > 0:", ("k -= 1", *body)),))
        if kind == 2:
            return Block(
                ((f"if {y}.requires_grad:", body), ("else:", tuple(draw(st.lists(inner, min_size=1, max_size=2)))))
            )
        if kind == 3:
            matched = Block((("case torch.Tensor() as t:", body), ("case _:", ("n = 4",))))
            return Block(((f"match {y}:", (matched,)),))
        if kind == 4:
            return _function(draw, names, y, z)
        head = draw(st.sampled_from(words.HEADS)).format(y=y, z=z, flag=flag)
        return Block(((head, body),))

    return built()


def _function(draw: Any, names: tuple[str, ...], y: str, z: str) -> Node:
    """A function and a call of it."""
    body = draw(st.lists(_IN_FUNCTION, min_size=1, max_size=4))
    given = draw(st.sampled_from(("x", "y", "x * 2", "(x, y)", "y.sum()")))
    target = draw(st.sampled_from(names))
    decorator = draw(st.sampled_from(("", "", "@torch.no_grad()\n", "@torch.enable_grad()\n")))
    text = "\n".join(text_of([Block(((f"{decorator}def f(x, y):", (*body, f"return {given}")),))]))
    call = guarded(f"{target} = f({y}, {z})") if given != "(x, y)" else guarded(f"{target}, {y} = f({y}, {z})")
    return Block(((text, ()), *call.parts))


def statements(names: tuple[str, ...], depth: int) -> st.SearchStrategy[Node]:
    """One statement, down to a depth of blocks."""
    simple = _simple(names)
    if depth == 0:
        return simple
    inner = statements((*names, "t"), depth - 1)
    return st.one_of(simple, simple, simple, _block(names, inner))


_IN_FUNCTION: Final = statements(LOCALS, 0)
_STATEMENT: Final = statements(NAMES, 2)


@st.composite
def programs(draw: Callable[..., Any], least: int = 5, most: int = 14) -> str:
    """A program; most statements that may fail are guarded, so that it runs to its end in most cases."""
    starts = [draw(st.sampled_from(words.NEW[:7])).format(flag=draw(st.booleans())) for _ in NAMES[:4]]
    head = [f"{name} = {start}" for name, start in zip(NAMES, [*starts, "a * b"], strict=False)]
    if draw(st.booleans()):
        head[0] = "a = torch.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)"
    body = text_of(draw(st.lists(_STATEMENT, min_size=least, max_size=most)))
    return assembled(head, body, draw(st.sampled_from(words.NETS)), draw(st.sampled_from(words.OPTIMIZERS)))


def assembled(head: Sequence[str], body: Sequence[str], net: str, opt: str) -> str:
    """A program with the definitions and the setup that its statements name."""
    used, setup = _words(body), []
    for name, text in reversed(words.SETUP.items()):
        if name in used or name in _words(setup):
            setup[:0] = text.format(net=net, opt=opt.replace("{{", "{").replace("}}", "}")).split("\n")
    used = _words([*setup, *body])
    made: list[str] = []
    for name, text in words.DEFINITIONS.items():
        if name in used or ("tail" in used and name == "tail"):
            made += text.split("\n")
            used |= _words([text])
    for name in ("seen",):
        if name in used and not any(line.startswith(f"{name} =") for line in setup):
            setup.append(words.SETUP[name])
    imports = ["import torch"]
    imports += ["import torch.utils.checkpoint"] if "checkpoint" in used else []
    imports += [f"import {name}" for name in ("contextlib", "threading") if name in used]
    return "\n".join([*imports, *made, *head, *setup, *body]) + "\n"


def _words(lines: Sequence[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line)}
