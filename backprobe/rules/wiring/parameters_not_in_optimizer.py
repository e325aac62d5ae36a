"""BP701 parameters-not-in-optimizer: parameters get gradients in step after step, and no optimizer holds them.

What it finds:
    Parameters of a module in training mode receive gradients, an optimizer steps, and neither it nor any other holds
    them; nothing else writes them. The finding stands at the argument that lists the optimizer's parameters; of two
    optimizers over the same parameters, at the later one's; where a filter leaves them out, at the filter; where
    conditions deal them out to several groups, at the last one, which was to take what is left.

Why it matters:
    These parameters stay at their first values for ever. The loss still falls, since the others learn around them.

What PyTorch does:
    An optimizer changes the tensors that it was given and no others. Parameters that require grad receive gradients
    whether anyone uses them or not, so nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)  # <- here
    for _ in range(3):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (decoder(encoder(x)) - x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (decoder(encoder(x)) - x).pow(2).mean().backward()
        optimizer.step()

Near miss: the rest is frozen
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    encoder.requires_grad_(False)
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (decoder(encoder(x)) - x).pow(2).mean().backward()
        optimizer.step()

Near miss: the rest is in evaluation mode
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    encoder.eval()
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (decoder(encoder(x)) - x).pow(2).mean().backward()
        optimizer.step()

Near miss: the rest was loaded
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    encoder.load_state_dict({"weight": torch.ones(2, 4), "bias": torch.zeros(2)})
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        (decoder(encoder(x)) - x).pow(2).mean().backward()
        optimizer.step()

Near miss: the rest was trained before
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    for part in (encoder, decoder):
        optimizer = torch.optim.SGD(part.parameters(), lr=0.1)
        for _ in range(3):
            x = torch.randn(8, 4)
            (decoder(encoder(x)) - x).pow(2).mean().backward()
            optimizer.step()
            encoder.zero_grad()
            decoder.zero_grad()

Near miss: the program writes the rest by hand
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        encoder.zero_grad()
        optimizer.zero_grad()
        (decoder(encoder(x)) - x).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for weight in encoder.parameters():
                weight.sub_(0.1 * weight.grad)

Near miss: the optimizer holds the network's input
    import torch
    from torch import nn

    judge = nn.Linear(4, 1)
    image = torch.zeros(2, 4, requires_grad=True)
    optimizer = torch.optim.SGD([image], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (judge(image) - 1).pow(2).mean().backward()
        optimizer.step()

Near miss: a critic that is given scores what is trained
    import torch
    from torch import nn

    actor, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
    for state in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        (-critic(torch.cat([state, actor(state).tanh()], 1)).mean()).backward()
        optimizer.step()

Near miss: nothing is trained
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    for _ in range(3):
        model.zero_grad()
        model(torch.randn(2, 4)).sum().backward()

Blind spots:
    Plain leaves that belong to no module are not judged: an input that requires grad looks the same. A run that ended
    early is judged only after three steps.

Source:
    torch.optim in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_lives import GradLife, grad_lives
from backprobe.rules.analysis.modules.critics import judged_by
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.modules.training_modes import walked_in
from backprobe.rules.analysis.optimizers.parameter_lists import optimizer_call, parameters_argument, region_that_lists
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, text_in
from backprobe.rules.analysis.training.first_values import is_given_values
from backprobe.rules.analysis.training.steps import training_step_of
from backprobe.rules.analysis.training.trained_parameters import (
    in_optimizers,
    parameters,
    required_grad,
    shared_key,
    thawed_at,
)
from backprobe.rules.framework.finding import Finding, Fix, Occurrences, Related, Subject, rule_name
from backprobe.rules.framework.locations import location
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, Optimizer, Record, Site

RULE = Rule(
    name="parameters-not-in-optimizer",
    code="BP701",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("optimizer", "module", "grad-life", "version"),
    explains=("step-without-gradient", "graph-break-no-grad"),
)

LEAST_STEPS: Final = 2
"""Steps with a gradient: once is no pattern."""

LEAST_STEPS_CUT_SHORT: Final = 3
"""The same, where the run did not end: a run cut short proves an absence only by repetition."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer that lacks parameters, with all of those."""
    stepped = {event.optimizer for event in record.optimizer_events if event.kind == "step"}
    optimizers = [optimizer for optimizer in record.optimizers if optimizer.optimizer in stepped]
    if not any(_trains_a_module(record, optimizer) for optimizer in optimizers):
        return
    lacking: dict[int, list[int]] = {}
    for tensor in sorted(parameters(record)):
        life = grad_lives(record).get(tensor)
        if life is not None and _is_left_out(record, life):
            ended = in_optimizers(record).get(tensor, ())
            at = _should_hold(record, [one for one in optimizers if one.optimizer not in ended], tensor)
            lacking.setdefault(at.optimizer, []).append(tensor)
    for optimizer in optimizers:
        missing = lacking.get(optimizer.optimizer)
        if missing and optimizer.site is not None:
            yield _finding(record, optimizer, site_of(record, optimizer.site), missing)


def _trains_a_module(record: Record, optimizer: Optimizer) -> bool:
    """It holds parameters of a module; or nothing that ever has a gradient, as of a module made for it alone."""
    steps = [row for row in record.optimizer_events if row.kind == "step" and row.optimizer == optimizer.optimizer]
    held = any(row.tensor in parameters(record) for row in optimizer.tensors)
    return held or all(row.with_grad == 0 and row.without_grad > 0 for row in steps)


def _is_left_out(record: Record, life: GradLife) -> bool:
    """A trainable parameter in training mode, with gradients in several steps, that nothing ever writes."""
    if life.tensor in in_optimizers(record) and _thawed_since(record, life):
        return True
    if is_given_values(record, life) or life.tensor in in_optimizers(record) or not required_grad(record, life.tensor):
        return False
    ended = record.end is not None and record.end.exit_code == 0
    if len(life.steps) < (LEAST_STEPS if ended else LEAST_STEPS_CUT_SHORT):
        return False
    if all(
        row.call is not None and life.tensor in judged_by(record, lookup(record).calls[row.call])
        for row in life.arrivals
    ):
        return False  # a critic that is given: only what it judges is trained
    return _is_in_training(record, life.tensor) and not _is_written_by_hand(record, life.tensor)


def _thawed_since(record: Record, life: GradLife) -> bool:
    """The optimizers that hold it stepped last before it was frozen; it was thawed, and gets gradients again.

    A phase that has ended, and a new optimizer over other layers, do not ask for that: nothing is thawed for it.
    """
    holders = set(in_optimizers(record)[life.tensor])
    steps = [row.moment for row in record.optimizer_events if row.kind == "step"]
    own = [row.moment for row in record.optimizer_events if row.kind == "step" and row.optimizer in holders]
    if not own or len(steps) == len(own):
        return False
    history = lookup(record).snapshots_of[life.tensor]
    off = next((row.moment for row in history if row.moment > own[-1] and not row.requires_grad), None)
    on = next((row.moment for row in history if off is not None and row.moment > off and row.requires_grad), None)
    late = {row.call for row in life.arrivals if on is not None and row.moment > on}
    return len(late) >= LEAST_STEPS_CUT_SHORT and any(on is not None and step > on for step in steps)


def _is_in_training(record: Record, tensor: int) -> bool:
    """The module that owns the parameter ran in training mode when a backward call went through it last.

    Calls behind that one evaluate what was trained: nearly every script ends with some.
    """
    owner = _owners(record).get(tensor)
    if owner is None:
        return True  # an `nn.Parameter` of its own has no mode
    calls = calls_of_modules(record).get(owner.module, [])
    walked = [call for call in calls if call.module_call in walked_in(record)]
    last = (walked or [call for call in calls if call.grad_mode] or calls or [None])[-1]
    return owner.training if last is None else last.training


@table
def _owners(record: Record) -> dict[int, Module]:
    return {row.tensor: module for module in record.modules for row in module.parameters if row.tensor is not None}


def _is_written_by_hand(record: Record, tensor: int) -> bool:
    """Its gradient is read in a statement that writes through `.data`, which raises no version."""
    for read in record.grad_reads:
        if read.tensor == tensor:
            node = statement(record, site_of(record, read.site))
            if any(isinstance(part, ast.Attribute) and part.attr == "data" for part in ast.walk(node or ast.Pass())):
                return True
    return False


def _should_hold(record: Record, optimizers: list[Optimizer], tensor: int) -> Optimizer:
    """The optimizer whose list lacks this parameter.

    Of two over the same parameters the later one; else the one that holds most of its module's other parameters; else
    the one that steps most often next after a gradient arrived; else the last.
    """
    sets = [frozenset(row.tensor for row in optimizer.tensors) for optimizer in optimizers]
    twins = [optimizers[at] for at, held in enumerate(sets) if held in sets[:at]]
    if twins:
        return twins[-1]
    key = parameters(record)[tensor]
    near = [max((_shared(key, parameters(record).get(one, "")) for one in held), default=0) for held in sets]
    steps = _steps_after(record, tensor)
    return max(enumerate(optimizers), key=lambda pair: (near[pair[0]], steps[pair[1].optimizer], pair[1].optimizer))[1]


def _shared(one: str, other: str) -> int:
    """Leading parts that two keys share: 2 for `lm.blocks.0` and `lm.blocks.1`."""
    same = shared_key((one, other))
    return same.count(".") + 1 if same else 0


def _steps_after(record: Record, tensor: int) -> Counter[int]:
    """How often each optimizer was the next to step after a gradient arrived at this tensor."""
    steps = [event for event in record.optimizer_events if event.kind == "step"]
    counts: Counter[int] = Counter()
    for arrival in grad_lives(record)[tensor].arrivals:
        following = next((event for event in steps if event.moment > arrival.moment), None)
        if following is not None and following.optimizer is not None:
            counts[following.optimizer] += 1
    return counts


def _whole(record: Record, missing: list[int]) -> str:
    """The shortest key under which every parameter is missing; the first one's key where they share none."""
    named = parameters(record)
    key = shared_key(named[tensor] for tensor in missing) or named[missing[0]]
    parts = key.split(".")
    for length in range(1, len(parts)):
        shorter = ".".join(parts[:length])
        if all(
            tensor in missing for tensor, name in named.items() if name == shorter or name.startswith(f"{shorter}.")
        ):
            return shorter
    return key


def _finding(record: Record, optimizer: Optimizer, site: Site, missing: list[int]) -> Finding:
    keys = [parameters(record)[tensor] for tensor in missing]
    prefix = _whole(record, missing)
    arrivals = grad_lives(record)[missing[0]].arrivals
    many = f"The {len(keys)} parameters of `{prefix}` get" if len(keys) > 1 else f"`{keys[0]}` gets"
    held = optimizer.binding or optimizer.cls
    none = "no optimizer that still steps holds" if missing[0] in in_optimizers(record) else "no optimizer holds"
    first, last = arrivals[0], arrivals[-1]
    thawed = thawed_at(record, missing[0], optimizer.moment)
    related: list[Related] = []
    call = lookup(record).calls.get(first.call) if first.call is not None else None
    if call is not None and call.site is not None:
        related.append(Related(message="gradients arrive from here", location=location(record, call.site)))
    owner = _owners(record).get(missing[0])
    made = owner.site if owner is not None else lookup(record).tensors[missing[0]].site
    if made is not None:
        related.insert(0, Related(message=f"`{prefix}` is made here", location=location(record, made)))
    region = region_that_lists(record, site) if thawed is None else None
    if thawed is not None or (region is not None and region.start_line != site.line):
        related.append(Related(message=f"`{held}` is built here", location=location(record, site.site)))
    since = "" if thawed is None else " from here on"
    return Finding(
        rule=rule_name(RULE),
        level=RULE.severity,
        confidence=RULE.confidence,
        message=f"{many} gradients in every step{since}, and {none} {'them' if len(keys) > 1 else 'it'}.\n"
        f"`{held}` was given {len(optimizer.tensors)} tensors without {'these' if len(keys) > 1 else 'this one'}: "
        f"what is not given to an optimizer never changes.\nAdd {'them' if len(keys) > 1 else 'it'}, or freeze with "
        "`requires_grad_(False)` what is not to be trained.",
        location=location(record, site.site if thawed is None else thawed, region),
        related=tuple(related),
        evidence={
            "binding": prefix,
            "parameters": keys[:16],
            "count": len(keys),
            "optimizer": held,
            "steps_with_gradient": len(grad_lives(record)[missing[0]].steps),
            "assumed": "a module in training mode is meant to be trained",
        },
        fixes=tuple(_fixes(record, optimizer, site, missing)),
        occurrences=Occurrences(
            first_step=training_step_of(record, first.moment), last_step=training_step_of(record, last.moment)
        ),
        subject=Subject(
            facts=(*(("tensor", tensor) for tensor in missing), ("optimizer", optimizer.optimizer)), moment=first.moment
        ),
    )


def _fixes(record: Record, optimizer: Optimizer, site: Site, missing: list[int]) -> Iterator[Fix]:
    """Where the argument is `m.parameters()` and the rest is all that modules of the same scope have: list them."""
    call = optimizer_call(record, site)
    argument = parameters_argument(call) if call is not None else None
    if not (isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute) and not argument.args):
        return
    roots = {parameters(record)[tensor].split(".")[0] for tensor in missing}
    every = {tensor for tensor, key in parameters(record).items() if key.split(".")[0] in roots}
    made = ((module.binding, module.site) for module in record.modules)
    bound = {name for name, at in made if at is not None and site_of(record, at).function == "<module>"}
    if argument.func.attr != "parameters" or every != set(missing) or not roots <= bound or site.function != "<module>":
        return
    if any(lookup(record).tensors[tensor].moment > optimizer.moment for tensor in missing):
        return  # they were made behind it: there is nothing yet that it could be given
    region = region_in(record, site.source, argument)
    given = text_in(record, site.source, region)
    if _has_earlier_twin(record, optimizer) and len(roots) == 1:
        edit = replacement(record, site, region, f"{min(roots)}.parameters()")
        yield Fix(title=f"Give it the parameters of `{min(roots)}`", safety="unsafe", edits=(edit,))
        return
    added = ", ".join(f"*{root}.parameters()" for root in sorted(roots))
    edit = replacement(record, site, region, f"[*{given}, {added}]")
    yield Fix(title="Give the optimizer the others too", safety="unsafe", edits=(edit,))


def _has_earlier_twin(record: Record, optimizer: Optimizer) -> bool:
    held = {row.tensor for row in optimizer.tensors}
    earlier = [other for other in record.optimizers if other.optimizer < optimizer.optimizer]
    return any({row.tensor for row in other.tensors} == held for other in earlier)
