"""The response time of status requests for a busy job."""

import resource
import time

from cpprunctl import TAKES, output_of
from test_cpprunctl import own_run_id

BUSY = """
import os
open(os.environ['MARKS'] + '/up-' + os.environ['RANK'], 'w').write('x')
while True:
    for _ in range(100_000): pass
    print('a line without a meaning')
"""


IDLE = """
import os, time
open(os.environ['MARKS'] + '/up-' + os.environ['RANK'], 'w').write('x')
while True: time.sleep(60)
"""


class Asked:
    """Two workers, and the time to query the status of their job."""

    def __init__(self, jobs, code):
        job = jobs.cpprun('--standalone', '--nproc-per-node=2', *jobs.py(code))
        for rank in range(2):
            jobs.mark(f'up-{rank}', TAKES)
            (jobs.marks / f'up-{rank}').unlink()
        self.run_id = own_run_id(job)
        self.took, self.used = [], []

    def ask(self):
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        assert 'running, round 1' in output_of('status', self.run_id)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.took.append(time.monotonic() - begun)
        self.used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def test_status_of_a_busy_job_costs_as_little_as_of_an_idle_one(jobs):
    """Workers that use all processors and write without end. The best of some tries counts, since
    other processes may use this machine too; both jobs run during both measurements."""
    idle, busy = Asked(jobs, IDLE), Asked(jobs, BUSY)
    for _ in range(20):
        idle.ask()
        busy.ask()
    assert min(busy.took) < 5 * min(idle.took), (busy.took, idle.took)
    assert min(busy.used) < 3 * min(idle.used), (busy.used, idle.used)
