"""The events of a campaign's agents in events.jsonl, and their invariants."""

import collections
import json

from campaign_cluster import JOB
from launches import is_alive, read_bytes


class Round:
    """One round, from the agents' events. Times are those of mono_ns, in seconds."""

    def __init__(self, number, size):
        self.number, self.size = number, size
        self.started = {}  # agent -> time when all its workers had started
        self.pids = {}  # rank -> process id
        self.resumed_at = 0  # the step of its first snapshot

    @property
    def complete_at(self):
        """When the last worker of all nodes was spawned; None: not yet."""
        return max(self.started.values()) if len(self.started) == self.size else None


class Follower:
    """The events of one agent, line by line as they come."""

    def __init__(self, agent):
        self.agent, self.file, self.rest = agent, None, b''

    def events(self):
        if self.file is None:
            path = self.agent.events
            if path is None:
                return
            self.file = open(path, 'rb')
        self.rest += self.file.read()
        *lines, self.rest = self.rest.split(b'\n')
        for line in lines:
            yield json.loads(line)

    def close(self):
        if self.file:
            self.file.close()


class Watch:
    """Follows all agents. `wrong` lists violated invariants."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.followers = {}
        self.rounds = {}
        self.workers = collections.defaultdict(set)  # round -> process ids
        self.newest_resumed = 0
        self.wrong = []

    def look(self):
        """Reads what is new."""
        for agent in self.cluster.agents:
            if agent not in self.followers:
                self.followers[agent] = Follower(agent)
            for event in self.followers[agent].events():
                handler = getattr(self, 'on_' + event['event'], None)
                if handler:
                    handler(agent, event)

    def on_round_formed(self, agent, event):
        number = event['round']
        if number not in self.rounds:
            self.rounds[number] = Round(number, event['group_size'])
        if event['group_size'] != self.rounds[number].size:
            self.wrong.append(f'round {number} has two sizes')

    def on_snapshot_chosen(self, agent, event):
        self.rounds[event['round']].resumed_at = event['step']

    def on_worker_started(self, agent, event):
        number, pid, rank = event['round'], event['pid'], event['rank']
        formed = self.rounds[number]
        if formed.pids.setdefault(rank, pid) != pid:
            self.wrong.append(f'round {number} has two workers of rank {rank}')
        self.workers[number].add(pid)
        for older, pids in self.workers.items():
            for other in pids if older < number else ():
                if self.is_worker(other, older):
                    self.wrong.append(f'worker {other} of round {older} lives in round {number}')

    def on_worker_ended(self, agent, event):
        self.workers[event['round']].discard(event['pid'])

    def on_round_started(self, agent, event):
        formed = self.rounds[event['round']]
        formed.started[agent.number] = event['mono_ns'] / 1e9
        if formed.complete_at is None:
            return
        if sorted(formed.pids) != list(range(len(formed.pids))):
            self.wrong.append(f'round {formed.number} has the ranks {sorted(formed.pids)}')
        if formed.resumed_at < self.newest_resumed:
            self.wrong.append(
                f'round {formed.number} goes back to step {formed.resumed_at}, '
                f'one before it began at {self.newest_resumed}'
            )
        self.newest_resumed = max(self.newest_resumed, formed.resumed_at)

    def is_worker(self, pid, number):
        """Whether the process lives and is a worker of that round, and not another process with its
        pid."""
        environ = read_bytes(f'/proc/{pid}/environ').split(b'\0')
        marks = {f'CPPRUN_ROUND={number}'.encode(), f'TORCHELASTIC_RUN_ID={JOB}'.encode()}
        return marks <= set(environ) and is_alive(pid)

    @property
    def newest(self):
        """The newest round whose workers all started; None: there was none."""
        whole = [each for each in self.rounds.values() if each.complete_at is not None]
        return max(whole, key=lambda each: each.number, default=None)

    @property
    def newest_formed(self):
        return max(self.rounds, default=0)

    def after(self, number):
        """The first later round whose workers all started; None: not yet."""
        later = [each for each in self.rounds.values() if each.number > number]
        whole = [each for each in later if each.complete_at is not None]
        return min(whole, key=lambda each: each.number, default=None)

    def close(self):
        for follower in self.followers.values():
            follower.close()
