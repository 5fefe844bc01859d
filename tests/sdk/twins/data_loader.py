"""Python's counterpart of the case data_loader."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dataset = TensorDataset(torch.arange(50), torch.arange(100).view(50, 2))
    for drops in (False, True):
        for rank in range(3):
            sampler = DistributedSampler(dataset, num_replicas=3, rank=rank, seed=4)
            loader = DataLoader(dataset, batch_size=4, sampler=sampler, drop_last=drops)
            print(len(loader))
            for epoch in range(2):
                sampler.set_epoch(epoch)
                for x, y in loader:
                    rows = [f'{a}:{b}' for a, b in zip(x.tolist(), y[:, 1].tolist(), strict=True)]
                    print(rank, epoch, *rows)


main()
