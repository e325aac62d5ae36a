"""What `backprobe rules new NAME` writes: a plug-in with one rule that keeps the laws, to be changed into one's own."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Final

from backprobe.cli.exit_codes import UsageError

PROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "@name@"
version = "0.1.0"
description = "A rule for Backprobe: @name@."
requires-python = ">=3.11"
dependencies = ["backprobe"]

[project.optional-dependencies]
dev = ["backprobe[torch]", "pytest"]

[project.entry-points."backprobe.rules"]
@name@ = "@package@:RULES"

[tool.hatch.build.targets.wheel]
packages = ["@package@"]
"""

PACKAGE: Final = '''\
"""The rules of this plug-in, in order of their codes."""

from @package@ import @module@

RULES = (@module@,)
'''

TESTS: Final = '''\
"""The rules keep the laws of Backprobe's own: declaration, manual, example, near misses, fixes, purity."""

from @package@ import RULES
from backprobe.rules.testing import laws

test_rules = laws(RULES)
'''

RULE: Final = '''\
"""@code@ @name@: the learning rate is so high that a step overshoots.

What it finds:
    An optimizer that is built with a learning rate above `most`. Change this rule into your own: the manual is
    executed by the tests, so each section stays true.

Why it matters:
    Each step moves the parameters further than the gradient says anything about.

What PyTorch does:
    It takes any rate that is not negative. Seen in torch 2.13.

Example:
    import torch

    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=500.0)  # <- here
    for _ in range(2):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

Use instead:
    import torch

    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

Near miss: the highest rate that is let pass
    import torch

    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=100.0)
    for _ in range(2):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

Near miss: a scheduler lowers it before the first step
    import torch

    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=10.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.01)
    for _ in range(2):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        schedule.step()

Near miss: an optimizer that divides by the size of the gradient
    import torch

    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=1.0)
    for _ in range(2):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

Blind spots:
    A rate that is raised later.

Source:
    `most` is a number of this template's own: measure yours, and say here how.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules import Rule
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.finding_builder import told

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Finding

RULE = Rule(
    name="@name@",
    code="@code@",
    since="0.1",
    severity="warning",
    confidence="heuristic",
    fix="manual",
    needs=("optimizer",),
    thresholds={"most": 100.0},
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    most = threshold(RULE, "most")
    for optimizer in record.optimizers:
        rate = max(optimizer.learning_rates, default=0.0)
        if rate > most and optimizer.site is not None:
            yield told(
                record,
                RULE,
                optimizer.site,
                (
                    f"The learning rate is {rate:g}, more than {most:g}.",
                    "A step goes further than its gradient says anything about.",
                    "Lower it.",
                ),
                binding=optimizer.binding or optimizer.cls,
                moments=(optimizer.moment,),
                optimizers=(optimizer.optimizer,),
                evidence={"rate": rate, "most": most},
            )
'''


def begin(where: Path, name: str, prefix: str) -> Path:
    """Write a plug-in into a new folder of that name.

    Raises:
        UsageError: the name or prefix cannot be one, or the folder is there already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", name):
        raise UsageError(f"`{name}` is no rule name: small words joined by dashes, like `rate-too-high`")
    if not re.fullmatch(r"[A-Z]{2,4}", prefix) or prefix == "BP":
        raise UsageError(f"`{prefix}` is no prefix: 2 to 4 capitals of your own, and BP is Backprobe's")
    folder = where / name
    if folder.exists():
        raise UsageError(f"there is a `{name}` here already: name another rule, or another folder to stand in")
    module = name.replace("-", "_")
    if keyword.iskeyword(module):
        raise UsageError(f"`{name}` is a word of Python's: name another rule")
    texts = {"@name@": name, "@module@": module, "@package@": f"{module}_rules", "@code@": f"{prefix}101"}
    files = {
        "pyproject.toml": PROJECT,
        f"{module}_rules/__init__.py": PACKAGE,
        f"{module}_rules/{module}.py": RULE,
        "tests/test_rules.py": TESTS,
    }
    try:
        for path, text in files.items():
            for mark, value in texts.items():
                text = text.replace(mark, value)  # noqa: PLW2901 - the same text, filled in
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"`{folder}` cannot be written ({error.strerror})") from None
    return folder
