"""A trace is continued as W3C's recommendation has it; what is none is ignored."""

import pytest

from store.telemetry.trace import continue_span

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("version", "flags", "more", "sampled"),
    [("00", "01", "", True), ("00", "00", "", False), ("00", "03", "", True), ("01", "01", "-what-comes", True)],
)
def test_a_span_of_ours_has_the_same_trace_and_the_callers_span_as_parent(version, flags, more, sampled):
    span = continue_span(f"{version}-{TRACE}-{PARENT}-{flags}{more}")
    assert (span.trace_id, span.parent_id, span.sampled) == (TRACE, PARENT, sampled)
    assert span.span_id != PARENT
    assert span.traceparent == f"00-{TRACE}-{span.span_id}-0{int(sampled)}"
    below = continue_span(span.traceparent)
    assert (below.trace_id, below.parent_id, below.sampled) == (TRACE, span.span_id, sampled)


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01,00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\n",
    ],
)
def test_what_is_no_trace_is_ignored(sent):
    assert continue_span(sent) is None
