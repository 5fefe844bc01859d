"""Jobs of the frameworks' programs. The packages: tools/deps.sh --frameworks-long."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/support'))
from launches import BIN, Launches, free_port, skip_unless_built  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parent / 'programs'
PYTHON = ROOT / 'build/venv-frameworks-long/bin/python'
# rpc.shutdown() reads the store after worker 0, which serves it by default, may have ended.
FLAGS = {'rpc_program.py': ['--worker-store=agent']}


class Jobs(Launches):
    def environment(self, folder, **more):
        """On one machine; the folder is that of the checkpoints."""
        names = {'FOLDER': str(folder), 'OMP_NUM_THREADS': '1', 'TMPDIR': '/tmp',
                 'GLOO_SOCKET_IFNAME': 'lo', 'TP_SOCKET_IFNAME': 'lo',
                 'PYTHONPATH': str(ROOT / 'worker_sdk/python'), 'PYTHONWARNINGS': 'ignore'}
        return {**names, **more}

    def agents(self, nodes, program, env, python=PYTHON):
        """Two ranks: on one node, or on each of two."""
        args = ['--max-restarts=1', '--log-dir=/dev/null', *FLAGS.get(program, []),
                '--no-python', python, '-u', PROGRAMS / program]
        if nodes == 1:
            return [self.start(BIN / 'cpprun', '--standalone', '--nproc-per-node=2', *args,
                               env=env)]
        meet = [f'--rdzv-endpoint=127.0.0.1:{free_port()}', '--rdzv-id=pair', '--nnodes=2',
                '--rdzv-backend=c10d', '--nproc-per-node=1', '--local-addr=127.0.0.1']
        return [self.start(BIN / 'cpprun', *meet, *args, env=env) for _ in range(2)]


@pytest.fixture
def jobs(tmp_path):
    skip_unless_built()
    if not PYTHON.exists():
        pytest.skip(f'no {PYTHON}: tools/deps.sh --frameworks-long')
    made = Jobs(tmp_path)
    yield made
    left = made.alive()
    made.close()
    assert not left, 'a process outlived its job'
