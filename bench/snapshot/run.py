#!/usr/bin/env python3
"""What snapshots cost the training, and how long resuming takes: 2 ranks, 1 GiB of state.

    bench/snapshot/run.py                    # prints Markdown for bench/README.md
    bench/snapshot/run.py --mib 64 --quick   # checks that everything works
    bench/snapshot/run.py --dir /mnt/fast    # another disk

Each figure is accompanied by what the machine needs for the same bytes in the same run: a plain
copy of memory, a plain write with fsync. Build first:
cmake --build build/check --target cpprun snapshot_bench
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build' / 'check' / 'bin'))
MIB = 1 << 20


def launch(*args, restarts=0, seconds=600):
    """Runs one job of two ranks; returns all their JSON lines."""
    command = [BIN / 'cpprun', '--standalone', '--nproc_per_node=2', f'--max_restarts={restarts}']
    command += ['--no-python', BIN / 'snapshot_bench', *args]
    done = subprocess.run(  # noqa: S603
        [str(arg) for arg in command],
        env={**os.environ, 'OMP_NUM_THREADS': '1'},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        sys.exit(f'{command}: exit {done.returncode}\n{done.stdout}{done.stderr}')
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def disk_seconds(folder, mib):
    """Seconds of one plain write with fsync: the speed of the disk itself."""
    block = os.urandom(MIB)
    path = folder / 'plain'
    start = time.monotonic()
    with path.open('wb') as file:
        for _ in range(mib):
            file.write(block)
        os.fsync(file.fileno())
    taken = time.monotonic() - start
    path.unlink()
    return taken


def drop_page_cache(folder):
    """For the files below `folder`; does not need root."""
    for path in folder.rglob('*'):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def median(lines, key):
    return statistics.median(line[key] for line in lines)


def decision(value, goal):
    return f'{value:.2f} (goal {goal})'


def bench_pause(folder, mib, times, parameters):
    lines = launch('pause', folder, mib, times, parameters)
    paused, copied = median(lines, 'pause_s'), median(lines, 'copy_s')
    per_gib = 1000 * 2 / (mib / 1024)  # ms; each rank stages half
    print('| | pause, ms per GiB | plain copy | pause to copy | whole save, s | plain write, s |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    print(
        f'| wall | {paused * per_gib:.0f} (goal 120) | {copied * per_gib:.0f} '
        f'| {decision(paused / copied, 1.3)} | {median(lines, "whole_s"):.2f} '
        f'| {disk_seconds(folder, mib):.2f} |'
    )
    paused, copied = median(lines, 'pause_cpu_s'), median(lines, 'copy_cpu_s')
    print(
        f'| CPU | {paused * per_gib:.0f} | {copied * per_gib:.0f} | {paused / copied:.2f} '
        f'| {median(lines, "save_cpu_s") * 2:.2f}, both ranks | |\n'
    )


def bench_train(folder, mib, seconds):
    lines = launch('train', folder, mib, seconds)

    def both(key):
        return [median([x for x in lines if x['saves'] == saves], key) for saves in (False, True)]

    def to_neighbours(key):
        """Ratios of the turns with saves to the adjacent ones: the machine's speed drifts."""
        values = [line[key] for line in lines]
        return statistics.median(
            2 * values[i] / (values[i - 1] + values[i + 1]) for i in range(1, len(values) - 1, 2)
        )

    without, saving = both('steps_per_s')
    print('| | without saves | with a save every 2 s | ratio | saves |')
    print('| --- | ---: | ---: | ---: | ---: |')
    saved = sum(line['saved'] for line in lines)
    print(
        f'| steps per second | {without:.1f} | {saving:.1f} '
        f'| {decision(to_neighbours("steps_per_s"), 0.95)} | {saved} |'
    )
    cpu_without, cpu_saving = both('cpu_s_per_step')
    ratio = f'{1 / to_neighbours("cpu_s_per_step"):.2f}'
    print(f'| steps per second of CPU | {1 / cpu_without:.1f} | {1 / cpu_saving:.1f} | {ratio} | |')
    # The duration of a save does not depend on how many steps run beside it.
    left = decision(1 - (cpu_saving - cpu_without) * saving, 0.95)
    label = 'share of a core that is left beside the saves, if a rank has its own core'
    print(f'| {label} | | {left} | | |\n')


def bench_resume(folder, mib, rounds):
    seconds, cpu = {'memory': [], 'disk': []}, {'memory': [], 'disk': []}
    for number in range(rounds):
        place = folder / f'round-{number}'
        for kind, restarts in (('memory', 1), ('disk', 0)):
            lines = launch('resume', place, mib, restarts=restarts)
            lines = [line for line in lines if line['from'] == kind]
            seconds[kind] += [max(line['resume_s'] for line in lines)]
            cpu[kind] += [max(line['user_s'] + line['system_s'] for line in lines)]
            drop_page_cache(place)
        shutil.rmtree(place)
    memory, disk = (statistics.median(seconds[kind]) for kind in ('memory', 'disk'))
    print('| | resume from memory, s | from disk, page cache dropped, s | ratio |')
    print('| --- | ---: | ---: | ---: |')
    print(f'| wall | {memory:.3f} | {disk:.3f} | {decision(disk / memory, 5)} |')
    memory, disk = (statistics.median(cpu[kind]) for kind in ('memory', 'disk'))
    print(f'| CPU | {memory:.3f} | {disk:.3f} | |')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--mib', type=int, default=1024)
    parser.add_argument('--parameters', type=int, default=64, help='for `pause`')
    parser.add_argument('--dir', type=pathlib.Path, help='default: a temporary folder')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--only', nargs='*', choices=['pause', 'train', 'resume'])
    options = parser.parse_args()
    wanted = options.only or ['pause', 'train', 'resume']
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        folder = pathlib.Path(name)
        if 'pause' in wanted:
            bench_pause(folder, options.mib, 2 if options.quick else 7, options.parameters)
        if 'train' in wanted:
            bench_train(folder, options.mib, 3 if options.quick else 6)
        if 'resume' in wanted:
            bench_resume(folder, options.mib, 1 if options.quick else 3)


if __name__ == '__main__':
    main()
