#!/usr/bin/env python3
"""Mutation test of the simulator: it must find each bug in tests/sim/mutants.

    tools/mutants.py                 # all; continues an interrupted run
    tools/mutants.py NAME...         # these again: file names without .patch
    tools/mutants.py --minutes 10    # starts no further mutant after 10 minutes

Applies each patch to a copy of the project under build/mutants, builds only the simulator there,
and runs it over the kept seeds, at most SEEDS others, and the scenarios, until a check fails. (That
a transcript differs does not count.) build/mutants/record.json keeps the results for this tree and
this patch. Prints a table at the end: the seed or scenario and the checks that found each mutant,
and the checks that found none.

Exit code 1 if a mutant is not found, does not apply or does not build; 3 if the time was too short
for some.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import queue
import re
import resource
import subprocess
import sys
import threading
import time

from tree_digest import digest

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / 'tests/sim/seeds.txt'
PLACE = ROOT / 'build/mutants'
PATCHES = ROOT / 'tests/sim/mutants'
SCENARIOS = sorted((ROOT / 'tests/scenarios').glob('*_*.txt'))
SEEDS = 2000
CHUNK = 100  # seeds per call of sim_run, which takes seconds
CHUNK_SECONDS = 300  # a mutant that hangs the simulator counts as found
MEMORY = 4 << 30
ELECTED = ('--etcd',)
CHECKS = (  # from docs/simulation.md
    'S1 S2 S3 S4 S5 R1 R2 R4 R7 R8 R9 R13 R14 R15 R16 R17 R18 ranks L1 L2 '
    'store snapshots faults limits stuck excluded links same-run'
).split()
BROKEN_IN_SCENARIO = re.compile(r'^(\S+)\.txt: (.*)', re.MULTILINE)
NAMED = re.compile(r'([SRL]\d+|store|snapshots|faults|limits|stuck|excluded|links)\b')
WORDS = {  # words in messages that do not begin with the name of their check
    'the same seed gave': 'same-run',
    'rank': 'ranks',
    "the world's size": 'ranks',
}


def sync(tree):
    """Updates the copy of the project in `tree`; writes only changed files, to keep its build."""
    names = subprocess.run(
        ['git', 'ls-files', '-co', '--exclude-standard'],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    wanted = {name for name in names if (ROOT / name).is_file()}
    listing = tree / 'build/files'
    had = set(listing.read_text().splitlines()) if listing.exists() else set()
    for name in had - wanted:
        (tree / name).unlink(missing_ok=True)
    for name in wanted:
        new = (ROOT / name).read_bytes()
        copy = tree / name
        if copy.is_file() and copy.read_bytes() == new:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(new)
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text('\n'.join(sorted(wanted)))


def kind_of(path):
    """Options of sim_run for the mutant: rule R18 concerns jobs with etcd."""
    return ELECTED if path.stem.startswith('r18_') else ()


class BuildTree:
    """A copy of the project that builds and runs one mutant at a time."""

    def __init__(self, number):
        self.tree = PLACE / f'tree{number}'
        self.build_dir = self.tree / 'build/check'  # the usual path: the compiler cache hits
        sync(self.tree)
        options = ['-DCMAKE_BUILD_TYPE=Release', '-DCPPRUN_TESTS=ON', '-DCPPRUN_TORCH=OFF']
        command = ['cmake', '-S', self.tree, '-B', self.build_dir, '-G', 'Ninja', *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def build(self):
        targets = ('sim_run', 'scenario_run')
        command = ['cmake', '--build', self.build_dir, '--target', *targets, '-j', '1']
        return subprocess.run(command, capture_output=True, text=True)

    def patch(self, path, *args):
        with path.open('rb') as source:
            command = ['patch', '-p1', '--no-backup-if-mismatch', *args]
            return subprocess.run(
                command, cwd=self.tree, stdin=source, capture_output=True, text=True
            )

    def run(self, program, *args):
        """Its exit code and output; where it ends by neither 0 nor 1, None and how it ends."""
        try:
            run = subprocess.run(
                [self.build_dir / program, *args],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=CHUNK_SECONDS,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )
        except subprocess.TimeoutExpired:
            return None, f'{" ".join(map(str, args))} takes more than {CHUNK_SECONDS} s'
        if run.returncode in (0, 1):
            return run.returncode, run.stdout
        last = run.stderr.strip().splitlines()[-1:] or ['']
        return None, f'it ends with {run.returncode}: {last[0]}'

    def hunt_chunk(self, first, *args):
        """The first failure in these seeds, or None."""
        code, output = self.run('tests/sim/sim_run', '--first', *args)
        if code == 0:
            return None
        if code is None:
            return {'seed': first, 'what': [output]}
        seed = re.search(r'--seed (\d+)', output)
        return {'seed': int(seed[1]), 'what': re.findall(r'^  (.*)', output, re.MULTILINE)}

    def hunt(self, kind=()):
        if found := self.hunt_chunk(0, '--kept', KEPT):
            return found
        for first in range(1, SEEDS + 1, CHUNK):
            seeds = f'{first}:{first + CHUNK - 1}'
            if found := self.hunt_chunk(first, *kind, '--seeds', seeds):
                return found
        return self.hunt_scenarios() or {'missed': f'not found within {SEEDS} seeds'}

    def hunt_scenarios(self):
        code, output = self.run('tests/scenarios/scenario_run', *SCENARIOS)
        if code is None:
            return {'scenario': 'one of the scenarios', 'what': [output]}
        if not (broken := BROKEN_IN_SCENARIO.findall(output)):
            return None
        path = broken[0][0]
        what = [sentence for each, sentence in broken if each == path]
        return {'scenario': pathlib.Path(path).name, 'what': what}

    def try_mutant(self, path):
        applied = self.patch(path)
        if applied.returncode != 0:
            sync(self.tree)
            return {'missed': 'does not apply: ' + applied.stdout.strip()}
        built = self.build()
        if built.returncode == 0:
            found = self.hunt(kind_of(path))
        else:
            found = {'missed': 'does not build:\n' + built.stdout[-2000:]}
        sync(self.tree)
        return found


class Record:
    """The results for this tree's mutants, kept in a file."""

    def __init__(self):
        self.path = PLACE / 'record.json'
        self.lock = threading.Lock()
        self.tree = digest()
        known = json.loads(self.path.read_text()) if self.path.exists() else {}
        is_same = known.get('tree') == self.tree
        self.found = known['found'] if is_same else {}
        self.is_sound = is_same and known.get('is_sound', False)  # no failure without a mutant

    @staticmethod
    def of(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]

    def get(self, path):
        known = self.found.get(path.stem)
        return known if known and known['patch'] == self.of(path) else None

    def put(self, path, found):
        with self.lock:
            self.found[path.stem] = {**found, 'patch': self.of(path)}
            self.save()

    def put_sound(self):
        with self.lock:
            self.is_sound = True
            self.save()

    def save(self):
        state = {'tree': self.tree, 'is_sound': self.is_sound, 'found': self.found}
        self.path.write_text(json.dumps(state, indent=1))


def check_of(sentence):
    if named := NAMED.match(sentence):
        return named[1]
    return next((check for words, check in WORDS.items() if words in sentence), 'other')


def checks_of(found):
    return sorted({check_of(sentence) for sentence in found['what']})


def line_of(name, found):
    if found is None:
        return f'-      {name:46} not tried'
    if 'missed' in found:
        return f'MISSED {name:46} {found["missed"]}'
    what = found['what'][0] if found['what'] else ''
    where = found.get('scenario') or f'seed {found["seed"]:4}'
    return f'found  {name:46} {where}, by {" ".join(checks_of(found))}: {what}'


def print_table(paths, record):
    found = {path.stem: record.get(path) for path in paths}
    print('\n' + '\n'.join(line_of(name, each) for name, each in found.items()))
    set_off = {c for each in found.values() if each and 'what' in each for c in checks_of(each)}
    left = [check for check in CHECKS if check not in set_off]
    missed = sum(1 for each in found.values() if each and 'missed' in each)
    waiting = sum(1 for each in found.values() if each is None)
    print(
        f'{len(paths)} mutants, {len(paths) - missed - waiting} found, {missed} not found, '
        f'{waiting} not tried; tree {record.tree}'
    )
    if left:
        print('checks that found no mutant: ' + ' '.join(left))
    return 1 if missed else 3 if waiting else 0


def work(todo, record, number, end):
    tree = BuildTree(number)
    built = tree.build()
    if built.returncode != 0:
        return 'the simulator does not build:\n' + built.stdout[-2000:]
    if number == 0 and not record.is_sound:
        for kind in ((), ELECTED):
            unasked = tree.hunt(kind)
            if 'what' in unasked:
                return f'the simulator fails without any mutant: {unasked}'
        record.put_sound()
    while time.monotonic() < end:
        try:
            path = todo.get_nowait()
        except queue.Empty:
            break
        begin = time.monotonic()
        found = tree.try_mutant(path)
        record.put(path, found)
        print(f'{line_of(path.stem, found)} ({time.monotonic() - begin:.0f} s)', flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('names', nargs='*')
    parser.add_argument('--minutes', type=float, default=float('inf'))
    parser.add_argument('--jobs', type=int, default=2)
    wanted = parser.parse_args()
    every = sorted(PATCHES.glob('*.patch'))
    paths = [path for path in every if not wanted.names or path.stem in wanted.names]
    if not paths:
        sys.exit('no such mutant')
    PLACE.mkdir(parents=True, exist_ok=True)
    record = Record()
    todo = queue.Queue()
    for path in paths:
        if wanted.names or record.get(path) is None:
            todo.put(path)
    jobs = min(wanted.jobs, todo.qsize())
    end = time.monotonic() + wanted.minutes * 60
    with concurrent.futures.ThreadPoolExecutor(max(jobs, 1)) as pool:
        workers = [pool.submit(work, todo, record, number, end) for number in range(jobs)]
        for worker in workers:
            if trouble := worker.result():
                sys.exit(trouble)
    sys.exit(print_table(paths if wanted.names else every, record))


if __name__ == '__main__':
    main()
