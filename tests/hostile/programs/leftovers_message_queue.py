# EXPECT: no queue and no semaphore of the system, which would outlive the run
# OUTCOME: succeeded
# CONTROL: breaches
import ctypes
l = ctypes.CDLL(None, use_errno=True)
queue, semaphores = l.msgget(0, 0o1666), l.semget(0, 1, 0o1666)
named = l.syscall(240, b'backprobe', 0o102, 0o600, None)
if max(queue, semaphores, named) >= 0:
    print('CANARY', l.msgctl(queue, 0, None), l.semctl(semaphores, 0, 0), l.syscall(241, b'backprobe'))
print(ctypes.get_errno())
