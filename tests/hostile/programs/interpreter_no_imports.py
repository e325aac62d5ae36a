# EXPECT: without imports and builtins nothing of ours breaks
# OUTCOME: failed | succeeded
# CONTROL: silent: it harms its own run only
import builtins, sys
sys.modules.clear(); sys.path.clear(); sys.meta_path.clear()
builtins.__import__ = None; builtins.open = builtins.print = builtins.len = builtins.isinstance = None
del builtins.Exception
