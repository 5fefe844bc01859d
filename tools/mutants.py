#!/usr/bin/env python3
"""Mutation check of the simulator: each bug in tests/sim/mutants must be found.

    tools/mutants.py                 # all of them
    tools/mutants.py NAME...         # these: file names without .patch

Each patch is applied to a copy of the project under build/mutants, the simulator alone is built
there, and run over at most SEEDS seeds until one fails. Prints which seed found it, and by what.
Exit code 1 if a mutant is not found, or does not apply, or does not build.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREE = ROOT / 'build/mutants/tree'
BUILD = TREE / 'build/check'  # the same relative paths as here: the compiler cache knows them
SEEDS = 2000
SECONDS = 120  # a mutant that hangs a run is found too


def copy_project():
    shutil.rmtree(TREE, ignore_errors=True)
    names = subprocess.run(
        ['git', 'ls-files', '-co', '--exclude-standard'],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    for name in names:
        source = ROOT / name
        if source.is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, TREE / name)


def configure():
    options = ['-DCMAKE_BUILD_TYPE=Release', '-DCPPRUN_TESTS=ON', '-DCPPRUN_TORCH=OFF']
    command = ['cmake', '-S', TREE, '-B', BUILD, '-G', 'Ninja', *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def build():
    command = ['cmake', '--build', BUILD, '--target', 'sim_run', '-j', '2']
    return subprocess.run(command, capture_output=True, text=True)


def patch(path, *words):
    with path.open('rb') as source:
        command = ['patch', '-p1', '--no-backup-if-mismatch', *words]
        return subprocess.run(command, cwd=TREE, stdin=source, capture_output=True, text=True)


def hunt(kind=()):
    """(was it found, by what)."""
    command = [BUILD / 'tests/sim/sim_run', *kind, '--first', '--seeds', f'1:{SEEDS}']
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return True, f'a run that does not end within {SECONDS} s'
    if run.returncode == 0:
        return False, f'not found within {SEEDS} seeds'
    if run.returncode != 1:
        return True, f'the program ends with {run.returncode}: ' + run.stderr.strip()[-100:]
    seed = re.search(r'--seed (\d+)', run.stdout)
    what = re.search(r'^  (.*)', run.stdout, re.MULTILINE)
    return True, f'seed {seed[1]}: {what[1]}'


def judge(path):
    applied = patch(path)
    if applied.returncode != 0:
        return False, 'does not apply: ' + applied.stdout.strip()
    built = build()
    kind = ['--etcd'] if path.stem.startswith('r18_') else []
    if built.returncode == 0:
        found = hunt(kind)
    else:
        found = (False, 'does not build:\n' + built.stdout[-2000:])
    undone = patch(path, '-R')
    if undone.returncode != 0:
        raise RuntimeError(f'{path.name} could not be undone: {undone.stdout}')
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('names', nargs='*')
    wanted = parser.parse_args().names
    paths = sorted((ROOT / 'tests/sim/mutants').glob('*.patch'))
    if wanted:
        paths = [path for path in paths if path.stem in wanted]
    if not paths:
        sys.exit('no such mutant')
    copy_project()
    configure()
    built = build()
    if built.returncode != 0:
        sys.exit('the simulator does not build:\n' + built.stdout[-2000:])
    for kind in ([], ['--etcd']):
        is_found, how = hunt(kind)
        if is_found:
            sys.exit('the simulator finds something without any mutant: ' + how)
    missed = 0
    for path in paths:
        is_found, how = judge(path)
        missed += not is_found
        print(f'{"found " if is_found else "MISSED"} {path.stem:45} {how}', flush=True)
    print(f'{len(paths)} mutants, {missed} not found')
    sys.exit(1 if missed else 0)


if __name__ == '__main__':
    main()
