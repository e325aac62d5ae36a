# EXPECT: tensors whose class lies about everything harm their own record only
# OUTCOME: failed | succeeded | exceeded
# CONTROL: silent: it is the run's own record
import torch
class Liar(torch.Tensor):
    shape = property(lambda self: [10 ** 30] * 10 ** 5)
    grad_fn = requires_grad = is_leaf = dtype = device = property(lambda self: 1 / 0)
    def __len__(self): return 1 << 60
    def __repr__(self): return '\x1b[2J' * 10 ** 6
    def size(self, *_): raise SystemExit(0)
    numel = dim = data_ptr = untyped_storage = storage_offset = size
x = torch.ones(3, requires_grad=True).as_subclass(Liar)
for _ in range(50): y = torch.sin(x); y.name = y
torch.Tensor.sum(torch.ones(2, requires_grad=True) * 2).backward()
