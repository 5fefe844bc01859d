"""Suite output: four ranks print numbered lines through --tee; checks the lines, takes the time."""

import re

import machine
from job import Job
from rows import FLOOR, Goal

RANKS = 4
LENGTH = 80
BATCHES = {'a write per line': 0, 'writes of 64 KiB': 65536}
LINE = re.compile(rb'(?:\[[^\]]*\]:)?rank \d+ line \d+ x*\.\n')


def output(bench):
    for _ in bench.rounds('output'):
        for batch in BATCHES:
            for subject in bench.subjects(FLOOR):
                tee(bench, subject, batch)


def tee(bench, subject, batch):
    """The floor: the same workers write into one file directly."""
    count = RANKS * bench.size.lines
    case = f'tee, {RANKS} ranks × {bench.size.lines:,} lines, {batch}'
    speed = bench.rows.row(
        'output', f'{case}: until the launcher is gone', 'M lines/s', Goal(2, at_least=True)
    )
    wrong = bench.rows.row('output', f'{case}: lines cut, mixed or lost', '', Goal(0))
    with Job(bench) as job:
        console = job.folder / 'console'
        worker = ['lines', str(bench.size.lines), str(LENGTH), str(BATCHES[batch])]
        flags = ['--tee=3', f'--log-dir={job.folder / "logs"}']
        job.launch(bench.single(subject, RANKS, worker, flags), console=console)
        end = job.end()
        starts = [stamp.ns for stamp in job.stamps('S')]
        if end.code != 0 or not starts:
            job.complain(f'exit {end.code}')
            bench.add(subject, speed, None)
            return
        bench.add(subject, speed, count / machine.ms(min(starts), end.ns) / 1000)
        bench.add(subject, wrong, wrong_lines(console, count))


def wrong_lines(path, count):
    """The number of lines that are missing, unexpected or incomplete."""
    whole = others = 0
    with open(path, 'rb') as file:
        for line in file:
            if LINE.fullmatch(line):
                whole += 1
            else:
                others += 1
    return abs(count - whole) + others
