"""Parameters of all suites: the programs under test, the amount of work, the collected rows."""

import dataclasses
import itertools
import pathlib
import sys

import machine
from curves import Growth
from rows import FLOOR, Rows


@dataclasses.dataclass
class Size:
    """How much is measured. `patience` is the limit of every wait, in seconds."""

    runs: int = 5
    slow_runs: int = 2  # of elastic and scale, where torchrun waits for its timeouts
    patience: float = 90
    workers: tuple = (1, 8, 32)
    node: int = 8  # workers of one node in respawn, footprint, orphans
    crashes: int = 4
    idle: float = 5
    agents: tuple = (10, 32, 100, 316, 1000)
    core_nodes: tuple = (100, 1000, 10_000, 100_000)
    their_agents: int = 32
    lines: int = 1_000_000
    load: float = 1
    all_shapes: bool = True
    all_losses: bool = True


QUICK = Size(
    runs=1,
    slow_runs=1,
    patience=20,
    workers=(2,),
    node=2,
    crashes=2,
    idle=0.3,
    agents=(3,),
    core_nodes=(100,),
    their_agents=3,
    lines=2000,
    load=0.05,
    all_shapes=False,
    all_losses=False,
)


class Bench:
    def __init__(self, size, launchers, helpers, torch_python, folder):
        self.size = size
        self.launchers = launchers  # name -> command
        self.worker, self.pong, self.load = (
            (helpers / f'compare_{name}').resolve() for name in ('worker', 'pong', 'load')
        )
        self.parts = (helpers / 'bench_parts').resolve()
        self.torch_python = torch_python
        self.folder = pathlib.Path(folder)
        self.rows = Rows()
        self.growth = Growth()
        self.turns = itertools.count()

    def ctl(self, subject):
        """The cpprunctl of a build of cpprun."""
        return pathlib.Path(self.launchers[subject][0]).with_name('cpprunctl')

    def subjects(self, *more):
        """Names of all launchers and `more`, with the order reversed in every other round."""
        names = [*more, *self.launchers]
        return names if next(self.turns) % 2 == 0 else names[::-1]

    def rounds(self, suite, is_slow=False):
        runs = self.size.slow_runs if is_slow else self.size.runs
        for number in range(1, runs + 1):
            print(f'{suite}: round {number} of {runs}', file=sys.stderr, flush=True)
            yield number

    def add(self, subject, row, value):
        row.add(subject, value)
        shown = 'none' if value is None else f'{value:.4g} {row.unit}'
        print(f'  {row.case} | {subject} | {shown}', file=sys.stderr, flush=True)

    def single(self, subject, count, worker, flags=(), attempts=1):
        """The command that starts `count` workers on one node; the floor starts them itself."""
        args = [str(self.worker), *worker]
        if subject == FLOOR:
            return [str(self.worker), 'spawn', str(count), str(attempts), *args]
        own = ['--standalone', f'--nproc-per-node={count}', f'--max-restarts={attempts - 1}']
        return [*self.launchers[subject], *own, *flags, '--no-python', *args]

    def meeting(self, subject, nodes, count, endpoint, worker, flags=()):
        """The command of one agent of several that meet at `endpoint`."""
        own = [f'--nnodes={nodes}', f'--nproc-per-node={count}', '--rdzv-backend=c10d']
        own += [f'--rdzv-endpoint={endpoint}', '--rdzv-id=compare', '--max-restarts=3']
        args = [str(self.worker), *worker]
        return [*self.launchers[subject], *own, *flags, '--no-python', *args]


def local_endpoint():
    return f'127.0.0.1:{machine.free_port()}'
