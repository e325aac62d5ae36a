# EXPECT: a record that its program closes is no success
# OUTCOME: failed record
# CONTROL: silent: it harms its own record only
import os, torch
os.close(3); x = torch.ones(2, requires_grad=True); (x * x).sum().backward()
