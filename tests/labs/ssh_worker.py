"""Worker of the tests with ssh: `ssh_worker.py COMMAND...` runs the commands, in their order.

place FOLDER: writes its pid into FOLDER/RANK
greet: names itself on stdout and stderr
variables NAME...: writes these variables, and the names, as JSON on stdout; always the last command
fail RANK: ends with 3 if that is its rank
lines N: writes N lines
stubborn: ignores SIGINT and SIGTERM
sleep: until a signal; with SIGTERM it saves and ends with 75
"""
import json
import os
import pathlib
import signal
import sys
import time

rank, world = os.environ['RANK'], os.environ['WORLD_SIZE']
host = os.uname().nodename
arguments = sys.argv[1:]
stops = []
if 'sleep' in arguments:  # before a test knows that this worker runs
    signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
while arguments:
    command = arguments.pop(0)
    if command == 'place':
        place = pathlib.Path(arguments.pop(0)) / rank
        place.with_suffix('.new').write_text(str(os.getpid()))
        place.with_suffix('.new').rename(place)
    elif command == 'greet':
        print(f'rank {rank} of {world} on {host}', flush=True)
        print(f'rank {rank} complains', file=sys.stderr, flush=True)
    elif command == 'variables':
        values = {name: os.environ.get(name) for name in arguments}
        print(json.dumps([os.getcwd(), sys.argv, values, sys.stdin.read()]), flush=True)
        arguments = []
    elif command == 'fail':
        if arguments.pop(0) == rank:
            sys.exit(3)
    elif command == 'lines':
        for number in range(int(arguments.pop(0))):
            print(f'line {number} of {rank} {"x" * 60}', flush=True)
    elif command == 'stubborn':
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(10_000)
    elif command == 'sleep':
        while not stops:
            time.sleep(0.05)
        print(f'rank {rank} saves', flush=True)
        sys.exit(75)
