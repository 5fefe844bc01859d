"""The Python that has torch: TORCH_PYTHON, or the project's own."""

import functools
import os
import subprocess

import pytest
from launches import BIN, ROOT
from long_tests import RUN_LONG

PYTHON = os.environ.get('TORCH_PYTHON', str(ROOT / '.venv' / 'bin' / 'python'))

COPY_LIBRARY = BIN / 'libcpprun_copy.so'  # in the wheel beside its Python module; x86-64 only


@functools.cache
def has(python, package):
    """Whether that Python has the package; without an import, because each pytest process asks."""
    find = 'import importlib.util as u, sys; sys.exit(not u.find_spec(sys.argv[1]))'
    if not os.path.exists(python):
        return False
    done = subprocess.run([python, '-c', find, package], check=False, capture_output=True)
    return done.returncode == 0


needs_torch = pytest.mark.skipif(not has(PYTHON, 'torch'), reason=f'{PYTHON} has no torch')


def training_env(modules='torch,numpy', python=PYTHON, are_forked=None, **more):
    """The environment of a job whose workers import these modules. They are forked from a process
    that has imported them, because imports take nine tenths of the CPU time of such tests. With
    CPPRUN_ALL they are spawned, as by default, unless `are_forked` is true."""
    env = {'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': str(python)}
    if COPY_LIBRARY.exists():
        env['CPPRUN_COPY_LIBRARY'] = str(COPY_LIBRARY)
    if are_forked is None:
        are_forked = not RUN_LONG
    if are_forked:
        env['PET_PRELOAD'] = modules
    return {**env, **more}


def start_script(jobs, code, *flags, n=1, **env):
    """A job of n ranks on this machine whose script, script.py, is this code."""
    fixed = ('--standalone', f'--nproc-per-node={n}')
    return jobs.cpprun(*fixed, *flags, jobs.write('script.py', code), env=training_env(**env))
