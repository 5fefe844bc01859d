"""--preload with torch: what a script does after the fork works as in a spawned worker, and
docs/how-to/preload.md shows commands that work."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import BIN, EXAMPLES, ROOT
from launches import kill
from run_events import events_of_run

PAGE = (ROOT / 'docs/how-to/preload.md').read_text()


def events_of(folder):
    return events_of_run(pathlib.Path(folder))


def forked(folder):
    return [e['is_forked'] for e in events_of(folder) if e['event'] == 'worker_started']


def run(cpprun, tmp_path, preload, code, *flags, n=2, env=None):
    """Output of the script, whose workers must be forked unless `preload` is off."""
    (tmp_path / 'script.py').write_text(code)
    logs = tmp_path / f'logs-{preload}'
    args = ('--standalone', f'--nproc_per_node={n}', f'--preload={preload}', f'--log-dir={logs}')
    code, output = cpprun.run('cpprun', *args, *flags, tmp_path / 'script.py', env=env)
    assert code == 0, output
    assert forked(logs) == [preload != 'off'] * n, output
    return output


@pytest.mark.parametrize('variable', ['', 'LD_LIBRARY_PATH', 'TORCH_USE_RTLD_GLOBAL'])
def test_libraries_are_loaded_before_torch_unless_their_order_matters(cpprun, tmp_path, variable):
    output = run(cpprun, tmp_path, 'torch', """
import sys, torch
names = list(sys.modules)
print('before', names.index('sympy') < names.index('torch'), float(torch.ones(3).sum()))
""", n=1, env={variable: '/nowhere'} if variable else None)
    assert f'before {not variable} 3.0' in output


@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])
def test_data_loaders_start_their_processes(cpprun, tmp_path, method):
    output = run(cpprun, tmp_path, 'torch,torch.utils.data', f"""
import os, torch
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.tensor(float(i)), os.getppid()
if __name__ == '__main__':
    loader = DataLoader(Numbers(), batch_size=8, num_workers=2, multiprocessing_context={method!r})
    print('sum', sum(float(values.sum()) for values, _ in loader))
""")
    assert output.count('sum 2016.0') == 2


def test_processes_of_torch_multiprocessing(cpprun, tmp_path):
    output = run(cpprun, tmp_path, 'torch', """
import torch, torch.multiprocessing as mp
def work(i, queue):
    queue.put(float(torch.ones(10).share_memory_().sum()) + i)
if __name__ == '__main__':
    queue = mp.get_context('spawn').SimpleQueue()
    mp.spawn(work, args=(queue,), nprocs=2)
    print('got', sorted([queue.get(), queue.get()]))
""")
    assert output.count('got [10.0, 11.0]') == 2


THREADS = """
import os, numpy, torch
a = numpy.random.random((600, 600))
a @ a
b = torch.rand(600, 600)
(b @ b + 1).exp().sum()
print('threads', torch.get_num_threads(), torch.get_num_interop_threads(),
      len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'),
      os.environ.get('PYTORCH_NVML_BASED_CUDA_CHECK'))
"""


@pytest.mark.parametrize('flags', [(), ('--omp-threads=3',)], ids=['default', '3'])
@pytest.mark.parametrize('n', [1, 2])
def test_numbers_of_threads(cpprun, tmp_path, flags, n):
    """A worker has as many threads for its arithmetic as a spawned one."""
    seen = []
    for preload in ('off', 'numpy,torch'):
        output = run(cpprun, tmp_path, preload, THREADS, *flags, n=n)
        seen.append(sorted(re.findall('^threads .*$', output, re.M)))
    assert seen[0] == seen[1] and len(seen[0]) == n


def test_ddp_resumes_after_a_kill(cpprun, tmp_path):
    logs = tmp_path / 'logs'
    args = ('--standalone', '--nproc_per_node=2', '--max_restarts=1', '--preload=auto', '--timing')
    job = cpprun.start(
        'cpprun', *args, f'--log-dir={logs}', EXAMPLES / 'digits_ddp.py', '--epochs', 8,
        '--snapshot', tmp_path / 'digits.pt', '--sleep', 0.1,
    )
    job.wait_for('training epoch 3 of 8 done')
    kill(job.worker(1))
    assert job.done() == 0, job.output
    assert job.find('resuming from snapshot')
    assert forked(logs) == [True] * 4, job.output
    assert len(re.findall(r'^timing: 2 of 2 workers forked: each saves', job.output, re.M)) == 2
    rounds = [e for e in events_of(logs) if e['event'] == 'round_started']
    assert all(e['forked'] == 2 and e['import_saved_ms'] > 0 for e in rounds)
    assert all(e['shared_bytes'] > 50 << 20 for e in rounds), 'torch alone takes more'


def test_a_thread_of_a_library_is_named(cpprun, tmp_path):
    """numpy imported while OpenBLAS may start threads, by a module that comes first."""
    (tmp_path / 'busy.py').write_text('import os; os.environ["OPENBLAS_NUM_THREADS"] = "2"')
    (tmp_path / 'script.py').write_text('print("runs")\ndef never(): import numpy')
    code, output = cpprun.run(
        'cpprun', '--standalone', '--preload=busy,numpy', tmp_path / 'script.py',
    )
    assert code == 0 and 'runs' in output
    assert 'workers are spawned: numpy: it has started 1 thread' in output


PYTHON = os.environ.get('PRELOAD_PYTHON', sys.executable)
PACKAGES = {  # name -> whether workers can be forked after its import
    'torch': True, 'numpy': True, 'torchvision': True, 'transformers': True, 'accelerate': True,
    'lightning': True, 'datasets': True, 'pandas': True, 'sklearn': True, 'deepspeed': False,
}


def installed():
    """Those that PYTHON has: torch and numpy in the gate; PRELOAD_PYTHON names one with more."""
    find = 'import importlib.util as u, sys; print(*filter(u.find_spec, sys.argv[1:]))'
    command = [PYTHON, '-c', find, *PACKAGES]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize('package', installed())
def test_packages_are_preloaded_or_the_reason_is_printed(cpprun, tmp_path, package):
    code = 'import sys; print(f"has {sys.argv[1] in sys.modules}")\n'
    code += f'def never(): import {package}'
    (tmp_path / 'script.py').write_text(code)
    logs = tmp_path / 'logs'
    code, output = cpprun.run(
        'cpprun', '--standalone', f'--preload={package}', f'--log-dir={logs}',
        tmp_path / 'script.py', package, env={'PYTHON_EXEC': PYTHON},
    )
    assert code == 0, output
    assert forked(logs) == [PACKAGES[package]], output
    assert f'has {PACKAGES[package]}' in output
    if not PACKAGES[package]:
        assert f'workers are spawned: {package}: it has' in output


def test_the_page_shows_a_command_that_works(cpprun, tmp_path):
    command, *shown = re.search(r'```console\n\$ (.*?)```', PAGE, re.S)[1].splitlines()
    cpprun.folder = tmp_path
    (tmp_path / 'examples').symlink_to(ROOT / 'examples')
    code, output = cpprun.run('bash', '-c', command)
    assert code == 0, output
    for line in shown:
        if line.strip() == '…':
            continue
        text = r'.*'.join(re.escape(part) for part in line.split('…'))
        assert re.search('^' + re.sub(r'\d+', r'\\d+', text) + '$', output, re.M), (line, output)
    assert BIN.is_dir()
