# EXPECT: the host is told neither by its name nor by its files
# OUTCOME: succeeded
# CONTROL: breaches
import os, sys, ctypes
print('uname', os.uname(), os.path.basename(__import__('socket').gethostname()), __import__('platform').node())
print('exe', os.readlink('/proc/self/exe') if os.path.exists('/proc/self/exe') else None, sys.executable)
print([l.split()[-1] for l in open('/proc/self/maps') if 'libtorch_cpu' in l][:1])
class I(ctypes.Structure): _fields_=[('up',ctypes.c_long),('l',ctypes.c_ulong*3),('ram',ctypes.c_ulong),('free',ctypes.c_ulong),('a',ctypes.c_ulong*4),('procs',ctypes.c_ushort)]
i=I(); ctypes.CDLL(None).sysinfo(ctypes.byref(i)); print('uptime',i.up,'loads',[x/65536 for x in i.l],'ram',i.ram>>30,'procs',i.procs)
print('cgroup', open('/proc/self/cgroup').read().strip()[:200])
print('env', dict(os.environ))
for p in ('/etc/passwd','/etc/hosts','/proc/1/cmdline','/proc/loadavg','/proc/meminfo','/proc/cpuinfo','/proc/net/tcp','/proc/self/mountinfo','/sys'):
    try: print(p, (open(p).read(60) if not os.path.isdir(p) else os.listdir(p)[:3]))
    except OSError as e: print(p, type(e).__name__)
said = ctypes.create_string_buffer(390)
for call in (lambda: ctypes.CDLL(None).syscall(63, said), lambda: ctypes.CDLL(None).uname(said)):
    if call() == 0 and said.raw[65:130].rstrip(b'\0') != b'localhost': print('CANARY host name', said.raw[65:130].rstrip(b'\0'))
