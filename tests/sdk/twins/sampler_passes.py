"""Python's counterpart of the case sampler_passes: the same lines, from torch's own sampler."""

import sys

from torch.utils.data.distributed import DistributedSampler


def main(n, world, rank, shuffle, passes):
    sampler = DistributedSampler(range(n), world, rank, bool(shuffle))
    for at in range(passes):
        print(f'{at}:', *sampler)


main(*map(int, sys.argv[1:]))
