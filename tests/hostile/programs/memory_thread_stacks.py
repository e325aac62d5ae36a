# EXPECT: stacks of threads count
# OUTCOME: succeeded
# CONTROL: silent: the limit on address space holds at every level
import threading, time
threading.stack_size(256 << 20); n = 0
try:
    while n < 100: threading.Thread(target=time.sleep, args=(5,), daemon=True).start(); n += 1
    print('CANARY', n)
except (RuntimeError, MemoryError) as e: print(n, type(e).__name__)
