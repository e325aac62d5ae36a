# EXPECT: nothing is told of the kernel's places, modules, messages and log of loads
# OUTCOME: succeeded
# CONTROL: breaches
for name in 'kallsyms modules kcore cmdline config.gz iomem ioports keys key-users timer_list sched_debug slabinfo pagetypeinfo vmallocinfo diskstats partitions mounts swaps locks interrupts sys/kernel/osrelease sys/kernel/random/boot_id'.split():
    try: print('CANARY' if open(f'/proc/{name}', 'rb').read(64) else '', name) if name != 'mounts' else None
    except OSError as e: print(type(e).__name__)
for name in ('/sys/kernel/notes', '/sys/class/dmi/id/product_name', '/sys/kernel/debug', '/sys/firmware', '/boot', '/var/log/syslog', '/etc/machine-id', '/etc/hostname'):
    try: print('CANARY', open(name, 'rb').read(8))
    except OSError as e: print(type(e).__name__)
