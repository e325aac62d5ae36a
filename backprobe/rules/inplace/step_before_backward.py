"""BP402 step-before-backward: an optimizer steps between a loss and its backward call.

What it finds:
    A backward call raised because the weights that its graph had saved were updated in the meantime. The finding stands
    at the update that came last, and where that is in a function of its own at the call of it beside the backward call.
    It stands where the loss is computed, which is too early, if one function walks and steps and was called for another
    loss before, or if all statements of its graph stand behind that other loss. Related are the statement that used
    the old weights and the call that raised.

Why it matters:
    The program stops, and the message of torch speaks of an in-place operation that no line of the program shows: the
    optimizer made it.

What PyTorch does:
    `optimizer.step()` writes the parameters in place and raises their `_version`. A node that saved one of them
    compares versions when it runs, and raises `RuntimeError: one of the variables needed for gradient computation has
    been modified by an inplace operation`; of a linear layer it names "output 0 of AsStrided". Seen in torch 2.13.

Example:
    import torch

    critic = torch.nn.Linear(2, 1)
    made = torch.ones(4, 2, requires_grad=True)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    critic_loss = critic(made.detach()).pow(2).mean()
    maker_loss = -critic(made).mean()  # <- here
    critic_loss.backward()
    optimizer.step()
    maker_loss.backward()

Use instead:
    import torch

    critic = torch.nn.Linear(2, 1)
    made = torch.ones(4, 2, requires_grad=True)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    critic_loss = critic(made.detach()).pow(2).mean()
    critic_loss.backward()
    optimizer.step()
    maker_loss = -critic(made).mean()
    maker_loss.backward()

Near miss: both losses are walked before the step
    import torch

    critic = torch.nn.Linear(2, 1)
    made = torch.ones(4, 2, requires_grad=True)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    critic_loss = critic(made.detach()).pow(2).mean()
    maker_loss = -critic(made.detach().requires_grad_()).mean()
    (critic_loss + maker_loss).backward()
    optimizer.step()

Near miss: the loss computed before the step is only looked at
    import torch

    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.ones(2, 4, 2):
        before = model(x).pow(2).mean()
        optimizer.zero_grad()
        before.backward()
        optimizer.step()
        print(before.item())

Blind spots:
    Where the old weights belong to the graph of the turn before, which a carried tensor brings in, BP302 speaks.
    Weights that the optimizer writes but no node saved (a bias) are walked without an error, and the gradient is right.
    An update through `.data` raises no version: BP411 is to see it by the values.

Source:
    "In-place correctness checks" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.calling_statements import statement_beside
from backprobe.rules.analysis.graph.carried_graphs import walked_again
from backprobe.rules.analysis.graph.walks import below, node_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import line_after, replacement
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.scopes import names
from backprobe.rules.analysis.source.syntax import blocks, number_at, region_in, site_of, statement, text_in, tree_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.saved_changes import SavedChange, saved_changes, saved_name
from backprobe.rules.edits.statement_moves import moved
from backprobe.rules.framework.finding import Edit, Evidence, Finding, Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words, source_lines
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Binding, Record

RULE = Rule(
    name="step-before-backward",
    code="BP402",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "saved", "version", "optimizer"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call whose saved weights an update had changed."""
    carried = {again.raised.n for again in walked_again(record)}
    for change in saved_changes(record):
        if change.by_update and change.last.site is not None and change.raised.n not in carried:
            early = _computed_early(record, change, change.last.site)
            yield _finding(record, change, change.last.site) if early is None else _finding_early(record, change, early)


def _computed_early(record: Record, change: SavedChange, step: int) -> int | None:
    """Where the loss was computed too early: in another function than the one that steps first and walks it then.

    Or in the same one, in statements that all stand behind the loss that was stepped for: the losses stand in the order
    of their steps, so the later one belongs behind the first step.
    """
    root = change.call.roots[0].tensor if change.call.roots else None
    if root is None or change.call.site is None:
        return None
    walks, steps = site_of(record, change.call.site), site_of(record, step)
    made = next(iter(lookup(record).bindings_of[root]), None)
    if made is None or (walks.function, walks.source) != (steps.function, steps.source):
        return None
    if made.moment >= change.last.moment:
        return None
    is_early = made.function != steps.function or _follows_first_loss(record, change, made)
    return made.site if is_early else None


def _follows_first_loss(record: Record, change: SavedChange, made: Binding) -> bool:
    """The statements of its graph all stand behind the loss that was walked before the step, one of that function."""
    index, begun = lookup(record), _begun(record, made)
    walked = [
        call for call in record.backward_calls
        if made.moment < call.moment_before < change.last.moment and call.outcome == "finished" and call.roots
    ]  # fmt: skip
    firsts = (index.bindings_of[call.roots[0].tensor] for call in walked if call.roots[0].tensor is not None)
    return any(rows and rows[0].function == made.function and rows[0].moment < begun for rows in firsts)


def _begun(record: Record, made: Binding) -> int:
    """The moment of the first statement of the function that made a part of the graph of a loss, or the loss."""
    rows = [row for row in record.bindings if row.function == made.function and row.moment < made.moment]
    root = node_of(record, made.tensor)
    graph = set[int]() if root is None else set(below(record, root))
    return min((row.moment for row in rows if node_of(record, row.tensor) in graph), default=made.moment)


def _finding_early(record: Record, change: SavedChange, early: int) -> Finding:
    row = lookup(record).bindings_of[change.call.roots[0].tensor or 0][0]
    name, saver = saved_name(record, change), lookup(record).nodes[change.saved.node]
    walks, step = _handing(record, change, early, row.name), change.last.site
    edits = () if walks is None else moved(record, early, walks, after=False)
    is_whole = step is not None and row.function == site_of(record, step).function and _begun(record, row) == row.moment
    if walks is None and step is not None and is_whole:
        edits = moved(record, early, step, after=True)
    return told(
        record,
        RULE,
        early,
        (
            f"`{row.name}` is computed here, and {name} is changed before its backward call.",
            f"It needs the old weights for its gradient{_raised_at(record, change, early)}.",
            f"Compute `{row.name}` after the step, just before it is walked.",
        ),
        binding=row.name,
        moments=[row.moment],
        related=(
            (f"`{saver.type}` saved {name} here, for `{row.name}`", saver.site if saver.site != early else None),
            ("this step changes it", change.last.site),
            ("raised here", change.call.site),
        ),
        evidence=_evidence(change, row.name, saver.type),
        fixes=[Fix(title=f"Compute `{row.name}` after the step", safety="unsafe", edits=edits)] if edits else [],
        calls=[change.call.call],
        level=level_of(record, change.raised),
    )


def _handing(record: Record, change: SavedChange, early: int, name: str) -> int | None:
    """The only statement that hands the loss to the function which walks it."""
    walks = site_of(record, change.call.site or 0)
    file = names(record).get(site_of(record, early).source)
    calls = [] if file is None else file.calls.get(walks.function.rpartition(".")[2], [])
    calls = [one for one in calls if any(isinstance(part, ast.Name) and part.id == name for part in one.args)]
    if file is None or len(calls) != 1:
        return None
    return number_at(record, next((one for one in file.tree.ancestors(calls[0]) if isinstance(one, ast.stmt)), None))


def _evidence(change: SavedChange, root: str | None, saver: str) -> dict[str, Evidence]:
    return {
        "root": root,
        "tensor": change.last.tensor,
        "saved_by": saver,
        "saved_version": change.changes[0].version_before,
        "version": change.last.version_after,
        "call": change.call.call,
    }


def _finding(record: Record, change: SavedChange, site: int) -> Finding:
    root = change.call.roots[0].name if change.call.roots else None
    called = f"`{root}`" if root else "the loss"
    name = saved_name(record, change)
    by_optimizer = change.last.done_by == "optimizer"
    outer = None if change.call.site is None else statement_beside(record, site, change.last.moment, change.call.site)
    how = f"This step of `{optimizer_name(record, change.last.optimizer)}`" if by_optimizer else "This update"
    saver = lookup(record).nodes[change.saved.node]
    fix = _fix(record, change, site if outer is None else outer.site, root)
    place = site if outer is None else outer.site
    raises = _raised_at(record, change, place)
    return told(
        record,
        RULE,
        place,
        (
            f"{how} changes {name} between {called} and its backward call.",
            f"{called} was computed with the old weights, and its gradient needs them{raises}.",
            f"Compute {called} after the step, or step after its backward call.",
        ),
        binding=name.strip("`"),
        moments=[change.last.moment],
        related=(
            (f"`{saver.type}` saved {name} here, for {called}", saver.site),
            ("it is changed here", None if outer is None else site),
            ("raised here", change.call.site),
        ),
        evidence=_evidence(change, root, saver.type),
        fixes=[] if fix is None else [fix],
        calls=[change.call.call],
        level=level_of(record, change.raised),
    )


def _raised_at(record: Record, change: SavedChange, beside: int) -> str:
    return "" if change.call.site is None else f": {line_words(record, change.call.site, beside)} raises"


def _fix(record: Record, change: SavedChange, site: int, root: str | None) -> Fix | None:
    """The statement that computes the root moved behind the step, where it alone used the weights and nothing reads it.

    Only within one block, and only whole lines.
    """
    saver = lookup(record).nodes[change.saved.node].site
    if root is None or saver is None:
        return None
    made, step = statement(record, site_of(record, saver)), statement(record, site_of(record, site))
    tree = tree_of(record, site_of(record, site))
    if not isinstance(made, ast.Assign) or step is None or tree is None or ast.unparse(made.targets[0]) != root:
        return None
    alike = [body for body in blocks(tree.parents.get(step)) if step in body and made in body]
    block = alike[0] if alike else []
    between = block[block.index(made) + 1 : block.index(step) + 1] if block else []
    if not between or any(ast.unparse(part) == root for one in between for part in ast.walk(one)):
        return None
    source = site_of(record, site).source
    region = region_in(record, source, made)
    moved = line_after(record, site_of(record, site), step, text_in(record, source, region))
    dropped = Region(start_line=region.start_line, start_col=1, end_line=region.end_line + 1, end_col=1)
    if moved is None or not _stands_alone(source_lines(record)[source], region):
        return None
    edits: tuple[Edit, ...] = (replacement(record, site_of(record, site), dropped, ""), moved)
    return Fix(title=f"Compute `{root}` after the step", safety="unsafe", edits=edits)


def _stands_alone(lines: list[str], region: Region) -> bool:
    """Nothing else stands on the lines of a region, and a line follows."""
    around = lines[region.start_line - 1][: region.start_col - 1] + lines[region.end_line - 1][region.end_col - 1 :]
    return not around.strip() and region.end_line < len(lines)
