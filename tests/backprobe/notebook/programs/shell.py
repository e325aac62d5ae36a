# %%
import torch

t = torch.ones(2, requires_grad=True)
# %%
!echo from the shell
files = !printf 'a\nb\n'
list(files)
# %%
%env BACKPROBE_SHAPE=3
%pwd
# %%
where = %pwd
isinstance(where, str)
# %%
%%capture quiet
print("kept back")
# %%
quiet.stdout
# %%
t?
# %%
!exit 3
_exit_code
