"""When a finding was first seen, in one sentence: step, backward call, module, value; silent in a run of one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.show.amounts import count_noun
from backprobe.show.plain_text import cut, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backprobe.rules.framework.finding import Finding

_LONGEST: Final = 120
_MODULES: Final = ("module", "module_call", "layer")
"""Under which names rules tell the module that they speak of."""


def first_seen(finding: Finding, steps: int | None = None) -> str:
    """`First at step 7, in backward call 8: inf.`; "" where step 0 is all that there was.

    Args:
        finding: It tells its steps in `occurrences`, and what it saw in `evidence`.
        steps: How many the run made; None: not known.
    """
    seen, evidence = finding.occurrences, finding.evidence
    if seen.last_step == 0 and (steps or 0) <= 1:
        return ""
    parts = [f"First at step {seen.first_step:,}"]
    call = evidence.get("backward_call")
    if isinstance(call, int):
        parts.append(f"in backward call {call + 1:,}")
    module = _text(evidence, *_MODULES)
    if module:
        parts.append(f"in {module}")
    value = _text(evidence, "what", "value")
    told = ", ".join(parts) + (f": {value}" if value else "")
    if seen.count > 1:
        told += f"; {count_noun(seen.count, 'time')} until step {seen.last_step:,}"
    return f"{told}."


def _text(evidence: Mapping[str, object], *names: str) -> str:
    found = next((evidence[name] for name in names if isinstance(evidence.get(name), str | int | float)), None)
    return "" if found is None or found == "" else cut(plain(str(found)), _LONGEST)
