"""Custom Functions made by chance, right ones and ones with a slip in `backward`: `python -m tests.corpus.functions`.

y = x.sin() * w + x**2          forward: one to three terms of x and w
dx = g * (x.cos() * w + 2 * x)  backward: the sum of their derivatives; a slip drops, doubles, negates or swaps one
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from typing import Final

TERMS: Final = (
    ("x.sin() * w", "x.cos() * w", "x.sin()"),
    ("x**2 * w", "2 * x * w", "x**2"),
    ("x.exp() * w", "x.exp() * w", "x.exp()"),
    ("x.tanh() * w", "(1 - x.tanh()**2) * w", "x.tanh()"),
    ("x * w**2", "w**2", "2 * x * w"),
    ("(x * w).sigmoid()", "(x * w).sigmoid() * (1 - (x * w).sigmoid()) * w",
     "(x * w).sigmoid() * (1 - (x * w).sigmoid()) * x"),
    ("x**3", "3 * x**2", "0 * x"),
    ("w.cos() + x", "1 + 0 * x", "-w.sin()"),
)  # fmt: skip
"""Terms of the forward, each with its derivatives by x and by w."""

SLIPS: Final = ("{0} * 2", "-({0})", "({0}) * x", "({0}) + 0.3", "0.9 * ({0})")

PROGRAM: Final = """\
import torch

class Made(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return {forward}

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        dx = {by_x}
        dw = {by_w}
        return g * dx, (g * dw).sum_to_size(w.shape)

a = torch.nn.Parameter(torch.randn(5) * 0.5)
w = torch.nn.Parameter(torch.rand(1) + 0.5)
optimizer = torch.optim.SGD([a, w], lr=0.01)
x, y = torch.randn(12, 5), torch.randn(12)
for _ in range(1):
    loss = (Made.apply(x @ a, w) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A program with a custom Function; is_wrong: its backward has a slip."""

    source: str
    is_wrong: bool


def made(seed: int) -> Made:
    """The program of a seed: of an even one it is right."""
    chance = random.Random(seed)
    terms = chance.sample(TERMS, chance.randint(1, 3))
    by_x, by_w = [f"({one[1]})" for one in terms], [f"({one[2]})" for one in terms]
    is_wrong = bool(seed % 2)
    if is_wrong:
        by = chance.choice((by_x, by_w))
        at = chance.choice([n for n, one in enumerate(by) if one != "(0 * x)"] or [0])
        slips = [slip for slip in SLIPS if not (by[at] == "(0 * x)" and slip != SLIPS[3])]
        by[at] = f"({chance.choice(slips).format(by[at])})"
    forward = " + ".join(one[0] for one in terms)
    return Made(PROGRAM.format(forward=forward, by_x=" + ".join(by_x), by_w=" + ".join(by_w)), is_wrong)


def main() -> None:
    """Run them with the check on, and count."""
    from backprobe.rules import judge
    from backprobe.rules.manual_programs import programs

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    found = false = wrong = 0
    for seed in range(args.count):
        one = made(seed)
        record = programs().captured(one.source, check=True)
        named = any(row.cause == "backward" and row.function == "Made" for row in record.gradient_checks)
        told = any(finding.rule.code == "BP910" for finding in judge(record).findings)
        wrong += one.is_wrong
        found += one.is_wrong and named and told
        is_false = not one.is_wrong and any(row.verdict not in ("agrees", "rough") for row in record.gradient_checks)
        false += is_false
        if is_false or (one.is_wrong and not (named and told)):
            print(seed, one.is_wrong, [(row.verdict, row.numeric, row.used, row.why) for row in record.gradient_checks])
            print(one.source[:700], flush=True)
    print(
        f"{args.count} Functions: {found} of {wrong} slips found and named, {false} of {args.count - wrong} right ones wrong"
    )


if __name__ == "__main__":
    main()
