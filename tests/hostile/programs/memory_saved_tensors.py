# EXPECT: a graph that keeps everything ends inside the limit
# OUTCOME: exceeded memory
# CONTROL: silent: the limit on address space holds at every level
import torch
x = torch.ones(4_000_000, requires_grad=True); kept = [x]
while True: kept.append(kept[-1] * kept[-1])
