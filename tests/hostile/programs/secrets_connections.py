# EXPECT: nobody is told what the machine is connected to, nor what listens there
# OUTCOME: succeeded
# CONTROL: breaches
import os
me = '/proc/self'
for folder in [me, '/proc', f'{me}/task/{os.getpid()}', f'/proc/{os.getppid()}']:
    for name in ('tcp', 'tcp6', 'udp', 'unix'):
        try: told = open(f'{folder}/net/{name}').read()
        except OSError as error: print(error.errno); continue
        if f':{__PORT__:04X} ' in told or '__PATH_SOCKET__' in told: print('CANARY', folder, name)
