"""Suite scale: many agents meet, lose some, continue and end; the cost for their coordinator.

For more nodes than fit on one machine it runs only the coordinator's core (bench_parts).
"""

import re
import signal
import statistics
import subprocess
import time

import machine
from bench import local_endpoint
from job import Job
from rows import OURS, THEIRS, Goal

LEASE = 5  # seconds; expires before an agent killed with unread messages counts as lost
FEW, MANY = 32, 1000  # only these have a goal for meeting; else the starts take most of the time
WORK = 200_000  # failures x nodes to time in the core, with at least five failures


def scale(bench):
    for _ in bench.rounds('scale', is_slow=True):
        for count in bench.size.agents:
            for subject in bench.subjects():
                if subject != THEIRS or count <= bench.size.their_agents:
                    Crowd(bench, subject, count).run()
        for count in bench.size.core_nodes:
            core(bench, count)


class Crowd:
    """One job of many agents with one worker each; the first agent hosts the coordinator.

    torchrun only has to meet: suite elastic covers how its rendezvous loses nodes.
    """

    def __init__(self, bench, subject, count):
        self.bench, self.subject, self.count = bench, subject, count
        self.lost = max(1, count // 100)
        self.stays = subject != THEIRS
        self.meeting = f'{count} agents meet'
        self.losing = f'{count} agents lose {self.lost}'
        self.ending = f'{count - self.lost} agents end'

    def run(self):
        with Job(self.bench) as job:
            if not self.meet(job) or not self.stays:
                return
            self.idle(job)
            left = list(job.launched.values())[: self.count - self.lost]
            if workers := self.lose(job, left):
                self.end(job, left, workers)

    def add(self, case, unit, value, goal=None):
        row = self.bench.rows.row('scale', case, unit, goal)
        self.bench.add(self.subject, row, value)
        return row

    def command(self, endpoint, number):
        nodes, flags = self.count, []
        if self.stays:
            nodes = f'{self.count - self.lost}:{self.count}'
            flags = [f'--rdzv-conf=is_host={int(number == 0)},last_call_timeout=600']
        return self.bench.meeting(self.subject, nodes, 1, endpoint, ['wait'], flags)

    def meet(self, job):
        """Waits until all agents have met; False if the time is up."""
        endpoint = local_endpoint()
        for number in range(self.count):
            job.launch(self.command(endpoint, number), f'n{number}')
        workers = job.workers(self.count, world=self.count)
        first = Goal(1) if self.count <= FEW else None
        last = Goal(5) if self.count >= MANY else None
        if not workers:
            self.add(f'{self.meeting}: first exec to last worker', 's', None, first)
            return False
        starts = [stamp.ns for stamp in job.stamps('X')]
        for which, start, goal in (('first', min(starts), first), ('last', max(starts), last)):
            took = machine.ms(start, workers[-1].ns) / 1000
            self.add(f'{self.meeting}: {which} exec to last worker', 's', took, goal)
        roots = [process.pid for process in job.launched.values()]
        own = set(machine.with_descendants(roots)) - {worker.pid for worker in workers}
        each = sum(map(machine.rss_mib, own)) / self.count
        self.add(f'{self.meeting}: RSS per agent', 'MiB', each, Goal(10))
        if self.stays:
            self.cpu('meeting', self.meeting, self.coordinators(roots, machine.cpu_us))
            memory = 1024 * self.coordinators(roots, machine.rss_mib)
            row = self.add(f"{self.meeting}: coordinator's memory per agent", 'KiB', memory)
            self.bench.growth.add('memory', 'real agents', self.count, row)
        return True

    def coordinators(self, roots, measure):
        """What the hosting agent needs more than the others, divided by the number of agents."""
        ordinary = statistics.median(map(measure, roots[1:]))
        return max(0, measure(roots[0]) - ordinary) / self.count

    def cpu(self, doing, case, value):
        row = self.add(f"{case}: coordinator's CPU per agent", 'µs', value)
        self.bench.growth.add('CPU', f'real agents, {doing}', self.count, row)

    def idle(self, job):
        """Measures while the job only exchanges heartbeats."""
        roots, seconds = [process.pid for process in job.launched.values()], self.bench.size.idle
        before = self.coordinators(roots, machine.cpu_us)
        time.sleep(seconds)
        spent = (self.coordinators(roots, machine.cpu_us) - before) / seconds
        self.cpu('running, per second', f'{self.count} agents run, per second', max(0, spent))

    def lose(self, job, left):
        """Kills all agents but these; returns the workers of the next round, if there is one."""
        roots = [process.pid for process in left]
        before = self.coordinators(roots, machine.cpu_us)
        killed = machine.now()
        for process in list(job.launched.values())[len(left) :]:
            process.kill()
        workers = job.workers(len(left), world=len(left), after=killed)
        took = machine.ms(killed, workers[-1].ns) / 1000 if workers else None
        self.add(f'{self.losing}: to the new workers of all others', 's', took, Goal(LEASE + 1))
        if workers:
            spent = self.coordinators(roots, machine.cpu_us) - before
            self.cpu('losing some', self.losing, max(0, spent))
        return workers

    def end(self, job, left, workers):
        """Ends all workers successfully; the job is over when the last agent has exited."""
        for worker in workers:
            machine.kill_program(worker.pid, self.bench.worker, signal.SIGUSR1)
        ends = [machine.wait_for_end(process, self.bench.size.patience) for process in left]
        last = max((stamp.ns for stamp in job.stamps('E')), default=0)
        took = machine.ms(last, max(end.ns for end in ends)) / 1000
        if any(end.code != 0 for end in ends):
            job.complain(f'agents ended by {sorted({str(end.code) for end in ends})}')
            took = None
        self.add(f'{self.ending}: last worker gone to last agent gone', 's', took)


def core(bench, count):
    """A failure and the next round in the coordinator's core, without processes or sockets."""
    runs = max(5, WORK // count)
    few, many = core_alone(bench, count, 1), core_alone(bench, count, 1 + runs)
    base = core_alone(bench, 10, 1)
    values = {
        'CPU': ('µs', (many[0] - few[0]) / runs / count, 'CPU per node of a failure'),
        'memory': ('KiB', (few[1] - base[1]) / count, 'memory per node'),
    }
    for what, (unit, value, text) in values.items():
        row = bench.rows.row('scale', f'{count} nodes in the core alone: {text}', unit)
        bench.add(OURS, row, max(0, value))
        name = 'the core alone, losing some' if what == 'CPU' else 'the core alone'
        bench.growth.add(what, name, count, row)


def core_alone(bench, count, runs):
    """(CPU time in µs, peak memory in KiB) of `runs` failures with `count` nodes."""
    command = [str(bench.parts), '--count', f'round_{count}_nodes', str(runs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        end = machine.wait_for_end(process, bench.size.patience)
        if end.code != 0:
            process.kill()
            raise RuntimeError(f'{" ".join(command)}: exit {end.code}')
        peak = re.search(r'VmHWM:\s+(\d+) kB', process.stdout.read())
    return end.cpu_ms * 1000, int(peak[1])
