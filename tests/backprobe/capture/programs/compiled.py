import torch
import torch._dynamo.testing

counter = torch._dynamo.testing.CompileCounter()
layer = torch.nn.Linear(3, 3)


@torch.compile(backend=counter, fullgraph=True)
def step(x):
    y = x * 2
    z = y.relu()
    if x.shape[0] > 1:
        z = z + 1
    return layer(z)


x = torch.ones(2, 3, requires_grad=True)
out = step(x)
out.sum().backward()
print(counter.frame_count, counter.op_count, x.grad.shape)
