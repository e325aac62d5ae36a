"""BP650 batch-norm-of-one: a batch of one sample reaches batch norm in training mode, which has nothing to average.

What it finds:
    A normalisation layer raised "Expected more than 1 value per channel when training", as its batch had one sample.
    The finding stands at the loader whose last batch that is, where one is made without `drop_last`; else at the
    statement that ran the module.

Why it matters:
    The mean of one value is that value and its variance is zero: everything would be normalised to zero, so torch
    refuses. With a loader it happens at the end of an epoch, and only for some sizes of the data set.

What PyTorch does:
    `batch_norm` in training mode wants more than one value per channel, over the batch and all positions. In evaluation
    mode it uses its running statistics, and one sample is enough. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    loader = DataLoader(torch.randn(5, 3), batch_size=4)  # <- here
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    loader = DataLoader(torch.randn(5, 3), batch_size=4, drop_last=True)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()

Near miss: one sample in evaluation mode
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).eval()
    with torch.no_grad():
        print(net(torch.randn(1, 3)))

Near miss: one image has many values per channel
    import torch
    from torch import nn

    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    net(torch.randn(1, 1, 5, 5)).pow(2).mean().backward()

Blind spots:
    Of several loaders without `drop_last` the first that shuffles is named, else the first.

Source:
    torch.nn.functional.batch_norm in PyTorch's source; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.arithmetic import dotted
from backprobe.rules.expressions import keyword, with_keyword
from backprobe.rules.finding import Fix
from backprobe.rules.module_sites import calls_by_number
from backprobe.rules.raised import level_of
from backprobe.rules.rule import Rule
from backprobe.rules.syntax import region_in, site_at, site_of, statement, tree_of, trees
from backprobe.rules.told import told

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.finding import Finding

RULE = Rule(
    name="batch-norm-of-one",
    code="BP650",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "module", "site"),
)

_TEXT: Final = "Expected more than 1 value per channel when training"
_LOADER: Final = "torch.utils.data.DataLoader"


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that raised."""
    seen: set[int] = set()
    for raised in record.raised:
        if raised.message.startswith(_TEXT) and raised.site is not None and raised.site not in seen:
            seen.add(raised.site)
            yield _finding(record, raised, raised.site)


def _finding(record: Record, raised: Raised, site: int) -> Finding:
    loader = _loader(record) if _ran_before(record, site) else None
    at = site_of(record, site) if loader is None else loader[0]
    region = None if loader is None else region_in(record, at.source, loader[1])
    cause = (
        "A batch of one sample is given to batch norm in training mode."
        if loader is None
        else "The last batch of this loader has one sample, and is given to batch norm in training mode."
    )
    cure = (
        "Give it more samples, or call `eval()` before, if nothing is trained here."
        if loader is None
        else "Pass `drop_last=True`, or another `batch_size`."
    )
    return told(
        record,
        RULE,
        at.site,
        (cause, "One value per channel has no variance: torch refuses to normalise it.", cure),
        binding="" if loader is None else ast.unparse(loader[1].func),
        moments=[raised.moment or 0],
        region=region,
        related=(("it is raised here", None if loader is None else site),),
        evidence={"raised": raised.message},
        fixes=() if loader is None else _fixes(record, *loader),
        level=level_of(record, raised),
    )


def _ran_before(record: Record, site: int) -> bool:
    """The statement ran a module in training mode to its end before: its batches are not always of one."""
    done = [
        call for call in calls_by_number(record).values() if call.site == site and call.training and call.hi > call.lo
    ]
    return len({call.k for call in done}) > 1


def _loader(record: Record) -> tuple[Site, ast.Call] | None:
    """The loader that keeps its last batch, whatever its size: of several the first that shuffles, else the first."""
    found: list[tuple[Site, ast.Call]] = []
    for tree in trees(record).values():
        for part in ast.walk(tree.module):
            node = next((one for one in (part, *tree.ancestors(part)) if isinstance(one, ast.stmt)), None)
            place = site_at(record, node) if isinstance(part, ast.Call) and node is not None else None
            if isinstance(part, ast.Call) and place is not None and _keeps_rest(record, place, part):
                found.append((place, part))
    shuffled = [one for one in found if keyword(one[1], "shuffle") is not None]
    return next(iter((*shuffled, *found)), None)


def _keeps_rest(record: Record, place: Site, call: ast.Call) -> bool:
    """It makes a loader with batches of a size, without `drop_last`."""
    if (
        dotted(record, place, call.func) != _LOADER
        or statement(record, place) is None
        or tree_of(record, place) is None
    ):
        return False
    return keyword(call, "drop_last") is None and keyword(call, "batch_sampler") is None


def _fixes(record: Record, place: Site, call: ast.Call) -> Iterator[Fix]:
    edit = with_keyword(record, place, call, "drop_last", "True")
    yield Fix(title="Leave out the last batch", safety="unsafe", edits=(edit,))
