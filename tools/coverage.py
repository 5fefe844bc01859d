#!/usr/bin/env python3
"""Measures how unit tests, scenarios and the simulator cover the cores; fails below the limits.

    tools/coverage.py                # builds preset coverage, runs all, prints a table
    tools/coverage.py --missing      # also prints the lines and branches that were not reached
    tools/coverage.py --only-report  # prints the table of the last run

Counts lines and the source's branches. Excludes the branches that g++ adds for exceptions and for
destructors, since no core throws (docs/simulation.md). `tools/deps.sh --coverage` installs gcovr.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / 'build/coverage'
GCOVR = ROOT / 'build/venv-coverage/bin/gcovr'
REPORT = BUILD / 'coverage.json'
TARGETS = ['unit_tests', 'scenario_run', 'sim_run']
SEEDS = 300
LINES, BRANCHES = 95.0, 90.0  # percent, for each part
PARTS = {  # part -> regular expression for its files
    'rendezvous/store': r'rendezvous/store/.*',
    'rendezvous/coordinator': r'rendezvous/coordinator/.*',
    'rendezvous/observe': r'rendezvous/observe/.*',
    'rendezvous/protocol': r'rendezvous/protocol/(?!transfer/).*',
    'rendezvous/client/core': r'rendezvous/client/core/.*',
    'agent/core': r'agent/core/.*',
    # Without log and machine, which do I/O.
    'common': r'common/(faults/|failure/|proof/)?[^/]*$',
}


def call(*command):
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


def build():
    quiet = {'cwd': ROOT, 'check': True, 'stdout': subprocess.DEVNULL}
    subprocess.run(['cmake', '--preset', 'coverage', '-DCPPRUN_TORCH=OFF'], **quiet)
    call('cmake', '--build', BUILD, '-j', '2', '--target', *TARGETS)


def run_one(command):
    args, env = command
    line = ['env', *env, *(str(arg) for arg in args)]
    return args, subprocess.run(line, cwd=ROOT, capture_output=True, text=True)


def run_all():
    """Runs all programs. They add to the same count files; gcov's runtime locks those."""
    for counts in BUILD.rglob('*.gcda'):
        counts.unlink()
    half = SEEDS // 2
    sim = BUILD / 'tests/sim/sim_run'
    texts = (ROOT / 'tests/scenarios').glob('*.txt')
    scenarios = sorted(path for path in texts if path.name != 'CMakeLists.txt')
    commands = [
        *(
            ([BUILD / 'tests/unit_tests'], ['GTEST_TOTAL_SHARDS=2', f'GTEST_SHARD_INDEX={shard}'])
            for shard in range(2)
        ),
        ([sim, '--seeds', f'1:{half}'], []),
        ([sim, '--seeds', f'{half + 1}:{SEEDS}'], []),
        ([sim, '--kept', 'tests/sim/seeds.txt'], []),
        *(([BUILD / 'tests/scenarios/scenario_run', path], []) for path in scenarios),
    ]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for args, done in pool.map(run_one, commands):
            if done.returncode != 0:
                sys.exit(f'{args} failed:\n{(done.stdout + done.stderr)[-3000:]}')


def report():
    filters = [word for part in PARTS.values() for word in ('--filter', part)]
    call(
        GCOVR,
        *('--root', ROOT, '--object-directory', BUILD, BUILD, '-j', '2'),
        *('--exclude-throw-branches', '--exclude-unreachable-branches'),
        *('--exclude-directories', '.*/CompilerId.*'),  # CMake's compiler tests
        *('--merge-mode-functions', 'separate', '--gcov-ignore-parse-errors=all'),
        *filters,
        *('--json', REPORT),
    )


def merged(lines):
    """Adds up the counts of a template's instances for each line."""
    by_number = {}
    for line in lines:
        branches = [branch['count'] for branch in line.get('branches', [])]
        known = by_number.get(line['line_number'])
        if known is None:
            by_number[line['line_number']] = {'count': line['count'], 'branches': branches}
            continue
        known['count'] += line['count']
        if len(branches) == len(known['branches']):
            known['branches'] = [a + b for a, b in zip(branches, known['branches'])]
        else:
            known['branches'] = max(branches, known['branches'], key=len)
    return by_number


def counts_of(lines):
    """(lines, lines reached, branches, branches reached)"""
    taken = [line['count'] > 0 for line in lines.values()]
    branches = [count > 0 for line in lines.values() for count in line['branches']]
    return len(taken), sum(taken), len(branches), sum(branches)


def part_of(name):
    """The part with the longest matching path: parts are nested."""
    return max((part for part in PARTS if name.startswith(part + '/')), key=len)


def share(reached, all_there):
    return 100.0 * reached / all_there if all_there else 100.0


def row(name, sums):
    lines, lines_reached, branches, branches_reached = sums
    return (
        f'{name:42} {lines_reached:5}/{lines:5} {share(lines_reached, lines):6.1f} % '
        f'{branches_reached:5}/{branches:5} {share(branches_reached, branches):6.1f} %'
    )


def print_missing(lines):
    never = [str(number) for number, line in lines.items() if line['count'] == 0]
    half = [
        str(number)
        for number, line in lines.items()
        if line['count'] and any(count == 0 for count in line['branches'])
    ]
    if never:
        print('      never reached: ' + ' '.join(never))
    if half:
        print('      not both ways: ' + ' '.join(half))


def check_limits(wants_missing):
    files = json.loads(REPORT.read_text())['files']
    sums = {part: [0, 0, 0, 0] for part in PARTS}
    print(f'{"":42} {"lines":>20} {"branches":>20}')
    for file in sorted(files, key=lambda each: each['file']):
        lines = merged(file['lines'])
        counts = counts_of(lines)
        total = sums[part_of(file['file'])]
        total[:] = [a + b for a, b in zip(total, counts)]
        if wants_missing and (counts[0] > counts[1] or counts[2] > counts[3]):
            print(row('  ' + file['file'], counts))
            print_missing(lines)
    below = []
    for part, total in sums.items():
        print(row(part, total))
        if share(total[1], total[0]) < LINES or share(total[3], total[2]) < BRANCHES:
            below.append(part)
    if below:
        print(f'below {LINES:.0f} % of lines or {BRANCHES:.0f} % of branches: ' + ', '.join(below))
    return 1 if below else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--missing', action='store_true')
    parser.add_argument('--only-report', action='store_true')
    wanted = parser.parse_args()
    if not GCOVR.exists():
        sys.exit('gcovr is missing: run tools/deps.sh --coverage')
    if not wanted.only_report:
        build()
        run_all()
        report()
    sys.exit(check_limits(wanted.missing))


if __name__ == '__main__':
    main()
