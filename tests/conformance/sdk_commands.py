"""The acceptance commands of the worker SDK's examples, as a table.

    tests/conformance/sdk_commands.py             # runs all rows, prints `id | ok | command`
    tests/conformance/sdk_commands.py B16 E12     # these only

Each command is bash and runs in an empty folder $T of its own, with the programs in PATH.
CPPRUN_BIN names their folder (default build/check/bin); ctest looks into the folder above it.
test_sdk_commands.py runs the same rows under pytest.
"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sdk_rows_ddp
import sdk_rows_launch

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build' / 'check' / 'bin')).resolve()
PYTHON = ROOT / '.venv' / 'bin'
SECONDS = 120
ROWS = [*sdk_rows_launch.ROWS, *sdk_rows_ddp.ROWS]


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(('::1', 0))
        return True
    except OSError:
        return False


def reason_to_skip(row):
    """Why a row cannot run on this machine; '' if it can."""
    if row.needs == 'gpu' and not pathlib.Path('/dev/nvidia0').exists():
        return 'no GPU here'
    if row.needs == 'ipv6' and not has_ipv6():
        return 'no IPv6 here'
    return ''


def environment(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('PET_', 'CPPRUN_'))}
    for name in ('RANK', 'WORLD_SIZE', 'OMP_NUM_THREADS'):
        env.pop(name, None)
    places = {'E': ROOT / 'examples' / 'python', 'T': folder, 'ROOT': ROOT, 'BIN': BIN}
    path = f'{BIN}:{PYTHON}:{env["PATH"]}'
    return {**env, **{k: str(v) for k, v in places.items()}, 'PATH': path, 'PORT': str(free_port())}


def by_path(command):
    """The command with the examples' paths: cpprun finds programs outside PATH only by their path.
    """
    return re.sub(r'(?<![\w/])ex_(?=\w+\b)', '$BIN/ex_', command)


def run(row, folder):
    """The difference from the wanted output; '' if there is none. Stderr counts as output, after
    stdout."""
    try:
        done = subprocess.run(
            ['bash', '-c', by_path(row.command)],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors='replace',
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f'not done after {SECONDS} s'
    if row.check(done.stdout) or row.check(done.stdout + done.stderr):
        return ''
    return f'wanted {row.check.wanted}; got:\n{done.stdout}{done.stderr}'


def main():
    wanted = sys.argv[1:]
    unknown = set(wanted) - {row.id for row in ROWS}
    if unknown:
        sys.exit(f'no such row: {", ".join(sorted(unknown))}')
    failed = []
    for row in ROWS:
        if wanted and row.id not in wanted:
            continue
        skipped = reason_to_skip(row)
        with tempfile.TemporaryDirectory() as folder:
            differs = '' if skipped else run(row, folder)
        failure_summary = f'skipped: {skipped}' if skipped else 'FAILED' if differs else 'ok'
        print(f'{row.id:14} | {failure_summary:6} | {row.command}', flush=True)
        if differs:
            failed.append(row.id)
            print('    ' + differs.strip().replace('\n', '\n    '), flush=True)
    print(f'failed: {" ".join(failed) or "none"}')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
