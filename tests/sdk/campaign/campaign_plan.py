"""The plan of a campaign: faults drawn from a seed, the same each time. Only data; campaign.py
executes it.

Three nodes of the job train, one more waits as a spare. A fault names its target by the node's role
at that moment:

  host     its process leads the job        standby   it would lead if the host died
  member   the third node that trains       spare  it waits; whoever is lost is replaced by it

Silences longer than the lease are injected into members only: a standby that was lost in silence
is the job's last one, and a silent host ends the whole job. After the death of a host or of a
standby nothing else is injected until the job runs again: without both no node can lead it, and it
is lost (docs/protocol.md, R14 to R17). A host that returns before its standby has detected the loss
leads the job again; it waits a lease for the node that died with it (R13), so this has its own row.
"""

import dataclasses
import random

LEASE = 5.0  # s, cpprun's default
SPACING = 20  # steps between two faults
STEPS_APART = 8  # the spread of that distance
AFTER = 600  # steps of 5 ms or more: a silent agent must return before the end


@dataclasses.dataclass
class Fault:
    """One fault. `row`: its row in the table; `is_noticed`: it costs the job a round."""

    row: str
    do: str  # kill, freeze, cable
    who: str  # worker, host, standby, member, spare
    step: int = 0  # happens when a snapshot of this step exists
    wait_s: float = 0.0  # this much later
    rank: int = 0  # of the worker
    for_s: float = 0.0  # frozen, or without cable
    restart_s: float = 0.0  # the delay until a killed agent is restarted
    is_close: bool = False  # happens `wait_s` after the one before, during its recovery
    is_noticed: bool = True

    def text(self):
        whom = f'worker {self.rank}' if self.who == 'worker' else f'agent of the {self.who}'
        is_back = self.do == 'kill' and self.row == RESTARTED
        what = {
            'kill': f'kill the {whom}' + (', start it anew at once' if is_back else ''),
            'freeze': f'freeze the {whom} for {self.for_s:.1f} s',
            'cable': f'cable of the {self.who} out for {self.for_s:.1f} s',
        }[self.do]
        where = f'{self.wait_s:.2f} s later' if self.is_close else f'step {self.step}'
        return f'{where}: {what}'


WORKER, AGENT = 'worker killed', 'agent killed'
HOST, RESTARTED = 'coordinator killed', 'coordinator again'
SILENT, FROZEN_HOST = 'node silent', 'coordinator frozen'
SPARE, PAUSE = 'spare killed', 'short silence'
CLOSE = 'in a recovery'

# Targets in seconds, from the fault until all workers of the next round are spawned.
TARGETS = {WORKER: 0.1, AGENT: 0.5, HOST: 1.0, RESTARTED: LEASE + 1.0, SILENT: LEASE + 1.0}
ROWS = (WORKER, AGENT, HOST, RESTARTED, SILENT, FROZEN_HOST, CLOSE, SPARE, PAUSE)


def draw_kill_worker(chance):
    return Fault(WORKER, 'kill', 'worker', rank=chance.randrange(6))


def draw_kill_agent(chance):
    who = chance.choice(('standby', 'member'))
    return Fault(AGENT, 'kill', who, restart_s=chance.uniform(0, 1))


def draw_kill_host(chance):
    return Fault(HOST, 'kill', 'host', restart_s=chance.uniform(0.5, 1))


def draw_restart_host(chance):
    return Fault(RESTARTED, 'kill', 'host', restart_s=0)


def draw_kill_spare(chance):
    restart_s = chance.uniform(0, 1)
    return Fault(SPARE, 'kill', 'spare', restart_s=restart_s, is_noticed=False)


def draw_long_cable(chance):
    return Fault(SILENT, 'cable', 'member', for_s=LEASE + chance.uniform(1, 3))


def draw_long_freeze(chance):
    return Fault(SILENT, 'freeze', 'member', for_s=LEASE + chance.uniform(1, 3))


def draw_frozen_host(chance):
    return Fault(FROZEN_HOST, 'freeze', 'host', for_s=LEASE + chance.uniform(0.5, 2))


def draw_short_cable(chance):
    who = chance.choice(('host', 'standby', 'member', 'spare'))
    return Fault(PAUSE, 'cable', who, for_s=chance.uniform(0.1, 1), is_noticed=False)


def draw_short_freeze(chance):
    who = chance.choice(('host', 'standby', 'member', 'spare'))
    return Fault(PAUSE, 'freeze', who, for_s=chance.uniform(0.1, 1), is_noticed=False)


def draw_frozen_worker(chance):
    rank, for_s = chance.randrange(6), chance.uniform(0.1, 2)
    return Fault(PAUSE, 'freeze', 'worker', rank=rank, for_s=for_s, is_noticed=False)


# Generators of faults, with weights. The first eight are in every plan of eight faults or more.
DRAWS = (
    (draw_kill_worker, 28),
    (draw_kill_agent, 22),
    (draw_kill_host, 12),
    (draw_long_cable, 8),
    (draw_long_freeze, 6),
    (draw_short_cable, 5),
    (draw_short_freeze, 5),
    (draw_frozen_worker, 4),
    (draw_frozen_host, 2),
    (draw_restart_host, 4),
    (draw_kill_spare, 4),
)
ALWAYS = 8
CLOSE_SHARE = 0.3  # of the allowed pairs


def may_be_close(before, fault):
    """Neither the standby nor the host may be leaving or joining."""
    is_harmless = before.row == WORKER or (before.row == AGENT and before.who == 'member')
    return is_harmless and not before.is_close and fault.row in (WORKER, SPARE)


def make_plan(seed, count):
    """`count` faults in their order."""
    chance = random.Random(f'campaign {seed}')
    draws, shares = zip(*DRAWS)
    chosen = list(draws[:count] if count < ALWAYS else draws[:ALWAYS])
    chosen += chance.choices(draws, shares, k=count - len(chosen))
    chance.shuffle(chosen)
    plan = []
    for number, draw in enumerate(chosen):
        fault = draw(chance)
        fault.step = (number + 1) * SPACING + chance.randint(-STEPS_APART, STEPS_APART)
        fault.wait_s = chance.uniform(0, 0.2)
        if plan and may_be_close(plan[-1], fault) and chance.random() < CLOSE_SHARE:
            fault.is_close, fault.wait_s = True, chance.uniform(0, 0.6)
            fault.row = CLOSE
        plan.append(fault)
    return plan


def steps_for(count):
    """The length of the training: the last fault still finds it running, and it ends soon after."""
    return (count + 2) * SPACING + AFTER
