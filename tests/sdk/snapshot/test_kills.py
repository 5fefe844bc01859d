"""Workers killed repeatedly: no committed step is lost, and the end equals that of an undisturbed
run."""

import os
import pathlib
import random
import re
import signal
import subprocess

import pytest
from launches import BIN

KILLS = 5


def workers(folder):
    """Processes of the case that run in this folder."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            words = (entry / 'cmdline').read_bytes().split(b'\0')
            if words[0].endswith(b'sdk_snapshot_cases') and os.readlink(entry / 'cwd') == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def command(folder, *how):
    words = ['snapshot_train', f'dir={folder}', 'epochs=60', 'every=3', 'prints=1', *how]
    flags = ['--standalone', '--nproc_per_node=2', f'--max-restarts={KILLS}', '--no-python']
    return [str(BIN / 'cpprun'), *flags, str(BIN / 'sdk_snapshot_cases'), *words]


def end_of(out):
    return sorted(set(re.findall(r'^rank \d (?:hash|draws|seen) .*$', out, re.M)))


@pytest.mark.parametrize(
    ('seed', 'how'),
    [(1, ()), (2, ()), (3, ('async=1', 'waits=1', 'disk_every=12'))],
    ids=['1', '2', 'disk_every'],
)
def test_kills_at_any_moment_change_nothing(ranks, seed, how):
    quiet = ranks.run(*command('quiet')).well()
    dice = random.Random(seed)
    env = {**os.environ, 'OMP_NUM_THREADS': '1'}
    lines, kills, countdown = [], 0, dice.randint(1, 8)
    with subprocess.Popen(
        command('killed', *how), cwd=ranks.folder, env=env, stdout=subprocess.PIPE, text=True
    ) as job:
        for line in job.stdout:
            lines.append(line)
            countdown -= ' saved 1' in line
            alive = workers(str(ranks.folder)) if countdown < 0 and kills < KILLS else []
            if not alive:
                continue
            try:
                os.kill(dice.choice(alive), signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has ended meanwhile: the next line tries again
            kills, countdown = kills + 1, dice.randint(1, 8)
    out = ''.join(lines)
    assert job.returncode == 0, out
    assert kills == KILLS
    assert end_of(out) == end_of(quiet.out)
    resumed = [int(step) for step in re.findall(r'^rank 0 from \w+ step (\d+)', out, re.M)]
    assert resumed == sorted(resumed)  # never behind an earlier resume
