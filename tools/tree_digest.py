"""A digest of the simulator's sources, which identifies the tree in records of its runs."""

import hashlib
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = (
    'CMakeLists.txt cmake common rendezvous/store rendezvous/coordinator rendezvous/observe '
    'rendezvous/protocol rendezvous/client/core agent/core tests/support/sim tests/sim/sim_run.cpp'
).split()


def digest():
    """12 hex digits: a hash of the names and contents of all sources of sim_run."""
    names = subprocess.run(
        ['git', 'ls-files', '-co', '--exclude-standard', '--', *PARTS],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    total = hashlib.sha256()
    for name in sorted(set(names)):
        path = ROOT / name
        if not path.is_file():
            continue
        total.update(f'{name}\0{path.stat().st_size}\0'.encode())
        total.update(path.read_bytes())
    return total.hexdigest()[:12]


def commit():
    """The current commit, with a + if files differ from it."""
    command = ['git', 'describe', '--always', '--dirty=+', '--exclude=*']
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return run.stdout.strip()
