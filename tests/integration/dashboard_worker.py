"""A worker without training: it reports steps by heartbeats, and ends on a command.

Commands are files in $NODES_DIR: `exit-all`, or `exit-rank-RANK-round-ROUND`, with an exit code.
The rank in $SLOW takes three times as long for a step.
"""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk/python'))
import cpprun_worker

RANK, ROUND = os.environ['RANK'], os.environ['CPPRUN_ROUND']
FOLDER = os.environ['NODES_DIR']
ORDERS = [os.path.join(FOLDER, name) for name in ('exit-all', f'exit-rank-{RANK}-round-{ROUND}')]
takes = 0.06 if os.environ.get('SLOW') == RANK else 0.02
end = time.monotonic() + 120
step = 0
while time.monotonic() < end:
    step += 1
    cpprun_worker.heartbeat(step)
    for order in ORDERS:
        if os.path.exists(order):
            print(os.environ.get('WORDS', 'the end'), file=sys.stderr)
            with open(order, encoding='utf-8') as what:
                sys.exit(int(what.read()))
    time.sleep(takes)
