# %%
import sys

import torch
from IPython.display import HTML, Markdown, clear_output, display

t = torch.arange(3.0, requires_grad=True)
display(HTML("<b>bold</b>"), Markdown("*text*"))
# %%
print("to stderr", file=sys.stderr)
display({"text/plain": "raw"}, raw=True)
t.sum()
# %%
"no output";
# %%
shown = display("first", display_id="one")
_ = 1
# %%
1 if t.requires_grad else None
# %%
None
# %%
(t * 2).sum().backward(); t.grad
# %%
class Own:
    def _repr_html_(self):
        return "<i>own</i>"

    def __repr__(self):
        return "own"


Own()
