# %%
import torch
from torch import nn

torch.manual_seed(2)
rnn = nn.LSTM(4, 3)
head = nn.Linear(3, 2)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.01)
# %%
def batches(count):
    for at in range(count):
        yield torch.full((5, 1, 4), 0.1 * at), torch.tensor([at % 2])


state = None
for chunk, label in batches(3):
    optimizer.zero_grad()
    if state is not None:
        state = tuple(part.detach() for part in state)
    out, state = rnn(chunk, state)
    loss = nn.functional.cross_entropy(head(out[-1]), label)
    loss.backward()
    optimizer.step()
round(loss.item(), 4)
# %%
state[0].grad_fn is not None
# %%
loss.backward()
