# EXPECT: what is counted by the uid is not used up: watches, signals, pipes, keys, mounts
# OUTCOME: succeeded | exceeded | failed
# CONTROL: silent: it says what it was given, and the field looks at nothing of that
import os, ctypes, select
l = ctypes.CDLL(None, use_errno=True)
for nr,name,*a in ((253,'inotify_init'),(294,'inotify_init1',0),(300,'fanotify_init',0,0),(222,'timer_create',1,0,ctypes.create_string_buffer(8)),(240,'mq_open',b'/q',66,384,0),(29,'shmget',0,4096,0o1600),(64,'semget',0,1,0o1600),(68,'msgget',0,0o1600),(248,'add_key',b'user',b'd',b'p',1,-3),(282,'signalfd',-1,b'\0'*8,8),(213,'epoll_create',1),(319,'memfd',b'x',0),(425,'uring',1,ctypes.create_string_buffer(120)),(323,'uffd',0),(462,'mseal',0,4096,0),(463,'setxattrat'),(467,'open_tree_attr'),(468,'file_getattr'),(469,'file_setattr'),(457,'statmount'),(458,'listmount'),(453,'map_shadow_stack',0,4096,0),(450,'set_mempolicy_home_node'),(335,'uretprobe'),(336,'uprobe'),(334,'rseq',0,0,0,0),(186,'gettid'),(470,'x470')):
    r = l.syscall(nr,*a); e = ctypes.get_errno()
    print(name, r, e if r < 0 else '')
pipes=[]
try:
    while True: pipes.append(os.pipe()); os.set_blocking(pipes[-1][1],False)
except OSError as e: print('pipes', len(pipes), e.errno)
for r,w in pipes:
    try:
        while True: os.write(w, b'x'*65536)
    except OSError: pass
