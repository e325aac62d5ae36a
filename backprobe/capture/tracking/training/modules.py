"""Modules: what they hold, under which names, and their calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import torch

from backprobe.capture.output.text import class_name, cut, name
from backprobe.capture.torch_access.torch_internals import autograd_records, next_sequence_number, tracing_state
from backprobe.capture.tracking.tensors.identity import OwnRef
from backprobe.capture.tracking.tensors.parameter_keys import NO_ROOT, SELF, ParameterKeys, Root
from backprobe.record import Module, ModuleCall, ModuleParameter

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_MOST_HELD = 10_000
"""Parameters of one module that are listed: more would not fit a frame."""

_MOST_PARTS = 64
"""Parts of one module that are listed by name where it holds one of them more than once."""


@dataclass(slots=True)
class KnownModule:
    """A module as long as it lives; `calls` counts its calls, `is_library`: its `forward` is no code of the user's."""

    number: int
    ref: OwnRef[Any]
    row: Module
    label: str
    is_library: bool
    calls: int = 0


class Modules:
    """Meets modules and follows their calls.

    Attributes:
        on_name: Called with a module's number, a name that it was given, and the site of the statement that gave it.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self.known: dict[int, KnownModule] = {}
        self.on_name: Callable[[int, str, int], None] | None = None
        self._rows: dict[int, ModuleCall | None] = {}
        self._keys = ParameterKeys()
        self._next = self._next_call = 0

    def bind(self, module: torch.nn.Module, binding: str | None, site: int | None) -> None:
        """List a module that got a name, and what it contains."""
        if "_modules" not in vars(module):
            return  # its __init__ has not begun
        known = self._find(module)
        if known is not None and (binding is None or not _is_better(binding, known.row)):
            self._refresh(known, module)
        else:
            self.meet_tree(module, binding, site)
        if self.on_name is not None and binding is not None and site is not None:
            self._name(module, binding, site)

    def _name(self, module: torch.nn.Module, binding: str, site: int) -> None:
        """Tell the name, and those of the parts that this module holds more than once."""
        known, tell = self._find(module), self.on_name
        if known is None or tell is None:
            return
        tell(known.number, binding, site)
        parts = [(key, part) for key, part in module._modules.items() if part is not None]
        if len({id(part) for _key, part in parts}) < len(parts):
            times = Counter(id(part) for _key, part in parts)
            for key, part in parts[:_MOST_PARTS]:
                if times[id(part)] > 1 and (held := self._find(part)) is not None:
                    tell(held.number, f"{binding}.{key}", site)

    def meet_tree(self, module: torch.nn.Module, binding: str | None, site: int | None) -> None:
        """List a root module and all that it contains."""
        parts = list(module.named_modules())
        known = self._find(module)
        inner = (found.number for path, part in parts if path and (found := self._find(part)) is not None)
        function = "" if site is None else self._recorder.sites.facts[site].scope.function
        root = self._keys.root(self._next if known is None else known.number, binding, function, inner)
        for path, part in parts:
            self._meet(part, binding if not path else None, path, root, site)

    def enter(self, module: torch.nn.Module) -> None:
        """Note that a module's call begins."""
        recorder = self._recorder
        timeline = recorder.timeline()
        if tracing_state() is not None:
            self._push(timeline, None)
            return
        if self._find(module) is None:
            self.meet_called(module, bool(timeline.modules))
        known = self.known[id(module)]
        timeline.module_begins(is_library=known.is_library)
        k, known.calls = known.calls, known.calls + 1
        if not recorder.sampler.keeps_call(known.calls):
            recorder.writer.cut("module calls", "more calls than are kept of one module, or in one step")
            self._push(timeline, None)
            return
        timeline.close(recorder.calling_site())
        parent = next((self._rows[n] for n in reversed(timeline.modules) if self._rows.get(n)), None)
        row = ModuleCall(
            module_call=self._next_call,
            module=known.number,
            k=k,
            chain=cut(f"{parent.chain}.{known.label}#{k}" if parent is not None else f"{known.label}#{k}"),
            parent=None if parent is None else parent.module_call,
            site=recorder.calling_site(),
            lo=next_sequence_number(),
            thread=timeline.thread,
            training=bool(module.training),
            grad_mode=autograd_records(),
            recompute=bool(timeline.calls),
        )
        recorder.writer.add("module_calls", row)
        self._push(timeline, row)

    def meet_called(self, module: torch.nn.Module, is_inside: bool) -> None:
        """List a module that is called without having been met; one of no other call with all that it contains."""
        if is_inside:
            self._meet(module, None, None, NO_ROOT, None)
        else:
            self.meet_tree(module, None, None)

    def leave(self) -> None:
        """Note that the innermost call ends."""
        recorder = self._recorder
        timeline = recorder.timeline()
        if not timeline.modules:
            return
        timeline.modules_ran = True
        number = timeline.modules[-1]
        row = self._rows.pop(number, None)
        if row is not None:
            timeline.close(row.site)
        timeline.modules.pop()
        if timeline.modules and timeline.modules[-1] == number:
            self._rows[number] = row  # a call that was not recorded stood inside it
            return
        if row is not None:
            recorder.writer.add("module_calls", msgspec.structs.replace(row, hi=next_sequence_number()))

    def take_result(self, module: torch.nn.Module, value: Any) -> None:
        """Take what a call returned: a value without a name of the user's."""
        recorder = self._recorder
        timeline = recorder.timeline()
        if type(value) is torch.Tensor and timeline.modules and recorder.is_small:
            row = self._rows.get(timeline.modules[-1])
            if row is not None:
                timeline.close(row.site)
                if not recorder.statements.passes_over(value, row.k + 1):
                    recorder.see(value, row.site, class_name(module))

    def held_numbers(self) -> frozenset[int]:
        """Return the tensors that living modules hold as parameters now."""
        found: set[int] = set()
        for known in self.known.values():
            module = known.ref()
            if module is not None:
                refs = (self._recorder.tensors.ids.find(t) for t in module._parameters.values() if t is not None)
                found.update(ref.number for ref in refs if ref is not None)
        return frozenset(found)

    def list_parameters(self) -> list[torch.Tensor]:
        """List the parameters of the modules that live, each once."""
        found: dict[int, torch.Tensor] = {}
        for known in self.known.values():
            module = known.ref()
            for tensor in () if module is None else module._parameters.values():
                if tensor is not None:
                    found[id(tensor)] = tensor
        return list(found.values())

    def alive(self) -> list[torch.nn.Module]:
        """List the modules that live."""
        return [module for known in self.known.values() if (module := known.ref()) is not None]

    def rest(self) -> None:
        """Stop following calls: those that are open end here."""
        number = next_sequence_number()
        for row in [row for row in self._rows.values() if row is not None]:
            self._recorder.writer.add("module_calls", msgspec.structs.replace(row, hi=number))
        self._rows.clear()
        self._recorder.timeline().modules.clear()

    def resume(self, open_calls: int) -> None:
        """Follow calls again, inside so many that were not seen to begin."""
        timeline = self._recorder.timeline()
        timeline.modules.clear()
        for _ in range(open_calls):
            self._push(timeline, None)

    def number_of(self, module: torch.nn.Module) -> int | None:
        """Return the number of a module that was met; None for another."""
        known = self._find(module)
        return None if known is None else known.number

    @property
    def any(self) -> bool:
        """A module was met."""
        return bool(self.known)

    def refresh_all(self) -> None:
        """List again what the known modules hold, where it changed."""
        for known in list(self.known.values()):
            module = known.ref()
            if module is not None:
                self._refresh(known, module)

    def close(self) -> None:
        """Forget everything."""
        self.known.clear()
        self._rows.clear()
        self._keys.close()

    def _push(self, timeline: Any, row: ModuleCall | None) -> None:
        if row is None:
            timeline.modules.append(timeline.modules[-1] if timeline.modules else None)
            return
        timeline.modules.append(row.module_call)
        self._rows[row.module_call] = row
        self._next_call += 1

    def _find(self, module: torch.nn.Module) -> KnownModule | None:
        known = self.known.get(id(module))
        return known if known is not None and known.ref() is module else None

    def _meet(
        self, module: torch.nn.Module, binding: str | None, path: str | None, root: Root, site: int | None
    ) -> None:
        known = self._find(module)
        number = self._next if known is None else known.number
        self._next += known is None
        prefix = ".".join(part for part in (root.name, path) if part)
        is_users = self._recorder.sites.is_user_file
        is_library = not is_users(_file_of(vars(base).get("forward") for base in type(module).__mro__))
        row = Module(
            module=number,
            cls=class_name(module),
            binding=None if binding is None else name(binding),
            fqn=None if path is None else name(path),
            site=site if known is None or known.row.site is None else known.row.site,
            user_code=is_users(_file_of(vars(type(module)).values())),
            training=bool(module.training),
            parameters=self._list_module_tensors(module._parameters, "parameter", site, prefix, root),
            buffers=self._list_module_tensors(module._buffers, "buffer", site, prefix, root),
        )
        calls, label = 0 if known is None else known.calls, row.fqn or row.binding or row.cls
        self._recorder.writer.add("modules", row)
        self.known[id(module)] = KnownModule(number, OwnRef(module), row, label, is_library, calls)

    def _refresh(self, known: KnownModule, module: torch.nn.Module) -> None:
        """Write a module's row again if it holds other tensors now."""
        parameters = self._list_module_tensors(module._parameters, "parameter", None)
        buffers = self._list_module_tensors(module._buffers, "buffer", None)
        row = msgspec.structs.replace(known.row, parameters=parameters, buffers=buffers, training=bool(module.training))
        if row != known.row:
            known.row = row
            self._recorder.writer.add("modules", row)

    def _list_module_tensors(
        self,
        tensors: Any,
        role: Literal["parameter", "buffer"],
        site: int | None,
        prefix: str | None = None,
        root: Root = NO_ROOT,
    ) -> tuple[ModuleParameter, ...]:
        found: list[ModuleParameter] = []
        for label, tensor in list(tensors.items())[:_MOST_HELD]:
            known = self._recorder.see(tensor, site) if isinstance(tensor, torch.Tensor) else None
            if known is not None and prefix is not None and self._keys.takes(known.number, known.row.fqn, root):
                fqn = name(f"{prefix}.{label}" if prefix else label)
                self._recorder.tensors.update(known, role=role, fqn=fqn)
            number = None if known is None else known.number
            wants = isinstance(tensor, torch.Tensor) and tensor.requires_grad
            found.append(ModuleParameter(name=name(label), tensor=number, requires_grad=bool(wants)))
        return tuple(found)


def _is_better(binding: str, row: Module) -> bool:
    """Return whether a name replaces the first: a name outside any object says more than `self.part`."""
    is_nameless = row.binding is None and not row.fqn
    return is_nameless or ((row.binding or "").startswith(SELF) and not binding.startswith(SELF))


def _file_of(functions: Iterable[Any]) -> str:
    """Return the file of the first function that is written in Python; "" if none is."""
    for value in functions:
        code = getattr(value, "__code__", None)
        if code is not None:
            return str(code.co_filename)
    return ""
