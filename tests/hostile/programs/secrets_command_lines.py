# EXPECT: nobody is told what else runs, with which words, in which folder
# OUTCOME: succeeded
# CONTROL: breaches
import os
for pid in (*range(1, 400), *range(__VICTIM__ - 200, __VICTIM__ + 200), os.getppid()):
    if pid in (0, os.getpid()): continue
    for name in ('cmdline', 'comm', 'stat', 'status', 'cgroup'):
        try:
            if open(f'/proc/{pid}/{name}', 'rb').read(): print('CANARY', pid, name); raise SystemExit
        except OSError: pass
    try: print('CANARY', os.readlink(f'/proc/{pid}/cwd'))
    except OSError: pass
