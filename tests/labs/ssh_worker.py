"""Worker of the tests with ssh: `ssh_worker.py WORD...` does what the words say, in their order.

place FOLDER: writes its pid into FOLDER/RANK
say: names itself on stdout and stderr
variables NAME...: writes these variables, and the words, as JSON on stdout; always the last word
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
words = sys.argv[1:]
stops = []
if 'sleep' in words:  # before a test knows that this worker runs
    signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
while words:
    word = words.pop(0)
    if word == 'place':
        place = pathlib.Path(words.pop(0)) / rank
        place.with_suffix('.new').write_text(str(os.getpid()))
        place.with_suffix('.new').rename(place)
    elif word == 'say':
        print(f'rank {rank} of {world} on {host}', flush=True)
        print(f'rank {rank} complains', file=sys.stderr, flush=True)
    elif word == 'variables':
        values = {name: os.environ.get(name) for name in words}
        print(json.dumps([os.getcwd(), sys.argv, values, sys.stdin.read()]), flush=True)
        words = []
    elif word == 'fail':
        if words.pop(0) == rank:
            sys.exit(3)
    elif word == 'lines':
        for number in range(int(words.pop(0))):
            print(f'line {number} of {rank} {"x" * 60}', flush=True)
    elif word == 'stubborn':
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(10_000)
    elif word == 'sleep':
        while not stops:
            time.sleep(0.05)
        print(f'rank {rank} saves', flush=True)
        sys.exit(75)
