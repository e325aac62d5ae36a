"""BP840 entropy-punished: a policy that is trained by its own draws has its entropy made smaller by the same loss.

What it finds:
    A root holds log-probabilities of chosen actions, weighted, and the entropy of the same distribution with a sign
    that makes it fall. The finding stands where the entropy is added to other terms, else where it is computed.

Why it matters:
    The entropy is there to keep the policy from choosing one action too early. With the wrong sign it makes it do so,
    and what was not tried is never learnt.

What PyTorch does:
    Nothing: a sign is the program's. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    actor = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
    for state in torch.randn(3, 8, 4):
        policy = torch.distributions.Categorical(logits=actor(state))
        action = policy.sample()
        gain = state.gather(1, action[:, None]).squeeze(1)
        entropy = policy.entropy().mean()
        loss = -(policy.log_prob(action) * gain).mean() + 0.01 * entropy  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    actor = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
    for state in torch.randn(3, 8, 4):
        policy = torch.distributions.Categorical(logits=actor(state))
        action = policy.sample()
        gain = state.gather(1, action[:, None]).squeeze(1)
        entropy = policy.entropy().mean()
        loss = -(policy.log_prob(action) * gain).mean() - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a classifier is made sure of itself, without draws
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        logs = model(x).log_softmax(1)
        loss = -(logs.exp() * logs).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A sign that changes from step to step, as that of a tuned weight does, is not judged.

Source:
    R. Williams and J. Peng: Function optimization using connectionist reinforcement learning algorithms (1991);
    observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import behind_shapes, below, op, op_of, operands, walked
from backprobe.rules.analysis.losses.gaussian_terms import signs, users
from backprobe.rules.analysis.losses.maximised import is_maximised
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.expression_places import operations_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="entropy-punished",
    code="BP840",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "backward", "stats", "optimizer", "call"),
)

LEAST: Final = 2
"""Entropies: once is no pattern."""
_LOGS: Final = frozenset({"LogSoftmax", "Sub", "Log"})
_SHARES: Final = frozenset({"Softmax", "Exp"})
_PICKS: Final = frozenset({"Gather", "Index"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that computes an entropy."""
    if is_maximised(record):
        return
    found: dict[int, list[Node]] = {}
    right: set[int] = set()
    for node, wrong in (*_discrete(record), *_continuous(record)):
        if node.site is not None and node.node in walked(record):
            seen = signs(record, node.node)
            if seen == {wrong}:
                found.setdefault(node.site, []).append(node)
            elif seen:
                right.add(node.site)
    for site, nodes in found.items():
        if len(nodes) >= LEAST and site not in right:
            yield _finding(record, site, nodes)


def _discrete(record: Record) -> Iterator[tuple[Node, int]]:
    """The products of probabilities with their own logarithms, of which some are picked for a weighted loss."""
    index = lookup(record)
    for node in nodes_like(record, lambda kind: op_of(kind) == "Mul"):
        sides = [_behind(record, one) for one in operands(record, node.node)]
        if len(sides) != 2 or None in sides:
            continue
        for logs, shares in (sides, sides[::-1]):
            kinds = op(index.nodes[logs or 0]), op(index.nodes[shares or 0])
            if kinds[0] in _LOGS and kinds[1] in _SHARES and _is_of(record, logs or 0, shares or 0):
                if _is_picked(record, logs or 0, shares or 0):
                    yield node, -1
                break


def _behind(record: Record, node: int | None) -> int | None:
    """The node behind views and a clamp, which distributions put on logarithms."""
    made = behind_shapes(record, node)
    if made is not None and op(lookup(record).nodes[made]).startswith("Clamp"):
        return behind_shapes(record, operands(record, made)[0])
    return made


def _is_of(record: Record, logs: int, shares: int) -> bool:
    """The two come from one value: the logarithm is below the exponential, or both were made from one input."""
    index = lookup(record)
    first = {one for one in operands(record, shares) if one is not None}
    second = {one for one in operands(record, logs) if one is not None}
    behind = {behind_shapes(record, one) for one in first | {shares}}
    return (
        logs in behind
        or bool(first & second)
        or (op(index.nodes[logs]) == "Log" and shares in set(below(record, logs)))
    )


def _is_picked(record: Record, *nodes: int) -> bool:
    """Elements of them are picked by index, and multiplied by an untracked weight."""
    waiting = [user for node in nodes for user in users(record).get(node, ())]
    for _turn in range(_DEEPEST):
        picked = [one for one in waiting if op(lookup(record).nodes[one]) in _PICKS]
        if picked:
            return any(_is_weighted(record, one) for one in picked)
        waiting = [user for one in waiting for user in users(record).get(one, ())]
    return False


_DEEPEST: Final = 3
"""Nodes between a distribution's logarithms and those that are picked: a logarithm, a view."""


def _is_weighted(record: Record, picked: int) -> bool:
    waiting = [picked]
    for _turn in range(2 * _DEEPEST):
        waiting = [user for one in waiting for user in users(record).get(one, ())]
        if any(op(lookup(record).nodes[one]) == "Mul" and None in operands(record, one) for one in waiting):
            return True
    return False


def _continuous(record: Record) -> Iterator[tuple[Node, int]]:
    """The logarithms of scales that `entropy()` of a distribution takes, where its log-probabilities are used too."""
    if not any(call.function.endswith("Normal.log_prob") for call in record.watched_calls):
        return
    if any(call.function.endswith(".rsample") for call in record.watched_calls):
        return
    asked = {
        site
        for site, rows in operations_at(record).items()
        if any(row.function.rpartition(".")[2] == "entropy" for row in rows)
    }
    for node in nodes_like(record, lambda kind: op_of(kind) == "Log"):
        if node.site in asked:
            yield node, 1


def _added_at(record: Record, node: int) -> int | None:
    """The statement that adds it to the other terms of the loss: the first sum or difference with another value."""
    waiting = [node]
    for _turn in range(2 * _DEEPEST):
        waiting = [user for one in waiting for user in users(record).get(one, ())]
        for one in waiting:
            if op(lookup(record).nodes[one]) in _JOINS and None not in operands(record, one):
                return lookup(record).nodes[one].site
    return None


_JOINS: Final = frozenset({"Add", "Sub", "Rsub"})


def _finding(record: Record, site: int, nodes: list[Node]) -> Finding:
    added = _added_at(record, nodes[0].node)
    at = site if added is None else added
    return told(
        record,
        RULE,
        at,
        (
            "The loss makes the entropy of the policy smaller: it enters with a plus what should enter with a minus.",
            "The policy settles on one action early, and what was not tried is never learnt.",
            "Subtract the entropy from the loss.",
        ),
        binding="entropy",
        moments=[one.first_seen for one in nodes],
        related=(("the entropy is computed here", site if at != site else None),),
        evidence={"entropies": len(nodes), "assumed": "a policy trained by its own draws is meant to keep exploring"},
    )
