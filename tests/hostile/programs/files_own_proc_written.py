# EXPECT: nothing of /proc and /sys is written, not even one's own: no score, no limit, no map, no knob
# OUTCOME: succeeded
# CONTROL: breaches
import os
own = 'oom_score_adj oom_adj coredump_filter clear_refs timerslack_ns loginuid setgroups uid_map gid_map comm attr/current mem autogroup sched projid_map timens_offsets'.split()
places = [f'/proc/self/{name}' for name in own] + [f'/proc/{os.getppid()}/{name}' for name in own] + [
    '/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/overcommit_memory', '/proc/sys/kernel/ns_last_pid', '/sys/kernel/mm/ksm/run',
    '/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/memory.max', '/proc/irq/default_smp_affinity', '/proc/sys/kernel/hostname', '/proc/sys/net/ipv4/ip_forward', '/dev/kmsg', '/dev/mem']
for place in places:
    try: fd = os.open(place, os.O_WRONLY)
    except OSError: continue
    print('CANARY opened for writing', place)
