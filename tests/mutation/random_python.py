"""Random modules of Python, with every kind of statement and expression, few names and odd places for each of them.

People's files have the common combinations many times and the rare ones never. Here a name may be a parameter, a target,
an import and a function at once, and each expression may stand wherever the grammar allows one.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence

Maker = Callable[[], ast.AST]


class RandomPython:
    """Makes one module.

    Args:
        names: What its names are chosen from.
    """

    def __init__(self, chooser: random.Random, names: Sequence[str]) -> None:
        self._chooser, self._names = chooser, names

    def text(self, statements: int) -> str:
        """Write a module of so many statements at its top level."""
        body = [self._statement(2) for _ in range(statements)]
        return ast.unparse(ast.fix_missing_locations(ast.Module(body=body, type_ignores=[]))) + "\n"

    # ---- expressions

    def _name(self) -> str:
        return self._chooser.choice(self._names)

    def _some(self, make: Callable[[], ast.expr], most: int = 3, least: int = 0) -> list[ast.expr]:
        return [make() for _ in range(self._chooser.randint(least, most))]

    def _expression(self, depth: int) -> ast.expr:
        if depth <= 0 or self._chooser.random() < 0.3:
            return self._leaf()
        below = depth - 1

        def part() -> ast.expr:
            return self._expression(below)

        choose = self._chooser.choice
        makers: list[Callable[[], ast.expr]] = [
            self._leaf,
            self._leaf,
            lambda: self._call(below),
            lambda: self._call(below),
            lambda: self._attribute(below),
            lambda: ast.Subscript(part(), self._index(below), ast.Load()),
            lambda: ast.BinOp(part(), choose((ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult, ast.Mod, ast.LShift, ast.BitOr))(), part()),
            lambda: ast.UnaryOp(choose((ast.USub, ast.Not, ast.Invert, ast.UAdd))(), part()),
            lambda: ast.BoolOp(choose((ast.And, ast.Or))(), [part(), part(), *self._some(part, 1)]),
            lambda: ast.Compare(part(), [choose((ast.Lt, ast.Eq, ast.Is, ast.In, ast.NotIn, ast.IsNot))() for _ in range(2)], [part(), part()]),
            lambda: ast.IfExp(part(), part(), part()),
            lambda: ast.NamedExpr(ast.Name(self._name(), ast.Store()), part()),
            lambda: ast.Lambda(self._arguments(below), part()),
            lambda: ast.Tuple(self._elements(below), ast.Load()),
            lambda: ast.List(self._elements(below), ast.Load()),
            lambda: ast.Set(self._some(part, 3, 1)),
            lambda: ast.Dict([choose((part(), None)), part()], [part(), part()]),
            lambda: ast.ListComp(part(), self._generators(below)),
            lambda: ast.SetComp(part(), self._generators(below)),
            lambda: ast.GeneratorExp(part(), self._generators(below)),
            lambda: ast.DictComp(part(), part(), self._generators(below)),
            lambda: ast.JoinedStr([ast.Constant("t"), ast.FormattedValue(ast.Name(self._name(), ast.Load()), choose((-1, 114)), None)]),
            lambda: ast.Await(part()),
            lambda: ast.Yield(choose((None, part()))),
            lambda: ast.YieldFrom(part()),
        ]  # fmt: skip
        return choose(makers)()

    def _leaf(self) -> ast.expr:
        if self._chooser.random() < 0.75:
            return ast.Name(self._name(), ast.Load())
        return ast.Constant(self._chooser.choice((0, 1, 2.5, "mean", "", b"x", None, True, ..., 1j)))

    def _call(self, depth: int) -> ast.expr:
        function = self._chooser.choice((self._leaf, lambda: self._attribute(depth), lambda: self._expression(depth)))()
        keywords = [
            ast.keyword(self._chooser.choice((self._name(), "dim", None)), self._expression(depth))
            for _ in range(self._chooser.randint(0, 2))
        ]
        return ast.Call(function, self._elements(depth), keywords)

    def _attribute(self, depth: int) -> ast.expr:
        return ast.Attribute(self._expression(depth), self._name(), ast.Load())

    def _elements(self, depth: int) -> list[ast.expr]:
        parts = self._some(lambda: self._expression(depth))
        return [ast.Starred(part, ast.Load()) if self._chooser.random() < 0.15 else part for part in parts]

    def _index(self, depth: int) -> ast.expr:
        def bound() -> ast.expr | None:
            return self._chooser.choice((None, self._expression(depth)))

        piece = ast.Slice(bound(), bound(), None)
        kind = self._chooser.randrange(4)
        if kind < 2:
            return self._expression(depth)
        return piece if kind == 2 else ast.Tuple([piece, self._leaf()], ast.Load())

    def _generators(self, depth: int) -> list[ast.comprehension]:
        return [
            ast.comprehension(
                self._target(1), self._expression(depth), self._some(lambda: self._expression(depth), 1), 0
            )
            for _ in range(self._chooser.randint(1, 2))
        ]

    def _arguments(self, depth: int) -> ast.arguments:
        def arguments(most: int) -> list[ast.arg]:
            return [ast.arg(self._name(), None) for _ in range(self._chooser.randint(0, most))]

        first, second, named = arguments(1), arguments(2), arguments(1)
        defaults = self._some(lambda: self._expression(depth), len(first) + len(second))
        return ast.arguments(
            first,
            second,
            self._chooser.choice((None, ast.arg(self._name(), None))),
            named,
            [self._chooser.choice((None, self._expression(depth))) for _ in named],
            self._chooser.choice((None, ast.arg(self._name(), None))),
            defaults,
        )

    def _target(self, depth: int) -> ast.expr:
        makers: list[Callable[[], ast.expr]] = [
            lambda: ast.Name(self._name(), ast.Store()),
            lambda: ast.Name(self._name(), ast.Store()),
            lambda: ast.Attribute(self._expression(depth), self._name(), ast.Store()),
            lambda: ast.Subscript(self._expression(depth), self._index(depth), ast.Store()),
        ]
        if depth > 0:
            makers += [
                lambda: ast.Tuple([self._target(depth - 1), self._target(depth - 1)], ast.Store()),
                lambda: ast.List([self._target(depth - 1), ast.Starred(self._target(0), ast.Store())], ast.Store()),
            ]
        return self._chooser.choice(makers)()

    # ---- statements

    def _block(self, depth: int, most: int = 3) -> list[ast.stmt]:
        return [self._statement(depth - 1) for _ in range(self._chooser.randint(1, most))]

    def _statement(self, depth: int) -> ast.stmt:
        simple = self._simple(2)
        makers = simple if depth <= 0 or self._chooser.random() < 0.55 else self._compound(depth)
        return self._chooser.choice(makers)()

    def _simple(self, depth: int) -> list[Callable[[], ast.stmt]]:
        def value() -> ast.expr:
            return self._expression(depth)

        def one_target() -> ast.expr:
            return self._target(0)

        choose = self._chooser.choice
        assigns = [lambda: ast.Assign([self._target(1) for _ in range(choose((1, 1, 1, 2)))], value())] * 6
        return [
            *assigns,
            lambda: ast.AugAssign(one_target(), choose((ast.Add, ast.Mult, ast.Sub, ast.MatMult))(), value()),
            lambda: ast.AugAssign(one_target(), ast.Add(), value()),
            lambda: ast.AnnAssign(target := one_target(), value(), choose((None, value())), int(isinstance(target, ast.Name))),
            lambda: ast.Expr(self._call(depth)),
            lambda: ast.Expr(self._call(depth)),
            lambda: ast.Expr(value()),
            lambda: ast.Return(choose((None, value()))),
            lambda: ast.Delete([one_target()]),
            lambda: ast.Assert(value(), choose((None, value()))),
            lambda: ast.Raise(*choose(((None, None), (value(), None), (value(), value())))),
            lambda: ast.Import([ast.alias(choose((self._name(), "torch.nn")), choose((None, self._name())))]),
            lambda: ast.ImportFrom(choose((self._name(), None)), [ast.alias(choose((self._name(), "*")), None)], 1),
            lambda: ast.Global([self._name()]),
            lambda: ast.Nonlocal([self._name()]),
            ast.Pass,
            ast.Break,
            ast.Continue,
        ]  # fmt: skip

    def _compound(self, depth: int) -> list[Callable[[], ast.stmt]]:
        def value() -> ast.expr:
            return self._expression(2)

        def block() -> list[ast.stmt]:
            return self._block(depth)

        def handlers() -> list[ast.ExceptHandler]:
            return [ast.ExceptHandler(value(), choose((None, self._name())), block())]

        choose = self._chooser.choice

        def maybe() -> list[ast.stmt]:
            return choose((block, list[ast.stmt]))()

        def items() -> list[ast.withitem]:
            return [ast.withitem(value(), choose((None, self._target(1)))) for _ in range(choose((1, 1, 2)))]

        return [
            *[lambda: self._function(ast.FunctionDef, depth)] * 3,
            lambda: self._function(ast.AsyncFunctionDef, depth),
            lambda: ast.ClassDef(self._name(), self._some(value, 2), [], block(), self._some(value, 1)),
            lambda: ast.For(self._target(1), value(), block(), maybe()),
            lambda: ast.For(self._target(1), value(), block(), []),
            lambda: ast.AsyncFor(self._target(1), value(), block(), maybe()),
            lambda: ast.While(value(), block(), maybe()),
            lambda: ast.If(value(), block(), maybe()),
            lambda: ast.With(items(), block()),
            lambda: ast.AsyncWith(items(), block()),
            lambda: ast.Try(block(), handlers(), maybe(), maybe()),
            lambda: ast.TryStar(block(), handlers(), [], []),
            lambda: ast.Match(value(), [ast.match_case(self._pattern(2), choose((None, value())), block()) for _ in range(2)]),
        ]  # fmt: skip

    def _function(self, kind: type[ast.FunctionDef | ast.AsyncFunctionDef], depth: int) -> ast.stmt:
        decorators = self._some(lambda: self._expression(1), 1)
        return kind(self._name(), self._arguments(1), self._block(depth, 6), decorators, None)

    def _pattern(self, depth: int) -> ast.pattern:
        dotted = ast.Attribute(ast.Name(self._name(), ast.Load()), self._name(), ast.Load())
        makers: list[Callable[[], ast.pattern]] = [
            lambda: ast.MatchValue(ast.Constant(1)),
            lambda: ast.MatchValue(dotted),
            lambda: ast.MatchSingleton(None),
            lambda: ast.MatchAs(None, self._name()),
        ]
        if depth > 0:
            makers += [
                lambda: ast.MatchSequence([self._pattern(depth - 1), ast.MatchStar(self._name())]),
                lambda: ast.MatchMapping([ast.Constant("k")], [self._pattern(depth - 1)], self._name()),
                lambda: ast.MatchClass(
                    ast.Name(self._name(), ast.Load()), [self._pattern(0)], ["a"], [self._pattern(0)]
                ),
                lambda: ast.MatchOr([ast.MatchValue(ast.Constant(1)), ast.MatchValue(ast.Constant(2))]),
            ]
        return self._chooser.choice(makers)()
