# EXPECT: no process is made: by the standard library
# OUTCOME: failed | succeeded
# CONTROL: breaches
import multiprocessing
multiprocessing.set_start_method('fork')
one = multiprocessing.Process(target=print, args=('CANARY child',), kwargs={'flush': True})
one.start(); one.join()
