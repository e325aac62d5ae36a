# EXPECT: tensors whose class lies about everything harm their own record only
# OUTCOME: failed | succeeded | exceeded
# CONTROL: silent: it is the run's own record
import torch
def leave(*_): raise SystemExit(0)
lies: dict[str, object] = dict.fromkeys(('grad_fn', 'requires_grad', 'is_leaf', 'dtype', 'device'), property(lambda self: 1 / 0))
lies |= dict.fromkeys(('size', 'numel', 'dim', 'data_ptr', 'untyped_storage', 'storage_offset'), leave)
lies |= {'shape': property(lambda self: [10 ** 30] * 10 ** 5), '__len__': lambda self: 1 << 60, '__repr__': lambda self: '\x1b[2J' * 10 ** 6}
Liar = type('Liar', (torch.Tensor,), lies)
x = torch.ones(3, requires_grad=True).as_subclass(Liar)
for _ in range(50): y = torch.sin(x); setattr(y, 'name', y)
torch.Tensor.sum(torch.ones(2, requires_grad=True) * 2).backward()
