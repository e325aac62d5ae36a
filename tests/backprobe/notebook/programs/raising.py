# %%
import torch

x = torch.ones(3, requires_grad=True)
# %%
x += 1
# %%
def inner(value):
    raise ValueError(f"no {value}")


def outer():
    try:
        inner(3)
    except ValueError as error:
        raise RuntimeError("wrapped") from error


outer()
# %%
y = (x * x).sum()
y.backward()
y.backward()
# %%
still = "runs"
still
# %%
def broken(:
# %%
assert x.sum() == 0, "sum"
# %%
import warnings

warnings.warn("careful", UserWarning, stacklevel=1)
# %%
raise SystemExit(0)
# %%
x.grad
