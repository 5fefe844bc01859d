"""Tests that need a GPU. Without one each is skipped, with the reason.

NCCL 2.30 and newer lets several ranks share a GPU; older ones want a GPU for each rank. LD_PRELOAD
may name another libnccl.so.2 than torch's own.
"""

import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from launches import BIN, ROOT, Launches, skip_unless_built
from sdk_ranks import Ranks
from torch_python import PYTHON

PROBE = """
import ctypes, json, torch
version = ctypes.c_int()
count = torch.cuda.device_count()
if count:
    torch.cuda.init()
    ctypes.CDLL('libnccl.so.2').ncclGetVersion(ctypes.byref(version))
print(json.dumps([count, version.value]))
"""
SHARED_GPU = {'NCCL_MULTI_RANK_GPU_ENABLE': '1'}


def probe():
    """The number of GPUs, and NCCL's version: 23100 for 2.31. Zeros without torch."""
    done = subprocess.run([PYTHON, '-c', PROBE], capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout) if done.returncode == 0 else (0, 0)


GPUS, NCCL = probe()
SUPPORT = ROOT / 'tests' / 'support'


def pytest_collection_modifyitems(items):
    if GPUS == 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason='torch finds no GPU'))


def needs_nccl(n):
    """Skips a test of n ranks over NCCL where they have no GPUs, and may not share one."""
    if n > GPUS and NCCL < 23000:
        shown = f'{NCCL // 10000}.{NCCL // 100 % 100}'
        pytest.skip(f'{n} ranks over NCCL {shown} need as many GPUs; 2.30 lets them share one')


@pytest.fixture
def ranks(tmp_path, monkeypatch):
    for name, value in SHARED_GPU.items():
        monkeypatch.setenv(name, value)
    return Ranks(tmp_path)


class GpuJobs(Launches):
    """Jobs whose workers are Python programs on GPUs."""

    def train(self, *args, n=2, flags=(), **options):
        fixed = ('--standalone', f'--nproc-per-node={n}', '--max-restarts=5', '--log-dir=logs')
        env = {'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': PYTHON, **SHARED_GPU}
        return self.start(BIN / 'cpprun', *fixed, *flags, *args, env=env, **options)

    def cases(self, name, *args, n=2, flags=()):
        """A case of sdk_elastic_cases."""
        program = BIN / 'sdk_elastic_cases'
        return self.train(program, name, *args, n=n, flags=('--no-python', *flags))

    def were_forked(self):
        """Whether each start of a worker was a fork of the preload process."""
        (path,) = (self.folder / 'logs').glob('*/events.jsonl')
        events = map(json.loads, path.read_text().splitlines())
        return {event['is_forked'] for event in events if event['event'] == 'worker_started'}

    def script(self, code):
        return self.write('script.py', code)


@pytest.fixture
def jobs(tmp_path):
    skip_unless_built()
    made = GpuJobs(tmp_path)
    yield made
    made.close()
