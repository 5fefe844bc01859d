"""Jobs for tests and pictures: one of two nodes, one of a thousand."""

import random

from feed import T0, finished, job, node, running

SECOND, HOUR = 1000, 3_600_000


def two_nodes():
    """Its clock, and a job that ran out of memory, then lost a node, and runs for the third time.
    """
    oom = finished(1, T0, 260, 1_500 * SECOND, 400, (
        'failure', 'out_of_memory',
        'rank 5 (pid 27881, on n02) was killed by SIGKILL (out of memory)'), 2, 8)
    oom['last_lines'] = ['step 1860: loss 2.071', 'step 1870: loss 2.068',
                         'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.']
    lost = finished(2, oom['over_ms'] + 40, 900, 900 * SECOND, 1200,
                    ('node_lost', 'lost_node', 'the agent on n02 died'), 2, 8)
    newest = running(3, lost['over_ms'] + 52 * SECOND, 1100, 2, 8)
    nodes = [node(0, nproc=4, name='n01'), node(1, nproc=4, name='n02')]
    made = job(nodes, [oom, lost, newest], restarts=[1, 3], snapshot_step=6200, resumed_from=4000)
    return T0 + HOUR, made


def thousand_nodes():
    """Two days of 8,000 ranks; a few nodes start, one is silent, one dead, six are spares."""
    chance = random.Random(5)
    nodes = [node(i) for i in range(1000)]
    for i in chance.sample(range(1000), 14):
        nodes[i][1] = 'starting'
    nodes[417][1], nodes[640][1] = 'silent', 'dead'
    nodes += [node(1000 + i, 'idle', part=False) for i in range(6)]
    reasons = [
        ('failure', 'crash', 'rank 3371 (pid 4711, on node0421) was killed by SIGSEGV'),
        ('node_lost', 'lost_node', 'nothing was heard from node0077 for 5 s'),
        ('growth', None, 'a node joins'),
        ('failure', 'hang', 'rank 12 (pid 99, on node0001) hung (no heartbeat for 120 s)')]
    rounds, at = [], T0
    for number in range(1, 12):
        ran = chance.randint(HOUR // 2, 7 * HOUR)
        rounds.append(finished(number, at, 2400, ran, 3000, reasons[number % 4], 1000, 8000))
        at = rounds[-1]['over_ms'] + chance.randint(500, 60_000)
    rounds.append(running(12, at, 2600, 1000, 8000))
    made = job(nodes, rounds, min_nodes=960, max_nodes=1000, restarts=[6, 100],
               hang_restarts=[2, 100], snapshot_step=184_000)
    return at + 2 * HOUR, made


def steps(at, whole, base_us, slow, seed):
    """The progress of all ranks at second `at`; rank `slow` is slow from then on."""
    chance = random.Random(seed * 1000 + at)
    ranks = whole['world_size']
    took = [int(base_us * (1 + chance.random() * 0.08)) for _ in range(ranks)]
    if at > 60:
        took[slow] = int(base_us * (1.35 + 0.12 * chance.random()))
    return {'round': whole['round'], 'steps': [4000 + at * 10 - (i == slow) for i in range(ranks)],
            'step_us': took}


def play(feed, name, now, whole, base_us, slow, seconds=240, every=1):
    """Four minutes of a job, sent as fast as possible; then the job stays unchanged."""
    feed.state(now, **{name: whole})
    for at in range(0, seconds, every):
        progress = steps(at, whole, base_us, slow, 7)
        feed.progress(now - (seconds - at) * SECOND, **{name: progress})
    feed.state(now, **{name: whole})
