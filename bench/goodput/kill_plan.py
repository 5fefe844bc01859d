"""When what is killed: a Poisson process that follows from a seed alone."""

import collections
import random

# The shares of the kinds. 'worker': one of its processes; 'agent': the launcher of a node; 'node':
# every process of a node at once, as when its power fails.
SHARES = {'worker': 0.80, 'agent': 0.15, 'node': 0.05}

Kill = collections.namedtuple('Kill', 'at kind node local_rank')


def kill_plan(seed, seconds, mean, nodes, workers):
    """The kills within `seconds`, on average one each `mean` seconds; `at` counts from the begin
    of the training."""
    draw, at, plan = random.Random(seed), 0.0, []
    while True:
        at += draw.expovariate(1 / mean)
        if at >= seconds:
            return plan
        (kind,) = draw.choices(list(SHARES), list(SHARES.values()))
        plan.append(Kill(at, kind, draw.randrange(nodes), draw.randrange(workers)))
