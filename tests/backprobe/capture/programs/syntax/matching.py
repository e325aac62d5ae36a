import dataclasses
import torch

@dataclasses.dataclass
class P:
    x: object
    y: object

w = torch.ones(2, requires_grad=True)

def shape(v):
    match v:
        case 0 | 1 as bit:
            return "bit", bit
        case -1 | 2.5 | 1 + 2j | "text" | b"bytes" | None | True:
            return "constant"
        case torch.float32:
            return "value pattern"
        case [] | ():
            return "empty"
        case [only]:
            return "one", only
        case [first, [inner, *_], *rest] if len(rest) < 2:
            return first, inner, rest
        case [first, *middle, last]:
            return first, len(middle), last
        case {"loss": torch.Tensor() as loss, "n": int(n), **others}:
            loss.backward()
            return float(loss.detach()), n, others
        case {"a": {"b": [deep]}}:
            return deep
        case P(torch.Tensor(grad_fn=None) as leaf):
            return "leaf", leaf.requires_grad
        case P(x=0, y=y) | P(y, 0):
            return "P", y
        case str() | bytes():
            return "string"
        case object(requires_grad=True):
            return "needs grad"
        case _ if isinstance(v, set):
            return "set"
        case other:
            return "other", other

for v in (0, 1, -1, 2.5, 1 + 2j, "text", "x", None, True, torch.float32, [], [3], (1, (2, 3), 4), [1, 2, 3, 4],
          {"loss": (w * 3).sum(), "n": 3, "k": 1}, {"a": {"b": [9]}}, P(0, 5), P(6, 0), P(w, 1), {7}, 8):
    print(shape(v))
print(w.grad)
match w.grad:
    case torch.Tensor(shape=(n,)) as g:
        print(n, g)
match w, 2:
    case (a, b):
        c = a * b
print(c, [k for k in sorted(globals()) if not k.startswith("_")])
match, case = 1, 2
match = match + case
print(match)
