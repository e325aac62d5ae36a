# EXPECT: epolls in epolls, 50 of them, do not hold the kernel
# OUTCOME: succeeded | exceeded cpu | exceeded wall | failed
# CONTROL: silent: it takes its own CPU time, which is limited at every level
import select, os, time
t=time.time(); eps=[]
try:
    for i in range(50): eps.append(select.epoll())
except OSError as e: print(e)
r,w=os.pipe()
for i,e in enumerate(eps):
    for j,f in enumerate(eps):
        if i<j:
            try: e.register(f.fileno(), select.EPOLLIN)
            except OSError as x: pass
    try: e.register(r, select.EPOLLIN)
    except OSError: pass
os.write(w,b'x')
for _ in range(2000):
    for e in eps[:3]: e.poll(0)
print('took', round(time.time()-t,2))
