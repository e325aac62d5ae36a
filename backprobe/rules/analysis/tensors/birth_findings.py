"""Findings about the first value that is not finite: where it was born, and how far it came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_sites import calls_by_number
from backprobe.rules.analysis.modules.training_modes import module_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import capital, receiver, together
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, text_in, value_of
from backprobe.rules.analysis.tensors.births import Birth, first_birth
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.tensors.births import Kind
    from backprobe.rules.framework.finding import Finding
    from backprobe.rules.framework.rule import Rule


_LONGEST_NAME: Final = 60
"""Characters of an expression that stands for a name."""


def births_of(record: Record, kind: Kind) -> Iterator[Birth]:
    """The first birth of the run, if it is of this kind."""
    birth = first_birth(record)
    if birth is not None and birth.kind == kind:
        yield birth


def told_birth(
    record: Record, rule: Rule, birth: Birth, first: str, advice: str, *, at: int | None = None, born: str = ""
) -> Finding:
    """A finding where the first NaN or infinity was born.

    Args:
        first: What gave it, in the user's own names; advice: what to change.
        at: The statement to change, if it is another one; born: then what is said of the statement of the birth.
    """
    at = birth.site if at is None else at
    row = site_of(record, at)
    value = value_of(statement(record, row))
    where = "" if birth.call.site is None else f" at {line_words(record, birth.call.site, at)}"
    reached = f"The backward call{where} starts from it"
    if birth.leaves:
        reached = f"After the backward call{where}, {_gradients(record, birth)}"
    roots = [root.tensor for root in birth.call.roots if root.tensor is not None]
    tensors = [*([birth.tensor] if birth.tensor is not None else []), *roots, *birth.leaves]
    return told(
        record,
        rule,
        at,
        (first, f"{capital(reached)}: every step from there on is lost.", advice),
        binding=name_of(record, birth),
        moments=[birth.moment],
        region=None if value is None else region_in(record, row.source, value),
        related=(
            (born, birth.site if at != birth.site else None),
            (f"{birth.what} comes out here", birth.seen_at),
            ("this backward call spreads it", birth.call.site if birth.call.site != birth.site else None),
            ("raised here", None if birth.noticed is None else birth.noticed.site),
        ),
        evidence={
            "what": birth.what,
            "backward_call": birth.call.call,
            "leaves": [*birth.leaves[:16]],
            "node": "" if birth.node is None else birth.node.type,
            "module_call": _module_call(record, birth),
        },
        tensors=list(dict.fromkeys(tensors)),
        calls=(birth.call.call,),
        level="warning" if birth.noticed is not None and birth.noticed.caught else None,
    )


def _gradients(record: Record, birth: Birth) -> str:
    verb = "is" if len(birth.leaves) == 1 else "are"
    noun = "the gradient" if len(birth.leaves) == 1 else "the gradients"
    return f"{noun} of {together(record, birth.leaves)} {verb} not finite"


def _module_call(record: Record, birth: Birth) -> str:
    """`call 6 of h.1`: the innermost module call in which it was born; "" outside of any."""
    place = lookup(record).moments.get(birth.moment) if birth.node is None else birth.node
    if place is None or place.module_call not in calls_by_number(record):
        return ""
    call = calls_by_number(record)[place.module_call]
    module = module_of(record, call)
    if module is None:
        return ""
    named = module.fqn or module.binding or module.cls
    has_all = all(step.sampled for step in record.steps)  # calls of steps that were not looked at are not counted
    return f"call {call.k + 1} of {named}" if has_all else named


def name_of(record: Record, birth: Birth) -> str:
    """What the statement of the birth binds, else the tensor's name, else the expression itself."""
    targets = site_of(record, birth.site).targets
    if targets:
        return targets[0]
    bound = lookup(record).bindings_of[birth.tensor] if birth.tensor is not None else []
    reads = site_of(record, birth.site).reads
    root = receiver(record, birth.site, "backward") if birth.kind == "forward" else None
    if bound or root:
        return bound[0].name if bound else root or ""
    row = site_of(record, birth.site)
    value = value_of(statement(record, row))
    text = "" if value is None else text_in(record, row.source, region_in(record, row.source, value))
    if birth.kind == "forward" and 0 < len(text) <= _LONGEST_NAME and "\n" not in text:
        return text
    return reads[0] if reads and birth.kind != "forward" else "this value"
