# EXPECT: native code of torch that opens sockets is refused too
# OUTCOME: failed | exceeded wall
# CONTROL: breaches
import datetime, torch.distributed as d
d.TCPStore('127.0.0.1', __PORT__, is_master=False, timeout=datetime.timedelta(seconds=1))
