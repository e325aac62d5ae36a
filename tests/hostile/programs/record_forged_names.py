# EXPECT: names that are made for terminals, pages and paths are only text in a record
# OUTCOME: succeeded | failed
# CONTROL: silent: what it writes is its own record
import torch, sys
exec(compile("w = torch.ones(3, requires_grad=True).to(torch.float64)\n(w*w).sum().backward()\nprint(w.grad)\n", "\x1b]0;pwn\x07\x1b[31m<script>alert(1)</script>../../etc/passwd", "exec"))
class X(Exception): pass
X.__name__ = X.__qualname__ = "\x1b[2J<img src=x onerror=alert(1)>"
raise X("\x1b]8;;http://evil\x07click\x1b]8;;\x07 <script>alert(1)</script> ![x](javascript:alert(1)) \u202eevil")
