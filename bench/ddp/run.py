#!/usr/bin/env python3
"""Compares DDP in C++ with DDP in Python: the same nets on 2 ranks of 1 thread each, under cpprun.

    bench/ddp/run.py                    # all; prints Markdown for bench/README.md
    bench/ddp/run.py --quick            # a few steps: checks that everything works
    bench/ddp/run.py --only conv start

The programs take turns within a round, so that other load affects all of them; figures are medians
over the rounds. Build first: cmake --build build/check --target cpprun ddp_bench
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build' / 'check' / 'bin'))
PYTHON = os.environ.get('TORCH_PYTHON', str(ROOT / '.venv' / 'bin' / 'python'))
CPP = [str(BIN / 'ddp_bench')]
TWIN = [PYTHON, str(HERE / 'ddp_bench.py')]
# The environment variables for what the SDK sets with mallopt.
MALLOC = {
    'MALLOC_MMAP_THRESHOLD_': str(1 << 30),
    'MALLOC_TRIM_THRESHOLD_': '2000000000',
    'MALLOC_TOP_PAD_': str(64 << 20),
}
PROGRAMS = {  # name -> command, environment, further arguments
    'C++': (CPP, {}, []),
    'Python': (TWIN, {}, []),
    'Python, same malloc settings': (TWIN, MALLOC, []),
    'C++, malloc as it comes': (CPP, {'CPPRUN_MALLOC': 'default'}, []),
    'C++, fused SGD': (CPP, {}, ['fused']),
    'Python, fused SGD': (TWIN, {}, ['fused']),
}
NETS = {  # name, steps to warm up, steps
    'mlp': ('20 M MLP', 5, 30),
    'conv': ('conv net', 10, 60),
    'tiny': ('13 small layers', 200, 2000),
}
GOALS = {'mlp': 0.92, 'conv': 0.92, 'tiny': 0.65}


def launch(command, env, seconds=600):
    """Runs one job; returns the JSON lines of its ranks."""
    args = [str(BIN / 'cpprun'), '--standalone', '--nproc_per_node=2', '--no-python', *command]
    done = subprocess.run(  # noqa: S603
        args,
        env={**os.environ, 'OMP_NUM_THREADS': '1', **env},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        sys.exit(f'{" ".join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}')
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def turns(rounds, args):
    """{program: [its output in each round]}."""
    results = {name: [] for name in PROGRAMS}
    for number in range(rounds):
        names = list(PROGRAMS) if number % 2 == 0 else list(reversed(PROGRAMS))
        for name in names:
            command, env, more = PROGRAMS[name]
            results[name].append(launch([*command, *args, *more], env))
    return results


def median(runs, key):
    return statistics.median(run[0][key] for run in runs)


def same_losses(results, program):
    """In how many rounds all losses equal those of Python with the same optimizer."""
    args = PROGRAMS[program][2]
    twin = next(name for name, (to, _, own) in PROGRAMS.items() if to == TWIN and own == args)
    return sum(a[0]['losses'] == b[0]['losses'] for a, b in zip(results[program], results[twin]))


def bench_net(name, rounds, shrink):
    text, warmup, steps = NETS[name]
    args = [name, str(max(1, warmup // shrink)), str(max(2, steps // shrink))]
    results = turns(rounds, args)
    python = results['Python']
    base, wall = median(python, 'cpu_ms'), median(python, 'wall_ms')
    thread_base = median(python, 'training_cpu_ms')
    for program, runs in results.items():
        cpu, time = median(runs, 'cpu_ms'), median(runs, 'wall_ms')
        goal = f' (goal {GOALS[name]})' if program == 'C++' else ''
        row = (
            text,
            program,
            f'{cpu:.2f}',
            f'{cpu / base:.2f}{goal}',
            f'{median(runs, "training_cpu_ms") / thread_base:.2f}',
            f'{time:.2f}',
            f'{time / wall:.2f}',
            f'{median(runs, "faults"):.0f}',
            f'{median(runs, "rss_mib"):.0f}',
            f'{same_losses(results, program)} of {rounds} rounds',
        )
        print('| ' + ' | '.join(row) + ' |', flush=True)


UNTUNED = {'CPPRUN_MALLOC': 'default'}
STARTS = {  # command, environment
    'C++': ([*CPP, 'start'], {}),
    'C++, malloc as it comes': ([*CPP, 'start'], UNTUNED),
    'floor: LibTorch is loaded, malloc as it comes, at the start of main': (
        [*CPP, 'loaded'],
        UNTUNED,
    ),
    'Python': ([*TWIN, 'start'], {}),
}


def bench_start(rounds):
    seconds = {name: [] for name in STARTS}
    for _ in range(rounds):
        for name, (command, env) in STARTS.items():
            lines = launch([str(HERE / 'stamp.sh'), *command], env)
            seconds[name].append(max(line['start_s'] for line in lines))
    print('\n| program | exec to first all-reduce, the slower of 2 ranks, s |\n| --- | --- |')
    for name, taken in seconds.items():
        goal = ' (goal 0.15)' if name == 'C++' else ''
        print(f'| {name} | {statistics.median(taken):.3f}{goal} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--quick', action='store_true', help='one round of few steps')
    parser.add_argument('--only', nargs='*', choices=[*NETS, 'start'], default=[*NETS, 'start'])
    options = parser.parse_args()
    rounds, shrink = (1, 20) if options.quick else (options.rounds, 1)
    nets = [name for name in options.only if name in NETS]
    if nets:
        print('| net | program | CPU ms per step | to Python | training thread, to Python ', end='')
        print('| wall ms per step | to Python | page faults per step | peak MiB ', end='')
        print('| losses equal to Python |\n| --- | --- ' + '| ---: ' * 7 + '| --- |')
    for name in nets:
        bench_net(name, rounds, shrink)
    if 'start' in options.only:
        bench_start(rounds)


if __name__ == '__main__':
    main()
