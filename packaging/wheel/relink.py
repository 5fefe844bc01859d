"""Links the built programs again, against an older glibc than this machine's.

Reuses the objects of the build with another linker: zig's (PyPI's ziglang), which has the symbols
of every glibc version. It binds symbols such as stat and pthread_create to their old versions;
glibc_stand_ins.c defines the few that did not exist. Zig's libunwind unwinds stacks, because gcc's
needs a newer loader. A variable with two names, such as environ, becomes two variables; therefore
the programs use only glibc's own name, __environ. The compiler of the build names the machine and
has the standard library for it, also if it is a cross compiler.
"""

import shlex
import subprocess
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
STAND_INS = HERE / 'glibc_stand_ins.c'


def link_line(build, program):
    """Returns the compiler, and the objects and archives on a program's link line, in order."""
    command = ['ninja', '-C', build, '-t', 'commands', f'bin/{program}']
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    args = shlex.split(lines.splitlines()[-1])
    found = [arg for arg in args if arg.endswith(('.o', '.a'))]
    if not found or args[args.index('-o') + 1] != f'bin/{program}':
        raise SystemExit(f'{build} has no link line of {program}; is it a build by Ninja?')
    compiler = args[args.index('&&') + 1]  # `: && COMPILER ... && :`
    return compiler, found


def ask(compiler, question):
    command = [compiler, question]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def relink(build, program, glibc, zig, out):
    """Returns the path of the new program. `zig`: its command; `glibc`: such as '2.28'."""
    build = pathlib.Path(build).resolve()
    path = pathlib.Path(out).resolve() / program
    if '/' in zig[0]:  # the command runs in another folder
        zig = [pathlib.Path(zig[0]).absolute(), *zig[1:]]
    compiler, inputs = link_line(build, program)
    target = f'{ask(compiler, "-dumpmachine").split("-")[0]}-linux-gnu.{glibc}'
    command = [*zig, 'cc', '-target', target, '-pie', '-s', STAND_INS, *inputs]
    command += [ask(compiler, f'-print-file-name={name}') for name in ('libstdc++.a', 'libgcc.a')]
    command += ['-lunwind', '-lm', '-lpthread', '-ldl']
    subprocess.run([*map(str, command), '-o', str(path)], check=True, cwd=build)
    return path
