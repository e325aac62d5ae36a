"""Where a record and the truth differ: every difference is one line of text that begins with its kind."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from backprobe.record import BackwardCall, Binding, Record, Site, SmallValue, Snapshot
from backprobe.record.rows.values import nest_elements
from tests.oracle.aligned import Aligned, aligned
from tests.oracle.graphs import node_key
from tests.oracle.truth import State, Truth


class Steps:
    """Values that hold from an event on."""

    def __init__(self) -> None:
        self.at: list[int] = []
        self.values: list[Any] = []

    def add(self, event: int, value: Any) -> None:
        """A value holds from an event on; of several at one event the last."""
        if self.at and self.at[-1] == event:
            self.values[-1] = value
            return
        self.at.append(event)
        self.values.append(value)

    def then(self, event: int) -> Any:
        """The value at an event; None before the first."""
        place = bisect_right(self.at, event)
        return self.values[place - 1] if place else None


class Comparison:
    """One record beside one truth."""

    def __init__(self, record: Record, found: Truth, source: str) -> None:
        self.record, self.truth = record, found
        self.lines = source.splitlines()
        self.aligned: Aligned = aligned(record, found, source)
        self.differences: list[str] = []
        self.numbers: dict[int, int] = {}
        self.uids: dict[int, int] = {}
        self.snapshots: dict[int, Steps] = defaultdict(Steps)
        self.values: dict[tuple[int, str], Steps] = defaultdict(Steps)
        self.norms: dict[tuple[int, str], Steps] = defaultdict(Steps)
        self.bindings: dict[tuple[str, str], Steps] = defaultdict(Steps)
        self.states: dict[int, Steps] = defaultdict(Steps)
        for row in record.snapshots:
            self._index(row)
        for row in record.small_values:
            if row.of != "arrived":
                self.values[row.tensor, row.of].add(self.event(row.moment), row)
        for row in sorted(record.bindings, key=lambda row: (row.moment, row.binding)):
            self.bindings[row.function, row.name].add(self.event(row.moment), row)
        for index, event in enumerate(found.events):
            for uid, state in event.changed.items():
                self.states[uid].add(index, state)

    def _index(self, row: Snapshot) -> None:
        at = self.event(row.moment)
        self.snapshots[row.tensor].add(at, row)
        if row.value is not None:
            self.norms[row.tensor, "value"].add(at, row.value.norm)
        if row.grad_stats is not None:
            self.norms[row.tensor, "grad"].add(at, row.grad_stats.norm)

    def event(self, moment: int) -> int:
        """The event that a moment is."""
        return self.aligned.events[moment]

    def site(self, number: int | None) -> Site | None:
        """A site by its number."""
        return None if number is None else self.record.sites[number]

    def tell(self, kind: str, event: int | None, text: str) -> None:
        """Note a difference."""
        line = 0 if event is None else self.truth.events[event].line
        shown = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        self.differences.append(f"{kind}: line {line} `{shown}`: {text}")

    def same(self, uid: int, number: int, event: int, what: str) -> None:
        """A tensor of the truth is one of the record's, and no other."""
        if self.numbers.setdefault(uid, number) != number or self.uids.setdefault(number, uid) != uid:
            self.tell(
                "identity", event,
                f"{what} is torch's tensor {uid}, the record's {number}; before {self.numbers.get(uid)}, "
                f"{self.uids.get(number)}",
            )  # fmt: skip

    # ---- each kind of fact

    def whole(self) -> list[str]:
        """All differences."""
        end = self.record.end
        if end is None or end.own_errors:
            self.differences.append(f"own error: {None if end is None else end.own_error}")
        self.differences += [f"moments: {text}" for text in self.aligned.strays]
        if self.aligned.strays:
            return self.differences  # what follows would only repeat it
        self.of_names()
        self.of_parameters()
        self.of_roots()
        self.of_states()
        self.of_identities()
        self.of_deaths()
        self.of_changes()
        self.of_leaf_grads()
        self.of_calls()
        self.of_modules()
        self.of_optimizers()
        self.of_modes()
        self.of_retention()
        self.of_end()
        self.of_origins()
        return self.differences

    def of_names(self) -> None:
        """Names: which tensor each holds, bound on which line."""
        for index, event in enumerate(self.truth.events):
            for key, uid in event.names.items():
                row: Binding | None = self.bindings[key].then(index) if key in self.bindings else None
                if row is None:
                    self.tell("name", index, f"{key} holds a tensor, which the record does not know")
                    continue
                self.same(uid, row.tensor, index, str(key))
                if key in event.bound:
                    site = self.site(row.site)
                    if self.event(row.moment) != index and event.kind not in (
                        "return",
                        "before",
                        "left",
                        "step",
                        "match",
                    ):
                        if event.function != "<module>" and key[0] != event.function:
                            continue
                        self.tell(
                            "name line", index, f"{key} was bound here; the record says line {site and site.line}"
                        )

    def of_parameters(self) -> None:
        """The parameters and buffers of `net`, by their fqn."""
        rows = {row.fqn: row.tensor for row in self.record.tensors if row.fqn is not None}
        for name, uids in self.truth.parameters.items():
            if len(uids) != 1 or next(iter(uids)) in self.numbers:
                continue  # a shared one goes by its first name
            if name not in rows:
                self.tell("parameter", None, f"{name} is not in the record")
            else:
                self.same(next(iter(uids)), rows[name], 0, name)

    def of_roots(self) -> None:
        """The tensors that backward calls began at, which often have no name."""
        rows = [row for row in self.record.backward_calls if _is_engines(row)]
        for row, call in zip(rows, self.truth.calls, strict=False):
            for root, uid in zip(row.roots, call.roots, strict=False):
                if root.tensor is not None:
                    self.same(uid, root.tensor, self.event(row.moment_before), "a root")

    def of_states(self) -> None:
        """Flags, versions, gradients, nodes, elements, norms, at every event of a tensor's life."""
        for uid, number in list(self.numbers.items()):
            first = self.truth.tensors[uid].named
            start = self.truth.tensors[uid].first if first is None else first
            end = min(self.truth.unreadable.get(uid, 1 << 60), self._death(uid))
            truth, seen = self.states[uid], self.snapshots[number]
            points = {start, *truth.at, *seen.at, *self.values[number, "value"].at}
            for event in sorted(point for point in points if start <= point < end):
                state, snapshot = truth.then(event), seen.then(event)
                if state is None:
                    continue
                if self.truth.events[event].kind == "step":
                    continue
                if snapshot is None:
                    self.tell("state", event, f"tensor {number} has no state here")
                    continue
                before = len(self.differences)
                self._state(event, number, state, snapshot)
                if len(self.differences) > before:
                    break

    def _death(self, uid: int) -> int:
        return next((i for i, event in enumerate(self.truth.events) if uid in event.dead), 1 << 60)

    def _state(self, event: int, number: int, state: State, row: Snapshot) -> None:
        wanted = (state.is_leaf, state.requires_grad, state.retains_grad, state.version, state.grad, state.grad_version)
        got = (row.is_leaf, row.requires_grad, row.retains_grad, row.version, row.grad, row.grad_version)
        if wanted != got:
            self.tell("state", event, f"tensor {number}: torch {wanted}, record {got}")
        if row.grad_fn_read and row.grad_fn != state.grad_fn and self.record.header.tier != "state":
            self.tell("grad_fn", event, f"tensor {number}: torch {state.grad_fn}, record {row.grad_fn}")
        if state.grad_of is not None and row.grad_id is not None:
            self.same(state.grad_of, row.grad_id, event, f"gradient of {number}")
        if self.record.header.tier != "full":
            return
        self._elements(event, number, "value", state.value, state.norm)
        if state.grad == "present":
            self._elements(event, number, "grad", state.grad_value, state.grad_norm)

    def _elements(self, event: int, number: int, of: str, wanted: str, norm: float | None) -> None:
        row: SmallValue | None = self.values[number, of].then(event)
        got = "" if row is None else repr(nest_elements(row))
        if wanted != got:
            self.tell("elements", event, f"{of} of tensor {number}: torch {wanted}, record {got}")
        seen = self.norms[number, of].then(event)
        if norm is not None and seen is not None and not _close(norm, seen):
            self.tell("norm", event, f"{of} of tensor {number}: torch {norm}, record {seen}")
        if norm is not None and seen is None:
            self.tell("norm", event, f"{of} of tensor {number}: torch {norm}, record none")

    def of_identities(self) -> None:
        """Shapes, dtypes, bases, shared memory."""
        storages: dict[int, set[int | None]] = defaultdict(set)
        for uid, number in list(self.numbers.items()):
            facts, row = self.truth.tensors[uid], self.record.tensors[number]
            if (facts.base is None) != (row.view_of is None) and not self._refreshed():
                self.tell("base", facts.first, f"tensor {number}: torch base {facts.base}, record {row.view_of}")
            if facts.base is not None and row.view_of is not None and not self._refreshed():
                self.same(facts.base, row.view_of, facts.first, f"base of {number}")
            if uid in self.truth.storages:
                storages[self.truth.storages[uid]].add(row.storage)
        for shared in storages.values():
            if len(shared) > 1:
                self.tell("storage", None, f"one storage has the numbers {shared}")
        if len(storages) != len({number for shared in storages.values() for number in shared}):
            self.tell("storage", None, "several storages have one number")

    def _refreshed(self) -> bool:
        """`.data =`, `set_` gives a tensor other memory somewhere: its row is that of the new one."""
        return any(".data =" in line or ".set_(" in line or "swap_" in line or "_to" in line for line in self.lines)

    def of_deaths(self) -> None:
        """When each tensor was gone."""
        dead = {uid: index for index, event in enumerate(self.truth.events) for uid in event.dead}
        for uid, number in list(self.numbers.items()):
            died = self.record.tensors[number].died
            wanted, got = dead.get(uid), None if died is None else self.event(died)
            if wanted != got:
                at = None if got is None else self.truth.events[got].line
                self.tell("death", wanted, f"tensor {number}: torch event {wanted}, record event {got}, line {at}")

    def of_changes(self) -> None:
        """In-place changes: tensor, line, versions, whose they were."""
        wanted, loose = Counter[tuple[int, int, int, int, str]](), Counter[tuple[int, int, int, int, str]]()
        reads = self.record.header.tier == "full"
        for uid, number in list(self.numbers.items()):
            facts, steps = self.truth.tensors[uid], self.states[uid]
            for before, after, event in zip(steps.values, steps.values[1:], steps.at[1:], strict=False):
                if before.version == after.version and (not reads or before.value == after.value):
                    continue
                at = self.truth.events[event]
                kind = {"left": "backward", "step": "optimizer", "enter": "backward" if at.arrived else "statement"}
                row = (number, event, before.version or 0, after.version or 0, kind.get(at.kind, "statement"))
                named = facts.named
                loose[row] += 1
                if named is not None and named < event and not self._is_unreadable(uid, event):
                    wanted[row] += 1
        got = Counter(
            (row.tensor, self.event(row.moment), row.version_before, row.version_after, row.done_by)
            for row in self.record.inplace_events
            if row.tensor in self.uids
        )
        for row in wanted - got:
            self.tell("in-place", row[1], f"the record lacks tensor {row[0]} {row[2:]}")
        for row in got - loose:
            self.tell("in-place", row[1], f"the record has tensor {row[0]} {row[2:]}")
        for row in self.record.inplace_events:
            self._on_line("in-place line", self.event(row.moment), row.site)

    def _is_unreadable(self, uid: int, event: int) -> bool:
        return self.truth.unreadable.get(uid, 1 << 60) <= event

    def _on_line(self, kind: str, event: int, site: int | None) -> None:
        place, at = self.site(site), self.truth.events[event]
        line = at.caller if at.kind == "enter" else at.line  # what happened before a function began is its caller's
        line = self.truth.calls[at.k].line if at.arrived else line  # what arrived is the call's
        if line and (place is None or not place.line <= line <= place.end_line):
            self.tell(kind, event, f"the record says {None if place is None else (place.line, place.end_line)}")

    def of_leaf_grads(self) -> None:
        """What happened to `.grad` of leaves, and to the end of retained ones."""
        wanted, got = Counter[tuple[int, int, str]](), Counter[tuple[int, int, str]]()
        for uid, number in list(self.numbers.items()):
            steps, first = self.states[uid], self.truth.tensors[uid].first
            for before, after, event in zip([None, *steps.values], steps.values, steps.at, strict=False):
                at = self.truth.events[event]
                in_pass = at.kind == "left" or at.arrived
                kind = _grad_kind(before, after, in_pass=in_pass, reads=self.record.header.tier == "full")
                if kind is not None and event >= first:
                    wanted[number, event, kind] += 1
        for row in self.record.leaf_grads:
            if row.kind != "untouched" and row.tensor in self.uids:
                got[row.tensor, self.event(row.moment), row.kind] += 1
                self._on_line("leaf grad line", self.event(row.moment), row.site)
        for number, event, kind in wanted - got:
            self.tell("leaf grad", event, f"the record lacks {kind} of tensor {number}")
        for number, event, kind in got - wanted:
            self.tell("leaf grad", event, f"the record has {kind} of tensor {number}")

    def of_calls(self) -> None:
        """Backward calls: flags, roots, nodes met and freed, what was returned, how they ended."""
        rows = [row for row in self.record.backward_calls if _is_engines(row)]
        if len(rows) != len(self.truth.calls):
            self.tell("calls", None, f"torch {len(self.truth.calls)}, record {len(rows)}")
            return
        for row, call in zip(rows, self.truth.calls, strict=True):
            place, event = self.site(row.site), self.event(row.moment_before)
            wanted: dict[str, Any] = {
                "line": call.line, "retain_graph": call.retain_graph, "create_graph": call.create_graph,
                "accumulate": call.accumulate, "raised": call.raised, "returned": call.returned,
                "roots": [self.numbers.get(uid) for uid in call.roots if uid in self.numbers],
                "inputs": None if call.inputs is None else len(call.inputs),
            }  # fmt: skip
            got: dict[str, Any] = {
                "line": call.line if place is not None and place.line <= call.line <= place.end_line else place and place.line,
                "retain_graph": row.retain_graph, "create_graph": row.create_graph, "accumulate": row.accumulate_grad,
                "raised": row.outcome == "raised", "returned": row.returned,
                "roots": [root.tensor for root in row.roots if root.tensor in self.uids],
                "inputs": None if row.inputs is None else len(row.inputs),
            }  # fmt: skip
            if self.record.header.tier != "state":
                wanted |= {"nodes": Counter(call.nodes), "freed": Counter(call.freed), "met": len(call.nodes)}
                keys = self._keys(row.call)
                got |= {"nodes": keys, "freed": self._keys(row.call, freed=True), "met": row.nodes_met}
            if not call.nodes:  # the leaf's own node, which no root leads to, may be known or not
                wanted["nodes"] = got["nodes"] = None
            for field, value in wanted.items():
                if got[field] != value:
                    self.tell(f"call {field}", event, f"torch {value}, record {got[field]}")

    def _keys(self, call: int, *, freed: bool = False) -> Counter[str]:
        base = self.record.threads[0].first_seq
        numbers = {row.node for row in self.record.node_passes if row.call == call and (row.freed or not freed)}
        rows = [self.record.nodes[number] for number in numbers]
        return Counter(row.type if row.seq is None else node_key(row.type, row.seq, base) for row in rows)

    def of_origins(self) -> None:
        """What made each tensor: the name of its last node; the user, where it is a leaf that asks for a gradient."""
        for uid, number in self.numbers.items():
            steps, row = self.states[uid], self.record.tensors[number]
            if not steps.values or uid in self.truth.unreadable or self.record.header.tier == "state":
                continue
            nodes = [state.grad_fn for state in steps.values if state.grad_fn is not None]
            if nodes and (row.created_by, row.created_how) != ("op", nodes[-1]):
                self.tell("origin", steps.at[-1], f"tensor {number}: torch {nodes[-1]}, record {row.created_how}")

    def of_nodes(self, traced: Truth) -> list[str]:
        """The line that made each node, and the norms of what reached it; from a run of torch's anomaly mode."""
        if self.aligned.strays or self.record.header.tier == "state":
            return self.differences
        base, keys = self.record.threads[0].first_seq, dict[int, str]()
        for row in self.record.nodes:
            if row.seq is None or row.thread != 0:
                continue
            key = keys[row.node] = node_key(row.type, row.seq, base)
            place, lines = self.site(row.site), traced.lines.get(key)
            if place is not None and lines and not any(place.line <= line <= place.end_line for line in lines):
                self.tell("node line", None, f"{key}: torch {lines}, record {place.line}")
        calls = [row.call for row in self.record.backward_calls if _is_engines(row)]
        order = {call: k for k, call in enumerate(calls)}
        for row in self.record.node_passes:
            got = None if row.grad_output is None else row.grad_output.norm
            wanted = traced.arrived.get((order.get(row.call, -1), keys.get(row.node, ""), row.output_nr))
            if got is not None and wanted is not None and not _close(wanted, got):
                self.tell("arrived", None, f"{keys[row.node]}: torch {wanted}, record {got}")
        return self.differences

    def of_modules(self) -> None:
        """Module calls: line, class, depth, modes."""
        depths: dict[int, int] = {}
        got: list[tuple[int, str, int, bool, bool]] = []
        for row in self.record.module_calls:
            depths[row.module_call] = 1 + (0 if row.parent is None else depths[row.parent])
            place = self.site(row.site)
            cls = self.record.modules[row.module].cls
            got.append((0 if place is None else place.line, cls, depths[row.module_call], row.training, row.grad_mode))
        if got != self.truth.modules:
            self.tell("modules", None, f"torch {self.truth.modules}, record {got}")

    def of_optimizers(self) -> None:
        """Steps and zero_grads: line, and how many tensors had a gradient."""
        got: list[tuple[int, str, int, int]] = []
        for row in self.record.optimizer_events:
            if row.kind in ("step", "zero_grad"):
                place = self.site(row.site)
                got.append((0 if place is None else place.line, row.kind, row.with_grad, row.without_grad))
        if got != self.truth.steps:
            self.tell("optimizer", None, f"torch {self.truth.steps}, record {got}")

    def of_modes(self) -> None:
        """Grad and inference mode at each moment."""
        for moment, event in self.aligned.matched.items():
            row, wanted = self.record.moments[moment], self.truth.events[event]
            if wanted.kind not in ("before", "left", "step", "end") and (row.grad_mode, row.inference_mode) != (
                wanted.grad_mode, wanted.inference,
            ):  # fmt: skip
                self.tell("mode", event, f"torch {wanted.grad_mode, wanted.inference}, record {row.grad_mode}")

    def of_retention(self) -> None:
        """What live roots hold at the end."""
        if self.record.header.tier == "state":
            return
        last = self.record.moments[-1].moment if self.record.moments else None  # a survey of growth looks earlier
        got = {row.root: row for row in self.record.retentions if row.call is None and row.root in self.uids}
        got = {root: row for root, row in got.items() if row.moment == last}
        wanted = {self.numbers[uid]: held for uid, held in self.truth.held.items() if uid in self.numbers}
        if set(got) != set(wanted):
            self.tell("retention", None, f"roots: torch {sorted(wanted)}, record {sorted(got)}")
        for number, (state, nodes) in wanted.items():
            row = got.get(number)
            if row is not None and (row.state in ("held", "partly-freed"), row.held_nodes) != (state == "held", nodes):
                self.tell(
                    "retention", None, f"tensor {number}: torch {state} {nodes}, record {row.state} {row.held_nodes}"
                )

    def of_end(self) -> None:
        """How the program ended."""
        end, got = self.record.end, None
        if end is not None and end.exception is not None:
            row = self.record.raised[end.exception]
            place = self.site(row.site)
            line = 0 if self.truth.raised is None else self.truth.raised[2]
            inside = place is not None and place.line <= line <= place.end_line
            got = (row.type, row.message, line if inside else place and place.line)
        if got != self.truth.raised:
            self.tell("end", None, f"torch {self.truth.raised}, record {got}")


def final_differences(record: Record, found: Truth) -> list[str]:
    """Wrong facts about the end of a program so large that its record was thinned out.

    A name whose last bindings were left out leads to a tensor that is gone, or to none: a truncation tells so, or a step
    that was not taken.
    """
    wrong, told = list[str](), bool(record.truncations) or any(row.why == "not-sampled" for row in record.steps)
    last = {(row.function, row.name): row.tensor for row in record.bindings}
    states = {uid: state for event in found.events for uid, state in event.changed.items()}
    rows = {row.tensor: row for row in record.snapshots}
    values = {row.tensor: row for row in record.small_values if row.of == "value"}
    for key, uid in found.events[-1].names.items():
        number, state = last.get(key), states[uid]
        row = None if number is None else rows.get(number)
        if number is None or row is None or record.tensors[number].died is not None:
            wrong += [] if told else [f"name: {key} is lost, and no truncation says so"]
            continue
        got = (row.is_leaf, row.requires_grad, row.retains_grad, row.version, row.grad)
        wanted = (state.is_leaf, state.requires_grad, state.retains_grad, state.version, state.grad)
        if got != wanted:
            wrong.append(f"state: {key}: torch {wanted}, record {got}")
        if row.grad_fn_read and row.grad_fn != state.grad_fn:
            wrong.append(f"grad_fn: {key}: torch {state.grad_fn}, record {row.grad_fn}")
        if number in values and repr(nest_elements(values[number])) != state.value:
            wrong.append(f"elements: {key}: torch {state.value}, record {nest_elements(values[number])}")
    return wrong


def _grad_kind(before: State | None, after: State, *, in_pass: bool, reads: bool) -> str | None:
    """What a change of `.grad` is called; a tier that reads no elements sees those that raise the version."""
    had = before.grad_of if before is not None else None
    if had == after.grad_of:
        if had is None or before is None:
            return None
        if before.grad_version == after.grad_version and (not reads or before.grad_value == after.grad_value):
            return None
    followed = after.is_leaf and after.requires_grad
    if after.grad_of is None:
        return "set-none" if followed or after.retains_grad else None
    if not followed:
        return None
    if had is None:
        return "populate" if in_pass else "assigned"
    if had == after.grad_of:
        return "accumulate" if in_pass else "modified-in-place"
    return "accumulate-new-tensor" if in_pass else "assigned"


def _close(first: float, other: float) -> bool:
    if math.isnan(first) or math.isnan(other):
        return math.isnan(first) and math.isnan(other)
    return first == other or math.isclose(first, other, rel_tol=1e-6) or (max(abs(first), abs(other)) > 3.4e38)


def differences(record: Record, found: Truth, source: str, traced: Truth | None = None) -> list[str]:
    """All differences between a record and the truth of a program; `traced` is a run under anomaly mode."""
    comparison = Comparison(record, found, source)
    comparison.whole()
    return comparison.differences if traced is None else comparison.of_nodes(traced)


def kinds(found: list[str]) -> Iterator[str]:
    """The kind of each difference."""
    return (text.split(":", 1)[0] for text in found)


def _is_engines(row: BackwardCall) -> bool:
    """A call that reached the engine through Python: not one that raised before, and no transform of `torch.func`."""
    return row.moment_before != row.moment_after and row.entry != "func.grad"
