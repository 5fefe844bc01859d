"""A training for tests of cpprun_worker.elastic: DistributedDataParallel on Gloo, whose parameters
depend on every step.

    elastic_worker.py [steps=N] [sleep=SECONDS] [state=donor|memory] [fault=KIND:RANK]
                      [company=yes] [health=KIND:RANK]

fault, of the rank of the first round: hang (never returns to Python), wait (for an event that never
comes), swallow (ignores every exception), raise (in its second call), backward (SIGKILL inside of
it), save (SIGKILL while the others write a snapshot). broadcast: SIGKILL to the rank that gives its
state to the others in round 2. early: SIGKILL to that rank of round 2 before the process group is
made; again: in round 3 too.
late=R: rank R of round 2 finds rank 0's store, and connects to it when that has ended.
company: a thread, a child process and a DataLoader, which live on, and handlers of signals.
health: a health check; of that rank: fail, false or hang.
wraps=round: round.data_parallel() makes the model that resumes from memory.
With device=cuda the model is on the GPU, over the backend=nccl or gloo (default).
Prints "[rank R] call N of process PID", "[rank R] from STEP", steps of rank 0, "[rank R] rollbacks
N" and "[rank R] parameters HASH".
"""

import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from hashes import hash_of
from worker_end import end_worker
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker
from cpprun_worker import _job_history

WORDS = dict(word.split('=', 1) for word in sys.argv[1:])
STEPS = int(WORDS.get('steps', 30))
FAULT, _, FAULTY = WORDS.get('fault', '').partition(':')
STORE_FOUND = pathlib.Path('store-found')
IS_FAULTY = FAULTY == os.environ['RANK'] and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'

DEVICE = WORDS.get('device', 'cpu')

torch.manual_seed(0)
MODEL = nn.Sequential(nn.Linear(20, 60), nn.Tanh(), nn.Linear(60, 7)).to(DEVICE)
OPTIMIZER = torch.optim.AdamW(MODEL.parameters(), 1e-2)


def report(text):
    print(f'[rank {os.environ["RANK"]}] {text}', flush=True)


def batch(step, rank):
    """The data of a step, whatever process takes it."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(8, 20, generator=generator).to(DEVICE)


def hang():
    """Inside C code that keeps Python's interpreter lock: no thread of this process runs on."""
    ctypes.PyDLL(None).sleep(3600)


def die_at(step, kind):
    if IS_FAULTY and FAULT == kind and step == 10:
        os.kill(os.getpid(), signal.SIGKILL)


def backward(loss, step):
    """The gradient of the first parameter comes last."""
    hook = next(MODEL.parameters()).register_hook(lambda _: die_at(step, 'backward'))
    loss.backward()
    hook.remove()


def die_as_donor(round):
    """When this rank is about to send its state."""
    send = dist.broadcast_object_list

    def broadcast(*args, **options):
        if options.get('src') == round.rank:
            report('dies as the donor')
            os.kill(os.getpid(), signal.SIGKILL)
        return send(*args, **options)

    dist.broadcast_object_list = broadcast


def die_early(round):
    """Before the other ranks have met this one."""
    rounds = {'early': (2,), 'again': (2, 3)}.get(FAULT, ())
    if round.number in rounds and str(round.rank) == FAULTY:
        while 'late' in WORDS and not STORE_FOUND.exists():
            time.sleep(0.02)
        report(f'dies in round {round.number}')
        os.kill(os.getpid(), signal.SIGKILL)


def connect_late(round):
    """torch's constructor of the store tries again and again then."""
    wait = round._wait_for_store

    def wait_longer(*args):
        wait(*args)
        STORE_FOUND.touch()
        address = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])
        while True:
            try:
                socket.create_connection(address).close()
            except OSError:
                return
            time.sleep(0.02)

    if round.number == 2 and str(round.rank) == WORDS.get('late'):
        round._wait_for_store = wait_longer


def bring_company():
    """What a program may have beside its training function."""
    signal.signal(signal.SIGTERM, lambda *_: report('handles SIGTERM'))
    signal.signal(signal.SIGUSR1, lambda *_: report('handles SIGUSR1'))
    code = 'import time\nwhile True: print("line of the child", flush=True); time.sleep(0.05)'
    subprocess.Popen([sys.executable, '-c', code])

    def print_lines():
        while True:
            report('line of the thread')
            time.sleep(0.05)

    threading.Thread(target=print_lines, daemon=True).start()
    # No tensors: they travel by sockets in TMPDIR, whose path may be too long in a test.
    options = {'num_workers': 1, 'persistent_workers': True, 'collate_fn': list}
    return iter(torch.utils.data.DataLoader(range(1_000_000), **options))


COMPANY = bring_company() if 'company' in WORDS else None
UNHEALTHY, _, PATIENT = WORDS.get('health', '').partition(':')


def check_health():
    report('checks its health')
    if PATIENT != os.environ['RANK']:
        return None
    if UNHEALTHY == 'fail':
        raise OSError('the device does not answer')
    if UNHEALTHY == 'hang':
        threading.Event().wait()
    return False


def run_steps(round, model, step, snapshot):
    while step < STEPS:
        if IS_FAULTY and FAULT == 'hang' and step == 10:
            report('hangs')
            hang()
        if IS_FAULTY and FAULT == 'wait' and step == 10:
            report('waits')
            threading.Event().wait()
        if COMPANY is not None:
            next(COMPANY)
        OPTIMIZER.zero_grad()
        backward(model(batch(step, round.rank)).pow(2).mean(), step)
        OPTIMIZER.step()
        step += 1
        round.commit(step)
        if round.rank == 0:
            report(f'step {step} of round {round.number}')
        if snapshot is not None:
            snapshot.maybe_save(step, every=5)
            die_at(step, 'save')
        time.sleep(float(WORDS.get('sleep', 0)))
    if snapshot is not None:
        snapshot.wait()


@cpprun_worker.elastic(
    min_world=2, health_check=check_health if UNHEALTHY else None, health_check_timeout=2
)
def train(round):
    report(f'call of process {os.getpid()} in round {round.number}')
    if IS_FAULTY and FAULT == 'raise' and not round.is_first:
        raise ValueError('the second call fails')
    if FAULT == 'broadcast' and round.number == 2:
        die_as_donor(round)
    die_early(round)
    connect_late(round)
    round.init_process_group(WORDS.get('backend', 'gloo'))
    snapshot = None
    if WORDS.get('state') == 'memory':
        wrap = round.data_parallel if WORDS.get('wraps') == 'round' else DistributedDataParallel
        model = wrap(MODEL)
        snapshot = cpprun_worker.Snapshot(model=model, optimizer=OPTIMIZER)
        step = snapshot.resume()
    else:
        step = round.share_state(model=MODEL, optimizer=OPTIMIZER)
        model = round.data_parallel(MODEL)
    report(f'from {step}')
    try:
        run_steps(round, model, step, snapshot)
    except RuntimeError:
        if IS_FAULTY and FAULT == 'swallow':
            report('swallows')
            while True:
                time.sleep(0.1)
        raise
    report(f'rollbacks {_job_history.of_process().rollbacks}')
    report(f'parameters {hash_of(MODEL.parameters())}')
    dist.destroy_process_group()


train()
end_worker()
