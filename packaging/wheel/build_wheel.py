#!/usr/bin/env python3
"""Makes a wheel from the built programs: cpprun, cpprunctl and `python -m cpprun`.

    packaging/wheel/build_wheel.py --bin build/release/bin --out build/release
    packaging/wheel/build_wheel.py --glibc 2.28 --zig "python3 -m ziglang"   # for older hosts
    packaging/wheel/build_wheel.py --machine aarch64    # compiles the programs for it first

Needs no packaging tool. The wheel's tag names the oldest glibc that has every symbol the programs
use; with an older one pip refuses to install it. A build on Debian 12 needs glibc 2.36. With
--glibc the programs are linked again for an older one (relink.py), which needs PyPI's ziglang.
--machine needs the cross compiler and the libraries of tools/deps.sh --wheel-aarch64. The wheel
includes the Python module for workers (worker_sdk/python), for x86-64 with libcpprun_copy.so.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

import relink

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANDLER = ROOT / 'packaging' / 'wheel' / 'torchrun_handler.py'
# torchrun finds the backend `cpprun` by it.
ENTRY_POINTS = '[torchrun.handlers]\ncpprun = cpprun.torchrun_handler:creator\n'
PROGRAMS = ('cpprun', 'cpprunctl')
COPY_LIBRARY = 'libcpprun_copy.so'  # for x86-64 only; needs glibc 2.14, so it is never linked again
ELF_MACHINES = {62: 'x86_64', 183: 'aarch64'}  # e_machine
CROSS = ('aarch64',)  # machines with a preset release-MACHINE
DATE = (1980, 1, 1, 0, 0, 0)  # fixed, so that equal programs give equal wheels
MAIN = '''"""python -m cpprun: the program that this package brought."""

import os
import sys
import sysconfig

path = os.path.join(sysconfig.get_path('scripts'), 'cpprun')
os.execv(path, [path, *sys.argv[1:]])
'''


def own_version():
    """Not the program's answer: this machine may be unable to run it."""
    text = (ROOT / 'CMakeLists.txt').read_text()
    return re.search(r'^project\(cpprun VERSION (\S+)', text, re.M)[1]


def machine_of(program):
    return ELF_MACHINES[struct.unpack_from('<H', program.read_bytes(), 18)[0]]


def compile_for(machine):
    """Compiles the programs by preset release-MACHINE. Returns their folder."""
    preset = f'release-{machine}'
    for args in ([f'--preset={preset}'],
                 ['--build', f'--preset={preset}', '--target', *PROGRAMS]):  # fmt: skip
        # stdout is for the path of the wheel.
        subprocess.run(['cmake', *args], cwd=ROOT, stdout=sys.stderr, check=True)  # noqa: S603
    return ROOT / 'build' / preset / 'bin'


def newest_glibc(programs):
    """The newest glibc version that a symbol of the programs requires, such as (2, 36)."""
    asked = {
        tuple(int(number) for number in found.split(b'.'))
        for program in programs
        for found in re.findall(rb'\0GLIBC_(2\.\d+)(?:\.\d+)?(?=\0)', program.read_bytes())
    }
    return max(asked)


def records(bin_folder, version):
    """Yields (path in the wheel, content, is_program)."""
    for name in PROGRAMS:
        yield f'cpprun-{version}.data/scripts/{name}', (bin_folder / name).read_bytes(), True
    yield 'cpprun/__init__.py', f"__version__ = '{version}'\n".encode(), False
    yield 'cpprun/__main__.py', MAIN.encode(), False
    yield 'cpprun/torchrun_handler.py', HANDLER.read_bytes(), False
    helper = ROOT / 'worker_sdk' / 'python'
    typed = helper / 'cpprun_worker' / 'py.typed'  # shows type checkers that it has annotations
    for path in sorted([*helper.glob('*/**/*.py'), typed]):
        yield path.relative_to(helper).as_posix(), path.read_bytes(), False
    if (bin_folder / COPY_LIBRARY).exists():
        content = (bin_folder / COPY_LIBRARY).read_bytes()
        yield f'cpprun_worker/_snapshot/{COPY_LIBRARY}', content, False


def metadata(version, tag):
    info = f'cpprun-{version}.dist-info'
    about = (
        f'Metadata-Version: 2.1\nName: cpprun\nVersion: {version}\n'
        'Summary: torchrun in C++: starts, watches and restarts the workers of a training job\n'
        'Requires-Python: >=3.8\n'
    )
    wheel = f'Wheel-Version: 1.0\nGenerator: cpprun\nRoot-Is-Purelib: false\nTag: {tag}\n'
    return info, [
        (f'{info}/METADATA', about.encode()),
        (f'{info}/WHEEL', wheel.encode()),
        (f'{info}/entry_points.txt', ENTRY_POINTS.encode()),
    ]


def build(bin_folder, out):
    version = own_version()
    major, minor = newest_glibc([bin_folder / name for name in PROGRAMS])
    tag = f'py3-none-manylinux_{major}_{minor}_{machine_of(bin_folder / "cpprun")}'
    info, about = metadata(version, tag)
    path = out / f'cpprun-{version}-{tag}.whl'
    listing = []
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as wheel:

        def add(name, content, is_program=False):
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=')
            listing.append(f'{name},sha256={digest.decode()},{len(content)}\n')

        for name, content, is_program in records(bin_folder, version):
            add(name, content, is_program)
        for name, content in about:
            add(name, content)
        add(f'{info}/RECORD', (''.join(listing) + f'{info}/RECORD,,\n').encode())
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build' / 'release' / 'bin')
    parser.add_argument('--out', type=pathlib.Path, default=ROOT / 'build' / 'release')
    parser.add_argument('--glibc', help='the oldest glibc for the programs, such as 2.28')
    parser.add_argument('--zig', default='python3 -m ziglang', help='the command of zig')
    parser.add_argument('--machine', choices=CROSS, help='compile for it first; ignores --bin')
    options = parser.parse_args()
    if options.machine:
        options.bin = compile_for(options.machine)
        options.out.mkdir(parents=True, exist_ok=True)
    if not options.glibc:
        print(build(options.bin, options.out))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in PROGRAMS:
            zig = shlex.split(options.zig)
            relink.relink(options.bin.parent, name, options.glibc, zig, folder)
        if (options.bin / COPY_LIBRARY).exists():
            shutil.copy(options.bin / COPY_LIBRARY, folder)
        print(build(pathlib.Path(folder), options.out))


if __name__ == '__main__':
    main()
