"""One training job on a cluster of namespaces, with random faults until it is done.

    tests/sdk/campaign/campaign.py --faults 200 --seed 1

Four hosts, three nodes with two workers each and a spare. Workers, agents and coordinators are
killed, agents and workers frozen, cables pulled; killed processes are restarted, as by a cluster
manager. The job must end with the parameters of a run without faults, and no process may be left.
Prints the recovery times. Exit 1 if an expectation failed. Needs root, for namespaces.
"""

import argparse
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from campaign_cluster import Cluster, now, why_not
from campaign_plan import (
    CLOSE,
    FROZEN_HOST,
    ROWS,
    SPARE,
    TARGETS,
    WORKER,
    Fault,
    make_plan,
    steps_for,
)
from campaign_watch import Watch

STUCK_S = 90.0  # longest time without a new snapshot or round
ORPHANS_S = 1.0  # until every process of a killed agent must be gone
TURN_S = 0.02


class InjectedFault:
    """A fault that ended a round, and the time until the next one."""

    def __init__(self, fault, at, round_number):
        self.fault, self.at, self.round = fault, at, round_number
        self.row, self.is_noticed = fault.row, fault.is_noticed
        self.recovery = None

    def is_overcome(self):
        return self.recovery is not None or not self.is_noticed


class Campaign:
    def __init__(self, cluster, plan, report):
        self.cluster, self.plan, self.report = cluster, list(plan), report
        self.watch = Watch(cluster)
        self.injected, self.later, self.wrong = [], [], []
        self.step, self.moved_at = 0, None
        self.ready_at = None  # the time of the next fault
        self.view = None  # roles at the last fault

    def run(self):
        self.cluster.start_all()
        self.moved_at = time.monotonic()
        while not all(agent.has_ended() for agent in self.cluster.at.values()) or self.later:
            self.watch.look()
            self.carry_out_what_is_due()
            self.note_progress()
            self.note_recoveries()
            self.look_for_ended_agents()
            if self.plan:
                self.inject_if_due()
            time.sleep(TURN_S)  # events are files: polling is the only way
        self.watch.look()
        self.note_recoveries()
        if self.plan:
            self.wrong.append(f'the job was over before {len(self.plan)} faults were injected')
        self.wrong += self.watch.wrong

    def do_later(self, seconds, action):
        self.later.append((now() + seconds, action))

    def carry_out_what_is_due(self):
        due = [entry for entry in self.later if entry[0] <= now()]
        self.later = [entry for entry in self.later if entry not in due]
        for _, action in sorted(due, key=lambda entry: entry[0]):
            action()

    def note_progress(self):
        newest = self.cluster.newest_step()
        if newest != self.step:
            self.step, self.moved_at = newest, time.monotonic()
        assert time.monotonic() < self.moved_at + STUCK_S, 'the job stands still'

    def note_recoveries(self):
        for injection in self.injected:
            if injection.is_overcome():
                continue
            then = self.watch.after(injection.round)
            if then:
                injection.recovery = then.complete_at - injection.at
            text = f'{injection.fault.text()}: no round came after it'
            assert now() < injection.at + STUCK_S, text

    def look_for_ended_agents(self):
        for agent in self.cluster.at.values():
            if agent.has_ended() and not agent.is_killed:
                code = agent.popen.returncode
                assert code == 0, f'agent {agent.number} ended by itself, with {code}'

    # ------------------------------------------------------------ faults

    def inject_if_due(self):
        fault = self.plan[0]
        if fault.is_close:
            if now() >= self.injected[-1].at + fault.wait_s:
                self.injected[-1].row = CLOSE
                self.inject(self.plan.pop(0), self.view)
            return
        if self.ready_at is None and self.is_ready_for(fault):
            self.ready_at = now() + fault.wait_s
        if self.ready_at is None or now() < self.ready_at:
            return
        self.ready_at = None
        view = self.cluster.view()
        if view and view.is_settled():
            self.expect_the_same_world(view)
            self.view = view
            self.inject(self.plan.pop(0), view)

    def is_ready_for(self, fault):
        """The steps are made, and the job has recovered from earlier faults."""
        is_over = all(injection.is_overcome() for injection in self.injected)
        newest = self.watch.newest
        is_running = newest is not None and newest.number == self.watch.newest_formed
        return self.step >= fault.step and is_over and is_running and not self.later

    def expect_the_same_world(self, view):
        last = self.injected[-1] if self.injected else None
        if last is None or last.is_noticed or last.fault.is_close:
            return
        if view.job['round'] != last.round:
            what = f'{last.fault.text()}: round {last.round} was given up for it'
            self.wrong.append(what)

    def inject(self, fault, view):
        is_there = fault.who == 'worker' or fault.who in view.parts
        if not is_there or (fault.who == 'host' and 'standby' not in view.parts):
            self.report(f'  (a worker is killed instead; host, standby and so on: {view.parts})')
            fault = Fault(WORKER, 'kill', 'worker', step=fault.step, rank=fault.rank)
        injection = InjectedFault(fault, now(), self.watch.newest_formed)
        self.injected.append(injection)
        where = f'round {injection.round}, step {self.step}'
        self.report(f'{len(self.injected)}: {fault.text()} ({where})')
        if fault.row == FROZEN_HOST:
            injection.at += fault.for_s  # nothing can start before it wakes
        if fault.do == 'kill' and fault.who == 'host' and view.parts['host'] not in view.members:
            injection.row, injection.is_noticed = SPARE, False  # it led the job, and had no workers
        if fault.who == 'worker':
            injection.is_noticed = self.inject_into_worker(fault) and fault.is_noticed
        else:
            self.inject_into_node(fault, view.parts[fault.who])

    def inject_into_worker(self, fault):
        """False: the round is ending, and there is no such worker just now."""
        newest = self.watch.rounds[self.watch.newest_formed]
        pid = newest.pids.get(fault.rank)
        if pid is None or not self.watch.is_worker(pid, newest.number):
            return False
        if fault.do == 'kill':
            return send(pid, signal.SIGKILL)
        self.do_later(fault.for_s, lambda: send(pid, signal.SIGCONT))
        return send(pid, signal.SIGSTOP)

    def inject_into_node(self, fault, host):
        agent = self.cluster.at[host]
        if fault.do == 'kill':
            agent.is_killed = True
            agent.send(signal.SIGKILL)
            self.do_later(fault.restart_s, lambda: self.cluster.start(host))
            self.do_later(ORPHANS_S, lambda: self.look_for_orphans(agent))
        elif fault.do == 'freeze':
            agent.send(signal.SIGSTOP)
            self.do_later(fault.for_s, lambda: agent.send(signal.SIGCONT))
        else:
            self.cluster.net.cable(host, False)
            self.do_later(fault.for_s, lambda: self.cluster.net.cable(host, True))

    def look_for_orphans(self, agent):
        left = self.cluster.orphans_of(agent)
        if left:
            self.wrong.append(f'agent {agent.number} was killed, and left {left}')

    # ------------------------------------------------------------ results

    def judge_end(self, expected):
        for agent in self.cluster.at.values():
            if agent.popen.returncode != 0:
                self.wrong.append(f'agent {agent.number} ended with {agent.popen.returncode}')
        hashes = [agent.out.split('hash=')[1].split()[0] for agent in self.cluster.agents
                  if 'hash=' in agent.out]
        if hashes != [expected]:
            self.wrong.append(f'the job ended with {hashes}, without faults with {expected}')
        end = time.monotonic() + 2 * ORPHANS_S
        while (left := self.cluster.left_over()) and time.monotonic() < end:
            time.sleep(TURN_S)
        if left:
            self.wrong.append(f'processes were left: {left}')


def send(pid, number):
    """False: the process no longer exists."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def share(values, part):
    """The percentile: this fraction of the values is not above it."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def table_of(injected):
    lines = ['fault               injected    p50 s    p95 s    max s   target s  within']
    for row in ROWS:
        of_row = [injection for injection in injected if injection.row == row]
        if not of_row:
            continue
        took = [injection.recovery for injection in of_row if injection.recovery is not None]
        line = f'{row:<20} {len(of_row):>7}'
        if took:
            line += ''.join(f'{value:9.3f}' for value in
                            (share(took, 0.5), share(took, 0.95), max(took)))
        target = TARGETS.get(row)
        if target and took:
            within = sum(value <= target for value in took)
            line += f'{target:11.1f}  {within} of {len(took)}'
        lines.append(line)
    return '\n'.join(lines)


def missed_targets(injected, times=1):
    """Rows of which half or more took longer than that many times their target."""
    missed = []
    for row, target in TARGETS.items():
        took = [s.recovery for s in injected if s.row == row and s.recovery is not None]
        if took and share(took, 0.5) > times * target:
            missed.append(f'{row}: half took longer than {times * target} s')
    return missed


def run(folder, faults, seed, report=print):
    """The campaign. Returns failed expectations as texts, and the faults."""
    steps = steps_for(faults)
    cluster = Cluster(folder, steps)
    campaign = Campaign(cluster, make_plan(seed, faults), report)
    try:
        expected = cluster.undisturbed_hash()
        campaign.run()
        campaign.judge_end(expected)
    except AssertionError as error:
        campaign.wrong += [*campaign.watch.wrong, str(error)]
        campaign.wrong += [agent.story() for agent in cluster.at.values()]
        campaign.wrong.append(f'the job: {getattr(cluster.view(), "job", None)}')
    finally:
        campaign.watch.close()
        cluster.close()
    report(table_of(campaign.injected))
    return campaign.wrong, campaign.injected


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--faults', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--plan', action='store_true', help='only show what would be done')
    parser.add_argument('--folder', type=pathlib.Path, help='kept; else a temporary one')
    options = parser.parse_args()
    if options.plan:
        print('\n'.join(fault.text() for fault in make_plan(options.seed, options.faults)))
        return
    if why := why_not():
        sys.exit(why)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('asked to stop'))  # ends all nodes
    with tempfile.TemporaryDirectory() as temporary:
        wrong, injected = run(options.folder or temporary, options.faults, options.seed)
    wrong += missed_targets(injected)
    print('\n'.join(wrong) or f'seed {options.seed}: all held')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
