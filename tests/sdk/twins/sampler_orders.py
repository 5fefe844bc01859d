"""Python's counterpart of the case sampler_orders: the same lines, from torch's own sampler."""

import sys

import torch
from torch.utils.data.distributed import DistributedSampler


def digest(order):
    order = torch.tensor(order, dtype=torch.int64)
    places = torch.arange(len(order), dtype=torch.int64)
    return int(((order + 1) * (places * 2_654_435_761 + 1)).sum()) % 2**64


def main(path):
    with open(path, encoding='ascii') as file:
        for line in file:
            n, world, rank, seed, epoch, shuffle, drop_last = map(int, line.split())
            sampler = DistributedSampler(
                range(n), world, rank, bool(shuffle), seed, bool(drop_last)
            )
            sampler.set_epoch(epoch)
            print(len(sampler), digest(list(sampler)))


main(sys.argv[1])
