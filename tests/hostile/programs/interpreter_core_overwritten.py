# EXPECT: whoever writes over the compiled core has broken its own copy
# OUTCOME: failed | succeeded | exceeded
# CONTROL: silent: pages are copied when written at every level
import ctypes, torch
l = ctypes.CDLL(None, use_errno=True)
for line in open('/proc/self/maps'):
    span, mode, *_, name = line.split()
    if '_core.' in name and 'x' in mode:
        start, end = (int(one, 16) for one in span.split('-'))
        if l.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 7) == 0: ctypes.memset(start, 0xCC, end - start)
x = torch.ones(2, requires_grad=True); (x * x).sum().backward(); print(x.grad)
