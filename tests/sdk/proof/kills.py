"""Runs a training job again and again, kills its workers at random, compares how it ends.

    tests/sdk/proof/kills.py --seeds 100          # a table; exit 1 if any run ended otherwise
    tests/sdk/proof/kills.py --seeds 100 --kept runs.jsonl    # continues where it was interrupted

A seed decides how many workers there are, when each is killed, and how often. Half of the kills
wait for the moment in which a snapshot is being written. A run that ended before its first kill
proves nothing: it is repeated with earlier kills.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / 'support'))
from launches import BIN, Launches, kill

# `worlds`: the allowed numbers of workers, if not all are.
Program = collections.namedtuple('Program', 'name words result worlds', defaults=[None])
HASH = r'hash=(\w+)'

PROGRAMS = {
    'sgd': Program('sdk_proof_training', ['sgd', 'snapshots', 120, 5, 4], HASH),
    'adamw': Program('sdk_proof_training', ['adamw', 'snapshots', 120, 5, 4], HASH),
    'toy': Program(
        'ex_toy_trainer',
        ['--task', 'regression', '--total-epochs', 40, '--save-every', 1, '--hash'],
        HASH,
    ),
    'digits': Program(
        'ex_digits', ['--epochs', 6, '--snapshot', 'digits.pt'], r'\] parameters (\w+)'
    ),
    # The order of sums matters: several MiB of gradients, more than two ranks.
    'trainer': Program('sdk_trainer_cases', ['trainer_wide', 6, 4, 10], HASH, (4,)),
    'ranzcr': Program('ex_ranzcr', ['--synthetic', 48, '--epochs', 3, '--hash'], HASH),
}
MAX_RESTARTS = 50
ATTEMPTS = 6  # each with kills in half of the time of the one before


def command(program, world, *words):
    return [
        *('cpprun', '--standalone', f'--nproc_per_node={world}', f'--max_restarts={MAX_RESTARTS}'),
        *words,
        *('--no-python', BIN / program.name, *program.words),
    ]


def workers(job, program):
    """Process ids of the workers that have executed the program."""
    path = str(BIN / program.name)
    return [pid for pid in job.alive() if os.path.realpath(f'/proc/{pid}/exe') == path]


def is_saving(folder):
    """Whether a process is writing a snapshot now."""
    return any(path.name.startswith('.') for path in folder.glob('**/.*.tmp'))


class Killer(threading.Thread):
    """Kills `count` workers, one at a time."""

    def __init__(self, job, program, chance, count, span):
        super().__init__(daemon=True)
        self.job, self.program, self.chance = job, program, chance
        self.count, self.span = count, span
        self.killed = self.in_saves = 0
        self.is_over = threading.Event()

    def run(self):
        while self.killed < self.count and not self.is_over.is_set():
            self.is_over.wait(self.chance.uniform(0, self.span))
            is_in_save = self.chance.random() < 0.5 and self.sees_save()
            victims = workers(self.job, self.program)
            if victims and not self.is_over.is_set():
                kill(self.chance.choice(victims))
                self.killed += 1
                self.in_saves += is_in_save

    def sees_save(self):
        end = time.monotonic() + self.span
        while time.monotonic() < end and not self.is_over.is_set():
            if is_saving(self.job.folder):
                return True
            time.sleep(0.0005)
        return False


def finish(job, program, world, chance=None, kills=0, span=1.0, limit=150):
    """The run's result, its seconds, and the Killer's count; raises AssertionError if it failed."""
    start = time.monotonic()
    running = job.start(*command(program, world), env={'OMP_NUM_THREADS': '1'})
    killer = Killer(job, program, chance, kills, span)
    if kills:
        killer.start()
    code = running.done(limit)
    killer.is_over.set()
    if kills:
        killer.join()
    results = re.findall(program.result, running.output)
    assert code == 0 and results, running.output
    return results[-1], time.monotonic() - start, killer


Outcome = collections.namedtuple('Outcome', 'is_equal world killed in_saves')


class Proof:
    """Makes undisturbed runs once for each program and world size."""

    def __init__(self, folder, worlds=(1, 2, 4), limit=150):
        self.folder, self.worlds, self.limit = pathlib.Path(folder), worlds, limit
        self.undisturbed = {}

    def job(self, name):
        return Launches(pathlib.Path(tempfile.mkdtemp(prefix=f'{name}-', dir=self.folder)))

    def expected(self, name, world):
        if (name, world) not in self.undisturbed:
            job = self.job(f'{name}-{world}')
            try:
                done = finish(job, PROGRAMS[name], world, limit=self.limit)
            finally:
                job.close()
            self.undisturbed[name, world] = done[:2]
        return self.undisturbed[name, world]

    def world(self, name, seed):
        worlds = PROGRAMS[name].worlds or self.worlds
        return worlds[seed % len(worlds)]

    def check(self, name, seed):
        """One run with kills. AssertionError with its output if it did not succeed."""
        chance = random.Random(f'{name} {seed}')
        world = self.world(name, seed)
        result, seconds = self.expected(name, world)
        for attempt in range(ATTEMPTS):
            job = self.job(f'{name}-seed-{seed}-{attempt}')
            try:
                kills, span = chance.randint(1, 3), seconds * 0.8 / 2**attempt
                got, _, killer = finish(
                    job, PROGRAMS[name], world, chance, kills, span, self.limit
                )
            finally:
                job.close()
            if killer.killed or got != result:
                return Outcome(got == result, world, killer.killed, killer.in_saves)
        raise AssertionError(f'each of {ATTEMPTS} runs was over before its kill')


class Kept:
    """Outcomes by program and seed, kept in a file of JSON lines if one is given."""

    def __init__(self, path):
        self.path, self.outcomes = path, {}
        lines = path.read_text(encoding='utf-8').splitlines() if path and path.exists() else []
        for line in lines:
            name, seed, outcome = json.loads(line)
            self.outcomes[name, seed] = Outcome(*outcome)

    def check(self, proof, name, seed):
        if (name, seed) not in self.outcomes:
            try:
                outcome = proof.check(name, seed)
            except (AssertionError, pytest.fail.Exception) as error:
                print(f'{name}, seed {seed}: {error}', file=sys.stderr)
                outcome = Outcome(False, proof.world(name, seed), 0, 0)
            self.outcomes[name, seed] = outcome
            if self.path:
                with self.path.open('a', encoding='utf-8') as file:
                    file.write(json.dumps([name, seed, outcome]) + '\n')
        return self.outcomes[name, seed]


def table(names, seeds, kept, *how):
    wrong = 0
    print('| program | runs | workers (runs) | kills | in a save | runs that ended otherwise |')
    print('| --- | ---: | --- | ---: | ---: | ---: |')
    with tempfile.TemporaryDirectory() as folder:
        proof = Proof(folder, *how)
        for name in names:
            outcomes = [kept.check(proof, name, seed) for seed in range(seeds)]
            bad = [seed for seed, outcome in enumerate(outcomes) if not outcome.is_equal]
            wrong += len(bad)
            kills = sum(outcome.killed for outcome in outcomes)
            in_saves = sum(outcome.in_saves for outcome in outcomes)
            runs = collections.Counter(outcome.world for outcome in outcomes)
            by_world = ', '.join(f'{world} ({count})' for world, count in sorted(runs.items()))
            row = (name, seeds, by_world, kills, in_saves, bad or 0)
            print('| ' + ' | '.join(str(cell) for cell in row) + ' |', flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--only', nargs='+', choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument('--workers', type=int, nargs='+', default=[1, 2, 4], help='world sizes')
    parser.add_argument('--seconds', type=int, default=600, help='that a run may take')
    parser.add_argument('--kept', type=pathlib.Path, help='where outcomes are kept and found')
    options = parser.parse_args()
    how = (options.workers, options.seconds)
    wrong = table(options.only, options.seeds, Kept(options.kept), *how)
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
