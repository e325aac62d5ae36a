# EXPECT: nothing of the interpreter or its packages is written, moved or shadowed for the next run
# OUTCOME: succeeded
# CONTROL: silent: the interpreter is of another user there
import os, sys, torch, backprobe
folders = {os.path.dirname(os.__file__), os.path.dirname(torch.__file__), os.path.dirname(backprobe.__file__), sys.prefix, *filter(os.path.isdir, sys.path)}
for folder in folders:
    for path, flags in ((f'{folder}/sitecustomize.py', os.O_CREAT), (f'{folder}/__init__.py', 0), (f'{folder}/os.py', 0), (f'{folder}/__pycache__/os.cpython-311.pyc', 0), (f'{folder}/backprobe.pth', os.O_CREAT)):
        try: os.close(os.open(path, os.O_WRONLY | flags)); print('CANARY opened', path)
        except OSError: pass
    for call in (lambda: os.rename(folder, folder + '.old'), lambda: os.symlink('/tmp', folder + '/linked'), lambda: os.mkdir(folder + '/made')):
        try: call(); print('CANARY changed', folder)
        except OSError: pass
