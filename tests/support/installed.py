"""The tree that `cmake --install` makes, and users' projects that are built against it."""

import os
import pathlib
import shutil
import subprocess

from launches import BIN

BUILD = BIN.parent


def torch_folder():
    """LIBTORCH that this build was configured with, else the one in .venv."""
    cache = (BUILD / 'CMakeCache.txt').read_text()
    for line in cache.splitlines():
        if line.startswith('LibTorch_INCLUDE_DIR:PATH=') and 'NOTFOUND' not in line:
            return pathlib.Path(line.split('=', 1)[1]).parent
    return None


class Package:
    """The tree that `cmake --install` makes, and operations on it."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.include = prefix / 'include'

    def run(self, *command, seconds=400, env=None):
        """Exit code and all output."""
        done = subprocess.run(  # noqa: S603
            [str(word) for word in command],
            env={**os.environ, **(env or {})},
            timeout=seconds,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def configure(self, source, build, *args):
        launcher = ('-DCMAKE_CXX_COMPILER_LAUNCHER=ccache',) if shutil.which('ccache') else ()
        options = ('-G', 'Ninja', f'-DCMAKE_PREFIX_PATH={self.prefix}', *launcher, *args)
        return self.run('cmake', '-S', source, '-B', build, *options, seconds=60)

    def build(self, source, build, *args):
        """Configures and builds a user's project; returns the output."""
        code, configured = self.configure(source, build, *args)
        assert code == 0, configured
        ccache = {'CCACHE_BASEDIR': str(build.parent), 'CCACHE_NOHASHDIR': '1'}
        code, built = self.run('cmake', '--build', build, env=ccache)
        assert code == 0, built
        return configured + built

    def launch(self, program, n=2):
        cpprun = self.prefix / 'bin' / 'cpprun'
        return self.run(
            cpprun, '--standalone', f'--nproc_per_node={n}', program, env={'OMP_NUM_THREADS': '1'}
        )
