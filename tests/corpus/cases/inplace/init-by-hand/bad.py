#! kind=inplace-on-leaf severity=error names=weight,theta
import torch

torch.manual_seed(0)
theta = torch.zeros(4, 4, requires_grad=True)
theta += torch.eye(4)  #! here
print((theta @ torch.ones(4)).sum())
