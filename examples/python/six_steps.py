"""DistributedDataParallel in six steps, with synthetic data, on any machine.

cpprun --standalone --nproc_per_node=3 examples/python/six_steps.py
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def report(step, text):
    print(f"[rank {dist.get_rank()}] step {step}: {text}", flush=True)


def made_up_data(seed, size):
    """Points around three centres; the label is the index of the centre."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (size,), generator=generator)
    centres = torch.tensor([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    points = centres[labels] + 0.6 * torch.randn(size, 2, generator=generator)
    return TensorDataset(points, labels)


def accuracy(model, loader):
    """The accuracy over all ranks' parts: sums counts, because a mean of means would be wrong."""
    counts = torch.zeros(2)
    with torch.no_grad():
        for points, labels in loader:
            counts += torch.tensor([(model(points).argmax(1) == labels).sum(), len(labels)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


# 1. Set up: rank, world size and rendezvous address come from the launcher's environment.
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
report(1, f"joined a group of {world}" + (", as its master" if rank == 0 else ""))

# 2. Split the data: each rank gets its own part, in an order that changes every training epoch.
train, test = made_up_data(seed=1, size=600), made_up_data(seed=2, size=300)
sampler = DistributedSampler(train, shuffle=True)
train_loader = DataLoader(train, batch_size=20, sampler=sampler)
test_loader = DataLoader(test, batch_size=50, sampler=DistributedSampler(test, shuffle=False))
report(2, f"has {len(sampler)} of {len(train)} training samples")

# 3. Wrap the model: DDP copies rank 0's parameters to all ranks and averages all gradients.
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3)))
report(3, "wrapped the model")

# 4. Train and test, as in one process except for set_epoch: without it the order never changes.
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(5):
    sampler.set_epoch(epoch)
    for points, labels in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points), labels).backward()
        optimizer.step()
result = accuracy(model, test_loader)
report(4, f"trained; accuracy {100 * result:.1f} %")

# 5. Gather results, if needed: a Python object of each rank, on all ranks.
gathered = [None] * world
dist.all_gather_object(gathered, {"rank": rank, "accuracy": round(result, 4)})
report(5, f"gathered from ranks {[item['rank'] for item in gathered]}")

# 6. Clean up, and exit without Python's tear-down: DDP keeps the group alive, and torch 2.11
#    sometimes aborts when the interpreter ends while gloo's threads still run.
report(6, "leaves the group")
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)
