#!/usr/bin/env python3
"""Compares cpprun with torchrun, and its store with torch's, and both with the machine's floor.

    bench/compare/run.py                          # all suites; tables to stdout
    bench/compare/run.py --only start,store --runs 3
    bench/compare/run.py --quick                  # checks that everything works
    bench/compare/run.py --before FOLDER          # beside an older build, not beside torch
    bench/compare/run.py --json run.json --plot run.svg --growth growth.svg

The programs take turns, so that other load on the machine affects all of them; figures are medians.
bench/README.md explains the rows. Build first:

    cmake --build build/check --target cpprun cpprunctl bench_parts
    cmake --build build/check --target compare_worker compare_load compare_pong

Exit code 1 if a suite could not be measured; it prints the reason and runs the other suites.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import crowd
import curves
import launching
import meeting
import plot
import printing
import report
import stores
from bench import QUICK, Bench, Size
from rows import OURS, THEIRS

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = {
    'start': launching.start,
    'respawn': launching.respawn,
    'footprint': launching.footprint,
    'orphans': launching.orphans,
    'elastic': meeting.elastic,
    'scale': crowd.scale,
    'output': printing.output,
    'store': stores.store,
}


def numbers(text):
    return tuple(int(word) for word in text.split(','))


def parse():
    built = ROOT / 'build' / 'check' / 'bin'
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', default=','.join(SUITES), help='suites, with commas')
    parser.add_argument('--quick', action='store_true', help='a little of everything')
    parser.add_argument('--runs', type=int, help='rounds of each suite, except elastic and scale')
    parser.add_argument('--slow-runs', type=int, help='rounds of these two')
    parser.add_argument('--patience', type=float, help='longest wait for anything, seconds')
    parser.add_argument('--agents', type=numbers, help='suite scale: how many, with commas')
    parser.add_argument('--core-nodes', type=numbers, help='the same in the core alone')
    parser.add_argument('--their-agents', type=int, help='the most of torchrun there')
    parser.add_argument('--lines', type=int, help='suite output: how many each rank prints')
    parser.add_argument('--bin', type=pathlib.Path, default=os.environ.get('CPPRUN_BIN', built))
    parser.add_argument('--helpers', type=pathlib.Path, help='folder of compare_*, if not --bin')
    other = parser.add_mutually_exclusive_group()
    other.add_argument('--torchrun', help='default: the one on PATH, or in .venv; "" for none')
    other.add_argument('--before', type=pathlib.Path, help='an older build, in place of torch')
    parser.add_argument('--json', type=pathlib.Path, help='also write samples and medians there')
    parser.add_argument('--plot', type=pathlib.Path, help='also draw an SVG picture there')
    parser.add_argument('--growth', type=pathlib.Path, help='suite scale: its SVG picture')
    options = parser.parse_args()
    if unknown := set(options.only.split(',')) - set(SUITES):
        parser.error(f'no suite {", ".join(sorted(unknown))}; there are {", ".join(SUITES)}')
    return options


def find_torchrun(options):
    """Its absolute path; None if it is missing or disabled."""
    if options.torchrun is None:
        own = ROOT / '.venv' / 'bin'
        return shutil.which('torchrun') or shutil.which('torchrun', path=str(own))
    found = shutil.which(options.torchrun)
    if options.torchrun and not found:
        sys.exit(f'--torchrun {options.torchrun}: there is no such program')
    return found and os.path.abspath(found)


def size_of(options):
    given = {
        name: getattr(options, name)
        for name in (field.name for field in dataclasses.fields(Size))
        if getattr(options, name, None) is not None
    }
    return dataclasses.replace(QUICK if options.quick else Size(), **given)


def copied(build, folder):
    """The launcher among copies of the build's programs.

    The kernel maps a file that the linker has written more slowly than a copy of it: a start then
    takes up to a tenth longer, which is more than most changes make.
    """
    folder.mkdir()
    for name in ('cpprun', 'cpprunctl'):
        if (program := build / name).exists():
            shutil.copy2(program, folder)
    return str(folder / 'cpprun')


def make_bench(options, folder):
    launchers = {OURS: [str(options.bin.resolve() / 'cpprun')]}
    python = None
    if options.before:
        launchers[OURS] = [copied(options.bin, pathlib.Path(folder, 'this'))]
        launchers[THEIRS] = [copied(options.before, pathlib.Path(folder, 'before'))]
    elif torchrun := find_torchrun(options):
        launchers[THEIRS] = [torchrun]
        beside = str(pathlib.Path(torchrun).with_name('python'))
        python = os.environ.get('TORCH_PYTHON', beside)
    helpers = options.helpers or options.bin
    bench = Bench(size_of(options), launchers, helpers, python, folder)
    builds = [OURS, THEIRS] if options.before else [OURS]
    programs = [name for build in builds for name in (launchers[build][0], bench.ctl(build))]
    for program in (*programs, bench.worker, bench.load, bench.pong, bench.parts):
        if not pathlib.Path(program).exists():
            sys.exit(f'{program} is not built; the head of {__file__} describes how')
    return bench


def output_of(command):
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    except OSError as error:
        sys.exit(f'{command[0]}: {error}')
    if done.returncode:
        sys.exit(f'{" ".join(command)}: exit {done.returncode}\n{done.stderr}')
    return done.stdout.strip()


def versions(bench):
    found = [output_of([*bench.launchers[OURS], '--version'])]
    if bench.torch_python:  # beside torchrun, or from TORCH_PYTHON
        code = "import importlib.metadata as m; print('torch', m.version('torch'))"
        found.append(output_of([bench.torch_python, '-c', code]))
    elif THEIRS in bench.launchers:
        older = output_of([*bench.launchers[THEIRS], '--version'])
        found.append(f'in the place of torch an older build: {older}')
    return ', '.join(found)


def about(bench, programs, load):
    """The machine, the versions and the load, which shows whether it was idle."""
    when = time.strftime('%Y-%m-%d', time.gmtime())
    kernel, python = platform.release(), platform.python_version()
    system = f'{os.cpu_count()} CPUs, Linux {kernel}, Python {python}'
    busy = f'load {load:.1f} when it began, {os.getloadavg()[0]:.1f} when it ended'
    runs = f'medians of {bench.size.runs} runs (elastic and scale: {bench.size.slow_runs})'
    return f'{when}; {programs}; {system}; {busy}; {runs}.'


def came_through(name, bench):
    try:
        SUITES[name](bench)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f'{name}: {error}', file=sys.stderr)
        return False
    return True


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs the clean-up
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix='compare-') as folder:
        bench = make_bench(options, folder)
        programs = versions(bench)
        failed = [name for name in options.only.split(',') if not came_through(name, bench)]
        line = about(bench, programs, load)
    print(report.markdown(bench.rows, line), end='')
    if options.json:
        text = json.dumps({'about': line, 'rows': report.as_json(bench.rows)}, indent=1)
        options.json.write_text(text + '\n', encoding='utf-8')
    if options.plot:
        options.plot.write_text(plot.picture(bench.rows), encoding='utf-8')
    if options.growth:
        options.growth.write_text(curves.picture(bench.growth), encoding='utf-8')
    if failed:
        sys.exit(f'not measured to the end: {", ".join(failed)}')


if __name__ == '__main__':
    main()
