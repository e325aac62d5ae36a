# EXPECT: bytecode that was never compiled ends its own process
# OUTCOME: failed signal | failed | succeeded | exceeded
# CONTROL: silent: it harms its own process only
def f(): pass
f.__code__ = f.__code__.replace(co_code=bytes([100, 255] * 8 + [83, 0]), co_consts=()); f()
