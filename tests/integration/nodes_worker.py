"""A worker that records its identity and then follows commands. Standard library only.

It writes one record to $NODES_DIR and looks for commands beside it: a file `exit-<pid>`,
`exit-node-<n>`, `exit-round-<job>-<r>` or `exit-all` with an exit code, for $NODES_SECONDS (120) at
most. $NODES_STUBBORN=1: SIGTERM is ignored; $NODES_SAVES=1: it ends with code 75 then, as if a
snapshot had been saved. The record lists every worker of an older round that was still alive when
this one began.
"""

import json
import os
import signal
import sys
import time


def is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat', 'rb') as stat:
            return stat.read().rsplit(b')', 1)[1].split()[0] not in (b'Z', b'X')
    except OSError:
        return False


def older_ones(folder, job, round_number):
    """Names of records contain job, round and pid, so that no file must be opened."""
    for name in os.listdir(folder):
        parts = name.split('.')
        if parts[0] == 'w' and parts[1] == job and int(parts[2]) < round_number:
            yield int(parts[3])


def save(*_):
    time.sleep(0.3)  # time for all nodes to receive the request
    sys.exit(75)


def main():
    begun = time.monotonic()
    folder, env = os.environ['NODES_DIR'], dict(os.environ)
    job, round_number, pid = env['TORCHELASTIC_RUN_ID'], int(env['CPPRUN_ROUND']), os.getpid()
    if env.get('NODES_STUBBORN') == '1':
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if env.get('NODES_SAVES') == '1':
        signal.signal(signal.SIGTERM, save)
    overlap = [p for p in older_ones(folder, job, round_number) if is_alive(p)]
    record = {'t': begun, 'pid': pid, 'env': env, 'overlap': overlap}
    path = os.path.join(folder, f'w.{job}.{round_number}.{pid}')
    with open(os.path.join(folder, f'tmp.{pid}'), 'w', encoding='utf-8') as out:
        json.dump(record, out)
    os.rename(out.name, path)

    orders = [os.path.join(folder, f'exit-{target}') for target in
              (pid, f'node-{env["NODES_NODE"]}', f'round-{job}-{round_number}', 'all')]
    end = begun + float(env.get('NODES_SECONDS', 120))
    while time.monotonic() < end:
        for order in orders:
            if os.path.exists(order):
                with open(order, encoding='utf-8') as what:
                    sys.exit(int(what.read()))
        time.sleep(0.02)
    sys.exit(99)


main()
