"""`pytest --backprobe`: each test runs under capture, and one whose training code has findings fails.

    @pytest.mark.backprobe(fail_on="error")                    # this test fails on errors only
    @pytest.mark.backprobe(ignore=["needless-retain-graph"])   # these rules are left out
    @pytest.mark.backprobe(off=True)                           # this test is not captured

1. Without `--backprobe` nothing is captured, and neither torch nor a rule is loaded: only the marker is registered.
2. The call of the test is captured, not its fixtures; functions of the project below pytest's root folder carry taps.
3. A test that fails by itself keeps its own failure; the findings stand in a section of its report.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pytest

from backprobe.checking import LEVELS, judging, message

if TYPE_CHECKING:
    import ast

    from backprobe.capture.instrument.tapped_functions import Rewriting
    from backprobe.record import Record

MARKER: Final = (
    "backprobe(fail_on='warning', ignore=(), off=False): what `pytest --backprobe` does with this test: the least "
    "level of a finding that fails it, rules that are left out, or no capture at all."
)
_PROPERTY: Final = "backprobe_findings"
_KNOWN: Final = frozenset({"fail_on", "ignore", "off"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("backprobe", "gradient debugging")
    group.addoption(
        "--backprobe", action="store_true", help="run each test under capture; findings of its training code fail it"
    )
    group.addoption(
        "--backprobe-fail-on", choices=LEVELS, default="warning", help="least level that fails (default: %(default)s)"
    )
    group.addoption(
        "--backprobe-ignore",
        metavar="RULE,...",
        default="",
        help="rules to leave out: names, codes or beginnings of codes",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; what captures only where it was asked for.

    Raises:
        pytest.UsageError: torch is not installed, or a rule that is to be ignored does not exist.
    """
    config.addinivalue_line("markers", MARKER)
    if not config.getoption("backprobe"):
        return
    if find_spec("torch") is None:
        raise pytest.UsageError("--backprobe needs PyTorch: `pip install 'backprobe[torch]'`")
    given = str(config.getoption("backprobe_ignore"))
    ignored = tuple(name.strip() for name in given.split(",") if name.strip())
    own = Policy(fail_on=config.getoption("backprobe_fail_on"), ignore=ignored)
    own.check("--backprobe-ignore")
    config.pluginmanager.register(Capturing(own), "backprobe-capturing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is done with a test."""

    fail_on: Any = "warning"
    ignore: tuple[str, ...] = ()
    off: bool = False

    def check(self, where: str) -> None:
        """Refuse what cannot be followed.

        Raises:
            pytest.UsageError: a level or a rule is unknown.
        """
        try:
            judging(self.fail_on, self.ignore)
        except ValueError as error:
            raise pytest.UsageError(f"{where}: {error}") from None

    def policy_of_test(self, item: pytest.Item) -> Policy:
        """Return the policy of a test: the nearest marker decides, and what markers ignore adds up.

        Raises:
            pytest.UsageError: a marker cannot be followed.
        """
        given: dict[str, Any] = {}
        ignored = list(self.ignore)
        for mark in item.iter_markers("backprobe"):
            _check_mark(item, mark)
            ignore = mark.kwargs.get("ignore", ())
            ignored += [ignore] if isinstance(ignore, str) else list(ignore)
            given = {**mark.kwargs, **given}
        policy = Policy(
            fail_on=given.get("fail_on", self.fail_on), ignore=tuple(ignored), off=bool(given.get("off", self.off))
        )
        if given:
            policy.check(item.nodeid)
        return policy


def _check_mark(item: pytest.Item, mark: pytest.Mark) -> None:
    odd = sorted(set(mark.kwargs) - _KNOWN)
    if odd or mark.args:
        what = f"has no argument `{odd[0]}`" if odd else "takes its arguments by name"
        raise pytest.UsageError(f"{item.nodeid}: the marker backprobe {what}; it has {', '.join(sorted(_KNOWN))}")


@dataclass(slots=True)
class Capturing:
    """The hooks that capture, registered where `--backprobe` is given."""

    own: Policy

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read the policy of each test before the first one is run.

        A worker of pytest-xdist cannot report a usage error: the test of the marker fails there instead.
        """
        for item in items:
            if not hasattr(item.config, "workerinput"):
                self.own.policy_of_test(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Run the test under capture, and judge what was seen."""
        try:
            policy = self.own.policy_of_test(item)
        except pytest.UsageError as error:
            pytest.fail(str(error), pytrace=False)
        function = getattr(item, "function", None)
        if policy.off or function is None:
            return (yield)
        from backprobe.capture import Options
        from backprobe.capture.program.block import Block
        from backprobe.capture.program.other_capture import leave_recording

        if leave_recording("pytest --backprobe") is not None:
            return (yield)
        block = Block([function], item.config.rootpath, Options(), _rewriting)
        try:
            with block:
                result = yield
        except BaseException:
            _judge_test(item, block.record, policy, "before the test failed")
            raise
        failing = _judge_test(item, block.record, policy, "below the level that fails")
        if failing is not None:
            pytest.fail(failing, pytrace=False)
        return result

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say how many tests were captured and how many had findings; reports of pytest-xdist's workers count too."""
        reports = [report for kind in terminalreporter.stats.values() for report in kind]
        counts = [
            value
            for report in reports
            for name, value in getattr(report, "user_properties", ())
            if _is_call(report, name)
        ]
        found = sum(count > 0 for count in counts)
        terminalreporter.write_line(
            f"backprobe: {len(counts)} tests captured, {found} with findings ({sum(counts)} in all)"
        )


def _is_call(report: Any, name: str) -> bool:
    return name == _PROPERTY and getattr(report, "when", None) == "call"


def _judge_test(item: pytest.Item, record: Record | None, policy: Policy, what: str) -> str | None:
    """Return the text that fails the test, or None. Findings that do not fail it get a section of its report."""
    if record is None:
        return None
    from backprobe.rules import judge

    judgement = judge(record, judging(policy.fail_on, policy.ignore))
    findings = [finding for finding in judgement.findings if finding.suppressed is None]
    item.user_properties.append((_PROPERTY, len(findings)))
    failing = judgement.at_least(policy.fail_on)
    if failing and what.startswith("below"):
        return message(f"`{item.name}`", record, failing)
    if findings:
        item.add_report_section("call", f"findings of Backprobe, {what}", message(item.name, record, findings))
    return None


def _rewriting(names: Mapping[str, Any]) -> Rewriting | None:
    """Return pytest's rewriting of a module's `assert` statements, so that tapped code explains failures too."""
    if "@pytest_ar" not in names:
        return None
    try:
        from _pytest.assertion.rewrite import rewrite_asserts
    except ImportError:  # it is no public function of pytest; without it a failed assert shows no values
        return None

    def rewrite(tree: ast.Module, source: bytes) -> None:
        rewrite_asserts(tree, source)

    return rewrite
