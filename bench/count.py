#!/usr/bin/env python3
"""Compares instructions per operation of small parts with recorded ones; independent of the load.

    bench/count.py           # fails if a part needs over 10 % more than in bench/instructions.json
    bench/count.py --record  # rewrites that file
    bench/count.py --program build/check/bin/bench_parts

Counts with callgrind: the difference of two runs of different length excludes start and set-up.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / 'bench' / 'instructions.json'
ALLOWED = 1.10
# Iterations of the shorter run; the longer one has twice as many. 0: not counted, because it takes
# too long under callgrind or is mostly the kernel's work.
ITERATIONS = {
    'round_10_nodes': 100,
    'round_100_nodes': 0,
    'round_1000_nodes': 2,
    'round_10000_nodes': 0,
    'round_100000_nodes': 0,
    'spawn': 0,
    'tensor_file_open': 50,
    'tensor_file_write': 50,
}
DEFAULT_ITERATIONS = 500


def instructions(program, part, iterations):
    with tempfile.TemporaryDirectory() as folder:
        command = [
            'valgrind',
            '--tool=callgrind',
            f'--callgrind-out-file={folder}/out',
            program,
            '--count',
            part,
            str(iterations),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return int(re.search(r'Collected : (\d+)', done.stderr)[1])


def count(program, part):
    """Instructions per iteration; None for parts that are not counted."""
    iterations = ITERATIONS.get(part, DEFAULT_ITERATIONS)
    if not iterations:
        return None
    longer, shorter = (instructions(program, part, n) for n in (2 * iterations, iterations))
    return round((longer - shorter) / iterations)


def compare(counts, recorded):
    """Returns a text per deviation."""
    wrong = [f'{part}: not in {RECORD.name}' for part in counts if part not in recorded]
    wrong += [f'{part}: recorded, but not there' for part in recorded if part not in counts]
    wrong += [
        f'{part}: {counts[part]} instructions, recorded are {recorded[part]}'
        for part in counts
        if part in recorded and counts[part] > ALLOWED * recorded[part]
    ]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--program', default=ROOT / 'build' / 'check' / 'bin' / 'bench_parts')
    parser.add_argument('--record', action='store_true')
    options = parser.parse_args()
    listed = subprocess.run([options.program, '--list'], capture_output=True, text=True, check=True)
    counts = {part: count(options.program, part) for part in listed.stdout.split()}
    counts = {part: number for part, number in counts.items() if number is not None}
    recorded = json.loads(RECORD.read_text(encoding='utf-8')) if RECORD.exists() else {}
    for part, number in counts.items():
        print(f'{part:20} {number:>12,} {recorded.get(part, 0):>12,}')
    if options.record:
        RECORD.write_text(json.dumps(counts, indent=2, sort_keys=True) + '\n', encoding='utf-8')
        return
    wrong = compare(counts, recorded)
    print(*wrong, sep='\n')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
