# EXPECT: the limit of CPU time is not dodged by signal handlers, by threads that exit or by a higher limit
# OUTCOME: exceeded cpu | exceeded wall
# CONTROL: silent: limits hold there too
import threading, time, signal, os, resource
signal.signal(signal.SIGXCPU, lambda *a: None)
def burn():
    t = time.thread_time()
    while time.thread_time() - t < 0.05: pass
try: resource.setrlimit(resource.RLIMIT_CPU,(1<<30,1<<30))
except BaseException as e: print(type(e).__name__)
while True:
    th = threading.Thread(target=burn); th.start(); th.join()
