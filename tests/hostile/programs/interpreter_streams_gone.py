# EXPECT: a program that takes its streams away has ended like any other
# OUTCOME: succeeded
# CONTROL: silent: it is the run's own interpreter
import sys, threading, atexit
sys.stdout = sys.stderr = sys.stdin = None
sys.__stdout__ = sys.__stderr__ = None
