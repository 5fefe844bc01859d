"""One job of Python workers under one launcher, its stamps, and the clean-up of its processes."""

import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPTS = {
    'bare loop': (HERE / 'bare_loop.py',),
    'digits': (ROOT / 'examples/python/digits_ddp.py', '--epochs=100000', '--snapshot=digits.pt'),
}
RESTARTS = 100  # more than any measurement needs

Stamp = collections.namedtuple('Stamp', 'kind ns rank pid')
# `scripts`: by program, instead of those of SCRIPTS; other programs it does not run. None: all of
# SCRIPTS.
Launcher = collections.namedtuple(
    'Launcher', 'name command environment scripts', defaults=(None,)
)


def pss_mib(pid):
    """Resident memory, in which a page that n processes share counts as 1/n of its size."""
    found = re.search(r'^Pss:\s+(\d+) kB', machine.read(f'/proc/{pid}/smaps_rollup'), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0


class Job:
    """Use it as a context; its end kills what is left."""

    def __init__(self, launcher, ranks, program, options, slow_seconds=None):
        self.launcher, self.ranks, self.patience = launcher, ranks, options.patience
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='recovery-'))
        self.stamp_file = self.folder / 'stamps'
        self.stamp_file.touch()
        module = ['--import', 'slow_import'] if slow_seconds is not None else []
        own = ['--standalone', f'--nproc-per-node={ranks}', f'--max-restarts={RESTARTS}']
        script = [str(word) for word in (launcher.scripts or SCRIPTS)[program]]
        self.command = [*launcher.command, *own, str(HERE / 'stamped.py'), *module, *script]
        self.environment = {
            **machine.outer_environment(),
            'RECOVERY_STAMPS': str(self.stamp_file),
            'RECOVERY_DEVICE': options.device,
            'SLOW_IMPORT_SECONDS': str(slow_seconds or 0),
            'OMP_NUM_THREADS': '1',
            'PYTHONPATH': str(HERE),
            'TMPDIR': str(self.folder),
            **launcher.environment,
        }

    def __enter__(self):
        self.started_at = machine.now()
        self.process = self.start(self.command)
        return self

    def start(self, command, **environment):
        with open(self.folder / 'output', 'ab') as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self.environment, **environment},
                cwd=self.folder,
                start_new_session=True,
            )

    def __exit__(self, *_):
        # A launcher that has ended by itself may have left workers behind.
        mine = {*machine.with_descendants([self.process.pid]), *(s.pid for s in self.stamps())}
        self.process.send_signal(signal.SIGINT)
        machine.wait_until(lambda: self.process.poll() is not None, 5, 0.05)
        for pid in mine:
            machine.kill_program(pid, os.path.realpath(sys.executable))
        machine.stop(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    def stamps(self):
        lines = self.stamp_file.read_text().splitlines(keepends=True)
        whole = [line.split() for line in lines if line.endswith('\n')]
        return [Stamp(kind, int(ns), int(rank), int(pid)) for kind, ns, rank, pid in whole]

    def wait_for(self, kind, after=0, count=1):
        """{rank: its stamp number `count` of this kind after `after`} of all ranks, or None."""

        def found():
            stamps = collections.defaultdict(list)
            for stamp in self.stamps():
                if stamp.kind == kind and stamp.ns > after:
                    stamps[stamp.rank].append(stamp)
            got = {rank: own[count - 1] for rank, own in stamps.items() if len(own) >= count}
            return got if len(got) == self.ranks else None

        machine.wait_until(lambda: found() or self.process.poll() is not None, self.patience, 0.01)
        got = found()
        if not got:
            output = machine.read(self.folder / 'output')[-1500:]
            print(f'  {self.launcher.name}: no {kind} of all ranks; {output}', file=sys.stderr)
        return got
