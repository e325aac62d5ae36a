# EXPECT: nobody is told what else runs, with which words, in which folder
# OUTCOME: succeeded
# CONTROL: breaches
import os
victim = int('__VICTIM__')
for pid in (*range(1, 400), *range(victim - 200, victim + 200), os.getppid()):
    if pid in (0, os.getpid()): continue
    for name in ('cmdline', 'comm', 'stat', 'status', 'cgroup'):
        try:
            if open(f'/proc/{pid}/{name}', 'rb').read(): print('CANARY', pid, name); raise SystemExit
        except OSError: pass
    try: print('CANARY', os.readlink(f'/proc/{pid}/cwd'))
    except OSError: pass
