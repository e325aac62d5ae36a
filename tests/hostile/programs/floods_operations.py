# EXPECT: a long run of small operations is recorded within its caps
# OUTCOME: exceeded | succeeded
# CONTROL: silent: capture and the reader count at every level
import torch
x = torch.zeros(1, requires_grad=True)
for n in range(60_000): y = (x + n).sum()
y.backward()
