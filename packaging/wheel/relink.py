"""Links the built programs again, against an older glibc than this machine's.

Reuses the objects of the build with another linker: zig's (PyPI's ziglang), which has the symbols
of every glibc version. It binds symbols such as stat and pthread_create to their old versions;
glibc_stand_ins.c defines the few that did not exist. Zig's libunwind unwinds stacks, because gcc's
needs a newer loader. A variable with two names, such as environ, becomes two variables; therefore
the programs use only glibc's own name, __environ.
"""

import platform
import shlex
import subprocess
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
STAND_INS = HERE / 'glibc_stand_ins.c'


def inputs_of(build, program):
    """The objects and archives on a program's link line, in order."""
    command = ['ninja', '-C', build, '-t', 'commands', f'bin/{program}']
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = shlex.split(lines.splitlines()[-1])
    found = [word for word in words if word.endswith(('.o', '.a'))]
    if not found or words[words.index('-o') + 1] != f'bin/{program}':
        raise SystemExit(f'{build} has no link line of {program}; is it a build by Ninja?')
    return found


def gcc_file(name):
    command = ['g++', f'-print-file-name={name}']
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def relink(build, program, glibc, zig, out):
    """Returns the path of the new program. `zig`: its command; `glibc`: such as '2.28'."""
    build = pathlib.Path(build).resolve()
    path = pathlib.Path(out).resolve() / program
    if '/' in zig[0]:  # the command runs in another folder
        zig = [pathlib.Path(zig[0]).absolute(), *zig[1:]]
    target = f'{platform.machine()}-linux-gnu.{glibc}'
    command = [*zig, 'cc', '-target', target, '-pie', '-s', STAND_INS, *inputs_of(build, program)]
    command += [gcc_file('libstdc++.a'), gcc_file('libgcc.a')]
    command += ['-lunwind', '-lm', '-lpthread', '-ldl']
    subprocess.run([*map(str, command), '-o', str(path)], check=True, cwd=build)
    return path
