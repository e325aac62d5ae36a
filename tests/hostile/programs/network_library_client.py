# EXPECT: a client of the standard library is refused
# OUTCOME: failed
# CONTROL: breaches
from multiprocessing.connection import Client
Client(('127.0.0.1', __PORT__))
