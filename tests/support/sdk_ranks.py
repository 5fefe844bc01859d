"""Several ranks of the worker SDK, as real processes: C++ cases and Python twins.

The cases are those of tests/sdk/<part>/*_case.cpp, compiled into sdk_<part>_cases.
"""

import os
import subprocess

from launches import BIN, ROOT, SLOWEST
from torch_python import PYTHON

TWINS = ROOT / 'tests' / 'sdk' / 'twins'
# The shell command that starts a twin: f'{TWIN}/NAME.py'.
TWIN = f'{PYTHON} -u {TWINS}/run.py {TWINS}'


class Ended:
    """The result of a job: exit code, whole stdout and stderr, and stdout's lines by rank."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def lines(self, start=''):
        """Lines of stdout that begin with `start`, sorted; the ranks' output comes in any order."""
        return sorted(line for line in self.out.splitlines() if line.startswith(start))

    def well(self):
        assert self.code == 0, f'exit {self.code}\n{self.out}\n{self.err}'
        return self


class Ranks:
    def __init__(self, folder):
        self.folder = folder

    def run(self, *command, env=None, seconds=90):
        """Runs a command in the test's folder; fails when it takes SLOWEST times longer."""
        own = {'OMP_NUM_THREADS': '1', 'TMPDIR': str(self.folder)}
        line = [str(part) for part in command]
        done = subprocess.run(  # noqa: S603
            line,
            env={**os.environ, **own, **(env or {})},
            cwd=self.folder,
            timeout=SLOWEST * seconds,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(done)

    def cpprun(self, n, *command, flags=(), **options):
        """`command` on n ranks under cpprun."""
        args = ('--standalone', f'--nproc_per_node={n}', *flags, '--no-python', *command)
        return self.run(BIN / 'cpprun', *args, **options)

    def case(self, part, n, name, *args, **options):
        """A case of sdk_<part>_cases on n ranks."""
        return self.cpprun(n, BIN / f'sdk_{part}_cases', name, *args, **options)

    def twin(self, n, script, *args, **options):
        """twins/<script>, in Python, on n ranks under cpprun."""
        return self.cpprun(n, PYTHON, '-u', TWINS / 'run.py', TWINS / script, *args, **options)

    def lone_case(self, part, name, *args, **options):
        """A case in one process, without a launcher."""
        return self.run(BIN / f'sdk_{part}_cases', name, *args, **options)

    def lone_twin(self, script, *args, **options):
        return self.run(PYTHON, '-u', TWINS / 'run.py', TWINS / script, *args, **options)
