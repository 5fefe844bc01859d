"""torchrun --rdzv-backend=cpprun: real torchrun agents meet at a coordinator of cpprun, by the
plug-in as the wheel brings it.
"""

import re
import signal
import sys

import pytest
from conftest import BIN, free_port
from cpprunctl import CTL
from launches import ROOT, is_alive, poll, read_bytes
from test_snapshot_adapters import has
from torch_python import PYTHON

sys.path.insert(0, str(ROOT / 'packaging' / 'wheel'))
import build_wheel

SECONDS = 300

# DDP with one parameter. $MARKS/hold keeps the steps going; rank 1 of the first attempt fails with
# the argument `crash`, and every attempt of rank 1 with `broken`.
TRAIN = r"""
import os, pathlib, sys, time
import torch
import torch.distributed as dist
dist.init_process_group('gloo')
marks = pathlib.Path(os.environ['MARKS'])
rank, world = dist.get_rank(), dist.get_world_size()
attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    model(torch.ones(1, 1) * rank).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    fails = 'broken' in sys.argv or 'crash' in sys.argv and attempt == 0
    if rank == 1 and step == 1 and fails:
        raise ValueError('bad batch')
(marks / f'running-{rank}-of-{world}').write_text(str(os.getpid()))
while (marks / 'hold').exists():
    time.sleep(0.05)
    dist.barrier()
weight = model.module.weight.item()
(marks / f'done-{rank}-of-{world}').write_text(f'{weight:.4f} {attempt}')
dist.destroy_process_group()
"""


class Torchruns:
    def __init__(self, jobs):
        self.jobs = jobs
        self.script = jobs.folder / 'train.py'
        self.script.write_text(TRAIN)
        self.site = jobs.folder / 'site'
        self.install()
        self.port = free_port()

    def install(self):
        """What pip makes of the wheel, without the programs, which are in PATH."""
        (self.site / 'cpprun').mkdir(parents=True)
        for name, content, is_program in build_wheel.records(BIN, '0'):
            if not is_program and name.startswith('cpprun/'):
                (self.site / name).write_bytes(content)
        folder, about = build_wheel.metadata('0', 'py3-none-any')
        (self.site / folder).mkdir()
        for name, content in about:
            (self.site / name).write_bytes(content)

    def serve(self):
        place = f'127.0.0.1:{self.port}'
        server = self.jobs.start(CTL, 'serve', '--listen', place, is_split=True)
        server.wait_for('serving on')

    def start(self, *args, nnodes='2', conf='connect_timeout=120', restarts=0):
        return self.jobs.start(
            PYTHON,
            '-m',
            'torch.distributed.run',
            f'--nnodes={nnodes}',
            '--nproc-per-node=1',
            '--rdzv-backend=cpprun',
            f'--rdzv-endpoint=127.0.0.1:{self.port}',
            '--rdzv-id=plugin',
            f'--rdzv-conf={conf}',
            f'--max-restarts={restarts}',
            self.script,
            *args,
            env={'PYTHONPATH': str(self.site), 'OMP_NUM_THREADS': '1', 'TMPDIR': '/tmp'},
        )

    def results(self, world):
        paths = sorted(self.jobs.marks.glob(f'done-*-of-{world}'))
        return [path.read_text().split() for path in paths]


@pytest.fixture
def torchruns(jobs):
    if not has(PYTHON, 'torch'):
        pytest.skip('not run: no torch here')
    return Torchruns(jobs)


def test_two_agents_train(torchruns):
    torchruns.serve()
    agents = [torchruns.start() for _ in range(2)]
    assert [agent.done(SECONDS) for agent in agents] == [0, 0], agents[0].output
    first, second = torchruns.results(2)
    assert first == second and first[1] == '0'


def test_a_failed_worker_is_restarted_on_both_nodes(torchruns):
    torchruns.serve()
    agents = [torchruns.start('crash', restarts=1) for _ in range(2)]
    assert [agent.done(SECONDS) for agent in agents] == [0, 0], agents[0].output + agents[1].output
    weights = [weight for weight, _ in torchruns.results(2)]
    assert len(weights) == 2 and weights[0] == weights[1]


def test_the_job_continues_without_an_agent_that_leaves(torchruns):
    torchruns.serve()
    (torchruns.jobs.marks / 'hold').touch()
    agents = [torchruns.start(nnodes='1:2', restarts=3) for _ in range(2)]
    for rank in range(2):
        torchruns.jobs.mark(f'running-{rank}-of-2', SECONDS)
    agents[1].send(signal.SIGTERM)
    assert agents[1].done(SECONDS) != 0
    torchruns.jobs.mark('running-0-of-1', SECONDS)
    (torchruns.jobs.marks / 'hold').unlink()
    assert agents[0].done(SECONDS) == 0, agents[0].output
    assert len(torchruns.results(1)) == 1


def test_a_failure_ends_the_job_on_both_nodes(torchruns):
    torchruns.serve()
    agents = [torchruns.start('broken') for _ in range(2)]
    assert [agent.done(SECONDS) for agent in agents] == [1, 1]
    assert any('ValueError: bad batch' in agent.output for agent in agents)
    assert not torchruns.results(2)


def test_an_absent_coordinator_is_named(torchruns):
    agent = torchruns.start(conf='connect_timeout=2')
    assert agent.done(SECONDS) == 1
    place = f'127.0.0.1:{torchruns.port}'
    assert re.search(f'RendezvousConnectionError: no coordinator answers at {place}', agent.output)
    assert f'hint: start one with cpprunctl serve --listen={place}' in agent.output


def test_the_client_ends_with_a_killed_torchrun(torchruns):
    torchruns.serve()
    (torchruns.jobs.marks / 'hold').touch()
    agent = torchruns.start(nnodes='1')
    torchruns.jobs.watch(int(torchruns.jobs.mark('running-0-of-1', SECONDS)))
    (client,) = [pid for pid in torchruns.jobs.alive() if is_client(pid)]
    agent.send(signal.SIGKILL)
    agent.done(SECONDS)
    poll(lambda: not is_alive(client), 20, 'the end of rendezvous-client')


def is_client(pid):
    return b'rendezvous-client' in read_bytes(f'/proc/{pid}/cmdline')
