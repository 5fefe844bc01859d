#!/usr/bin/env python3
"""What each stage of the gate costs, and whether a stage has grown too much (docs/testing.md).

    tools/budget.py begin FOLDER NAME PID    # before a stage or a part of it, which PID starts
    tools/budget.py end FOLDER NAME PID      # after it
    tools/budget.py check FOLDER [FAILED-STAGE...]
    tools/budget.py record FOLDER            # writes tests/budget.json: on a quiet machine only

A cost is in core seconds of the reference machine, which has two cores. It is the CPU time of the
processes that PID has waited for, and the time in which one of two cores had nothing to do. Compile
time does not count, because it depends on the compiler cache: test.sh measures it as a part of its
own, `STAGE.compile`. Both halves are divided by what this machine needs for a fixed workload,
compared with the reference machine. So a slow machine, or one with other work, can't fail.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

RECORD = pathlib.Path(__file__).resolve().parents[1] / 'tests' / 'budget.json'
CORES = 2  # of the reference machine, and slots of the gate
TICKS = os.sysconf('SC_CLK_TCK')
ALLOWED = 60 * CORES  # a capability may add one minute to the gate
# Recorded costs may differ by this factor between kinds of machines: their caches and kernels
# differ, and the fixed workload does not resemble each stage.
MARGIN = 1.25
NOT_COMPARED = ('tidy',)  # depends on the number of changed files
# Of tests/budget.json: with the tests of tests/slow.txt the stages cost more. Each kind has the
# calibration of the run that made its records.
STAGES = 'slow_stages' if os.environ.get('CPPRUN_SLOW') else 'stages'


def work():
    """The fixed workload: arithmetic, objects, files and processes, as in most tests."""
    total = 0
    for number in range(2_000_000):
        total += number * number % 7
    text = json.dumps([{str(n): [n] * 10} for n in range(2_000)])
    for _ in range(5):
        json.loads(text)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(100):
            pathlib.Path(folder, str(number)).write_text(text[:4096])
            subprocess.run(['/bin/true'], check=True)


def calibrate():
    """CPU seconds and wall seconds of the workload, run by one process per core."""
    start = time.monotonic()
    command = [sys.executable, __file__, 'work']
    children = [subprocess.Popen(command) for _ in range(CORES)]
    cpu = 0.0
    for child in children:
        _, status, used = os.wait4(child.pid, 0)
        assert status == 0, 'the workload failed'
        child.returncode = 0
        cpu += used.ru_utime + used.ru_stime
    return {'cpu': cpu, 'wall': time.monotonic() - start}


def cpu_of_children(pid):
    after_name = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(after_name[13]) + int(after_name[14])) / TICKS  # cutime, cstime


def busy_of_machine():
    """Core seconds since boot with work, which includes waiting for disks and for the host."""
    user, nice, system, _idle, iowait, irq, softirq, steal = map(
        int, pathlib.Path('/proc/stat').read_text().split('\n')[0].split()[1:9]
    )
    return (user + nice + system + iowait + irq + softirq + steal) / TICKS


def cache_misses():
    """Files that had to be compiled so far, of all processes that use the compiler cache."""
    try:
        done = subprocess.run(['ccache', '--print-stats'], capture_output=True, text=True)
    except FileNotFoundError:
        return 0
    return sum(
        int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith('cache_miss\t')
    )


def sample(pid):
    return {
        'cpu': cpu_of_children(pid),
        'busy': busy_of_machine(),
        'misses': cache_misses(),
        'wall': time.monotonic(),
    }


def difference(before, after):
    used = {name: after[name] - before[name] for name in after}
    cores = min(CORES, len(os.sched_getaffinity(0)))
    used['wait'] = max(0.0, used['wall'] * cores - used.pop('busy'))
    return used


def is_part(name):
    return '.' in name


def begin(folder, name, pid):
    """The calibration after one stage is the one before the next."""
    speed = folder / 'speed'
    if not speed.exists():
        speed.write_text(json.dumps(calibrate()))
    start = {'speed': json.loads(speed.read_text()), 'sample': sample(pid)}
    (folder / f'{name}.begin').write_text(json.dumps(start))


def end(folder, name, pid):
    after = sample(pid)
    start = json.loads((folder / f'{name}.begin').read_text())
    used = difference(start['sample'], after)
    if is_part(name):
        print(f'=== {name}: {used["wall"]:.0f} s, CPU time {used["cpu"]:.0f} s')
    else:
        speed = calibrate()
        (folder / 'speed').write_text(json.dumps(speed))
        used['speeds'] = [start['speed'], speed]
    (folder / f'{name}.cost').write_text(json.dumps(used))


def read(folder):
    """{stage: cost}, in the order of the stages; each with `compile`, the cost of that part."""
    files = sorted(folder.glob('*.cost'), key=lambda path: path.stat().st_mtime_ns)
    costs = {path.stem: json.loads(path.read_text()) for path in files}
    stages = {name: cost for name, cost in costs.items() if not is_part(name)}
    for name, cost in stages.items():
        parts = [part for key, part in costs.items() if key.startswith(f'{name}.')]
        cost['compile'] = sum(part['cpu'] for part in parts)
        for kind in ('cpu', 'wait', 'misses'):
            cost[kind] = max(0, cost[kind] - sum(part[kind] for part in parts))
        cost['tests'] = number_of_tests(folder, name)
    return stages


def number_of_tests(folder, stage):
    count = 0
    for path in [*folder.glob(f'{stage}.xml'), *folder.glob(f'{stage}[-.]*.xml')]:
        try:
            count += sum(1 for _ in ElementTree.parse(path).iter('testcase'))
        except ElementTree.ParseError:
            pass  # summary.py reports it
    return count


def in_reference_seconds(cost, calibration):
    """Core seconds that the stage would cost on the reference machine, or more. The slower of both
    calibrations counts; a faster machine than the reference machine counts as one like it, because
    neither timers nor libFuzzer end earlier there."""

    def slowness(kind):
        ratios = [speed[kind] / calibration[kind] for speed in cost['speeds']]
        return max(1.0, *ratios)

    return cost['cpu'] / slowness('cpu') + cost['wait'] / slowness('wall')


def excess(name, cost, record):
    """Core seconds above the recorded cost and its margin, or None with the reason."""
    if name in NOT_COMPARED:
        return None, 'not compared'
    if cost['misses'] > 0:
        return None, 'compiled in its tests: not compared'
    known = record[STAGES].get(name)
    if known is None:
        return None, 'no record: not compared'
    return max(0.0, in_reference_seconds(cost, record['calibration'][STAGES]) - MARGIN * known), ''


def median_speed(stages):
    """What the fixed workload has cost, before and after the stages."""
    speeds = [speed for cost in stages.values() for speed in cost['speeds']]
    return {kind: statistics.median(speed[kind] for speed in speeds) for kind in ('cpu', 'wall')}


def check(folder, failed):
    """Prints the table. Returns the stages that together exceed what is allowed."""
    record = json.loads(RECORD.read_text())
    stages = read(folder)
    everything = sum(cost['wall'] for cost in stages.values()) or 1
    print(' share  seconds  compile CPU  test CPU  waiting  tests  cost / recorded  stage')
    excesses = {}
    for name, cost in stages.items():
        over, why = None, 'failed: not compared'
        if name not in failed:
            over, why = excess(name, cost, record)
        if over:
            excesses[name] = over
        known = record[STAGES].get(name)
        print(
            f'  {100 * cost["wall"] / everything:3.0f} %  {cost["wall"]:7.0f}'
            f'  {cost["compile"]:11.0f}  {cost["cpu"]:8.0f}  {cost["wait"]:7.0f}  {cost["tests"]:5}'
            f'  {in_reference_seconds(cost, record["calibration"][STAGES]):4.0f} / '
            f'{"?" if known is None else known:<8}  {name}{why and ": "}{why}'
        )
    if stages:
        slowness = median_speed(stages)['cpu'] / record['calibration'][STAGES]['cpu']
        print(
            f'On this machine the fixed workload takes {slowness:.2f} times the CPU time of the '
            'reference machine.'
        )
    if sum(excesses.values()) <= ALLOWED:
        return {}
    return excesses


def record_costs(folder):
    """The middle calibration of this run becomes the reference, so each cost is as measured.
    A stage that ran nothing, or compiled something in its tests, keeps its old record."""
    stages = read(folder)
    record = json.loads(RECORD.read_text())
    record['calibration'][STAGES] = {
        kind: round(speed, 2) for kind, speed in median_speed(stages).items()
    }
    costs = record[STAGES]
    for name, cost in stages.items():
        seconds = round(cost['cpu'] + cost['wait'])
        if seconds and name not in NOT_COMPARED and cost['misses'] == 0:
            costs[name] = seconds
    RECORD.write_text(json.dumps(record, indent=2) + '\n')


def main():
    what, *args = sys.argv[1:] or ['']
    if what == 'work':
        work()
    elif what in ('begin', 'end') and len(args) == 3:
        (begin if what == 'begin' else end)(pathlib.Path(args[0]), args[1], int(args[2]))
    elif what == 'record' and len(args) == 1:
        record_costs(pathlib.Path(args[0]))
    elif what == 'check' and args:
        grown = check(pathlib.Path(args[0]), args[1:])
        if grown:
            shown = ', '.join(f'{name} by {over:.0f}' for name, over in grown.items())
            sys.exit(
                f'budget: more than {ALLOWED} core seconds above tests/budget.json and its margin:'
                f' {shown}. Make the tests cheaper, or move them to --all (docs/testing.md)'
            )
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
