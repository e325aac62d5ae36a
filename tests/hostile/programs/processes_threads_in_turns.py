# EXPECT: threads come and go by the thousand, none stays
# OUTCOME: succeeded
# CONTROL: silent: threads are allowed, and end with their process
import threading
for _ in range(1500):
    one = threading.Thread(target=int); one.start(); one.join()
print('done')
