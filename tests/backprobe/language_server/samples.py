"""Results as a run would give them, and documents with them attached."""

from collections.abc import Callable
from typing import Any

from backprobe.language_server.documents import Document
from backprobe.language_server.runs.results import Call, Gradless, Result, Tensor
from backprobe.rules.framework.finding import Edit, Finding, Fix, Location, Region, Related, RuleName

PATH = "/w/train.py"
TEXT = """import torch
w = torch.ones(3, requires_grad=True).to(torch.float64)
v = torch.full((3,), 2.0, requires_grad=True)
loss = (w * v.detach()).sum()
loss.backward(retain_graph=True)
print(w.grad)
"""


def place(line: int, start: int, end: int, path: str = PATH) -> Location:
    region = Region(start_line=line, start_col=start, end_line=line, end_col=end)
    return Location(path=path, region=region)


def tensor(name: str, line: int, **facts: Any) -> Tensor:
    given = {"shape": (3,), "dtype": "float32", "is_leaf": True, "requires_grad": True} | facts
    return Tensor(name=name, path=PATH, line=line, **given)


NON_LEAF = Finding(
    rule=RuleName(code="BP101", name="non-leaf-grad-read", url="/rules/BP101"),
    level="warning",
    confidence="proven",
    message="`w` is not a leaf: `.to()` made it, so `w.grad` stays None.\nFlag the tensor after its last operation.",
    location=place(2, 5, 56),
    related=(Related(message="`.grad` of `w` is read here and is None", location=place(6, 7, 13)),),
    evidence={"binding": "w", "is_leaf": False},
    fixes=(
        Fix(
            title="Require grad after the move",
            safety="unsafe",
            edits=(
                Edit(path=PATH, region=place(2, 17, 37).region, text=""),
                Edit(path=PATH, region=place(2, 56, 56).region, text=".requires_grad_()"),
            ),
        ),
        Fix(title="Think", safety="manual"),
    ),
    fingerprint="backprobe/v1:01",
)
RETAINED = Finding(
    rule=RuleName(code="BP307", name="needless-retain-graph", url="/rules/BP307"),
    level="note",
    confidence="proven",
    message="The graph of `loss` is retained, and no later call walks it.",
    location=place(5, 1, 33),
    fixes=(Fix(title="Let it go", safety="safe", edits=(Edit(path=PATH, region=place(5, 15, 32).region, text=""),)),),
    fingerprint="backprobe/v1:02",
)


def result(**other: Any) -> Result:
    given: dict[str, Any] = {
        "entry": PATH,
        "texts": {PATH: TEXT},
        "findings": (NON_LEAF, RETAINED),
        "tensors": (
            tensor("w", 2, is_leaf=False, arrived="3.5", why=Gradless(verdict="not-leaf", line=2, text="not a leaf")),
            tensor("v", 3, why=Gradless(verdict="cut", line=4, text="`.detach()` at line 4 cut it off from the root")),
            tensor("loss", 4, shape=(), is_leaf=False, why=Gradless(verdict="not-leaf", line=4)),
        ),
        "calls": (Call(path=PATH, line=5, kept_bytes=1229),),
    }
    return Result(**given | other)


def attached(text: str = TEXT, ran: str = TEXT, encoding: Any = "utf-16") -> Document:
    document = Document("file:///w/train.py", text, 3, encoding)
    document.attach(ran)
    return document


def only(document: Document | None, path: str = PATH) -> Callable[[str], Document | None]:
    return lambda asked: document if asked == path else None
