"""What the tests of wheels for several machines have in common."""

import re
import subprocess

LIBRARIES = {'libc.so.6', 'libm.so.6', 'libpthread.so.0', 'libdl.so.2', 'librt.so.1'}
OLDEST = (2, 28)  # glibc


def run(*command, code=0, seconds=600, **options):
    """The output of a program that ends with `code`."""
    done = subprocess.run(
        [str(word) for word in command], timeout=seconds, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, **options,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    return done.stdout


def check_requirements(wheel, scripts, objdump, loader):
    """The programs need no newer glibc than the wheel's tag allows, and no other libraries."""
    tag = tuple(map(int, re.search(r'manylinux_(\d+)_(\d+)_', wheel.name).groups()))
    assert tag <= OLDEST
    for name in ('cpprun', 'cpprunctl'):
        symbols = run(objdump, '-T', scripts / name)
        asked = {tuple(map(int, found)) for found in re.findall(r'GLIBC_(\d+)\.(\d+)', symbols)}
        assert asked and max(asked) <= tag
        needed = set(re.findall(r'NEEDED +(\S+)', run(objdump, '-p', scripts / name)))
        assert needed <= {*LIBRARIES, loader}
