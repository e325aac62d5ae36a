"""What a tool says of a run without findings: how far the program came, and what was checked."""

import pytest

from backprobe.mcp_server.answers import outcome
from backprobe.mcp_server.known_runs import KeptRun
from backprobe.rules import judge
from backprobe.rules.manual_programs import programs


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import torch\n\nprint(torch.ones(2).sum())\n", "no findings: nothing that the rules look for was seen."),
        ("import no_such_module\n", "no findings, in what ran: the program did not come to its end."),
    ],
    ids=["ended", "raised"],
)
def test_no_findings_is_said_with_what_was_checked(source: str, said: str) -> None:
    record = programs().captured(source)
    assert record.end is not None
    kept = KeptRun(
        name="local-1", record=record, judgement=judge(record), ending="ended", ended_well=record.end.exit_code == 0
    )
    answer = outcome(kept)
    assert said in answer
    assert "not checked: retention (" in answer
    assert ("nothing that the rules look for" in answer) == kept.ended_well
