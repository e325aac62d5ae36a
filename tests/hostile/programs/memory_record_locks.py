# EXPECT: locks of byte ranges, which no limit counts, do not take the kernel's memory
# OUTCOME: succeeded | exceeded cpu | exceeded wall | exceeded memory
# CONTROL: breaches
import fcntl, os, struct
folder = os.path.dirname(os.__file__)
names = [name for name in sorted(os.listdir(folder)) if name.endswith('.py')][:40]
files, taken = [os.open(f'{folder}/{name}', os.O_RDONLY) for name in names], 0
try:
    for start in range(400):
        for number, file in enumerate(files):
            where = struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, start * 2, 1, 0)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK if number % 2 else fcntl.F_SETLK, where)
            taken += 1
except OSError as error:
    print(error)
print('CANARY' if taken > 2000 and os.getpid() != 1 else taken)  # as pid 1 it has a cgroup that counts them
