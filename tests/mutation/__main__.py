"""Break each rule in every place and see its own tests fail: `make mutate`, `make mutate RULES="BP101 missing-zero-grad"`.

usage: python -m tests.mutation [RULE...]

Exit code 1: a mutant survives, or a rule's own tests fail as it stands.
"""

import sys
import time
from collections.abc import Iterator, Sequence

from backprobe.rules import RULES
from tests.corpus.records import Records
from tests.mutation.survivors import Survival, survival


def main(names: Sequence[str]) -> int:
    """Try the mutants of the rules of these names, codes or beginnings of codes; of all by default."""
    chosen = [rule for rule in RULES if not names or _is_named(rule.RULE, names)]
    if not chosen:
        print(f"no rule is called {' or '.join(names)}", file=sys.stderr)
        return 2
    found: list[Survival] = []
    with Records() as records:
        for done, module in enumerate(chosen, 1):
            began = time.monotonic()
            found.append(survival(records, module))
            last = found[-1]
            killed = last.mutants - len(last.survivors)
            print(
                f"[{done}/{len(chosen)}] {last.code} {last.name}: {killed} of {last.mutants} mutants fail its tests, "
                f"{time.monotonic() - began:.1f} s",
                file=sys.stderr, flush=True,
            )  # fmt: skip
    print("\n".join(report(found)))
    return 1 if any(outcome.survivors or outcome.faults for outcome in found) else 0


def _is_named(rule: object, names: Sequence[str]) -> bool:
    return any(name.lower() == rule.name or rule.code.startswith(name.upper()) for name in names)


def report(found: Sequence[Survival]) -> Iterator[str]:
    """The totals, then each survivor by rule and line."""
    mutants, alive = sum(outcome.mutants for outcome in found), sum(len(outcome.survivors) for outcome in found)
    yield f"{len(found)} rules, {mutants} mutants, {mutants - alive} fail their rule's tests, {alive} survive"
    for outcome in found:
        for fault in outcome.faults:
            yield f"\n{outcome.code} {outcome.name} fails as it stands: {fault}"
        if outcome.survivors:
            yield f"\n{outcome.code} {outcome.name}: {len(outcome.survivors)} of {outcome.mutants} survive"
            yield from (f"  line {mutant.line}: {mutant.change}" for mutant in outcome.survivors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
