"""Learns to read handwritten digits (data/README.md) with any number of workers.

    cpprun --standalone --nproc_per_node=2 --max_restarts=3 examples/python/digits_ddp.py
    python3 examples/python/digits_ddp.py      # alone

It saves a snapshot after each training epoch. When restarted, by the launcher after a failure (from
memory) or by hand (from disk), training resumes from there and ends with exactly the parameters of
an uninterrupted run. On SIGTERM to cpprun it stops after the current training epoch's snapshot,
with exit code 75.
"""

import argparse
import gzip
import hashlib
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "worker_sdk" / "python"))
import cpprun_worker

DATA = pathlib.Path(__file__).parent / "data" / "digits.csv.gz"
TEST_SIZE = 360


def report(text):
    print(f"[rank {dist.get_rank()}] {text}", flush=True)


def load_digits():
    """Returns training and test set; the split is the same in every process."""
    with gzip.open(DATA, "rt") as file:
        rows = torch.tensor([[float(field) for field in line.split(",")] for line in file])
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    images, labels = rows[:, :64] / 16, rows[:, 64].long()
    return (
        TensorDataset(images[TEST_SIZE:], labels[TEST_SIZE:]),
        TensorDataset(images[:TEST_SIZE], labels[:TEST_SIZE]),
    )


def join():
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:  # started by hand, without a launcher
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    report(f"started as process {os.getpid()}, one of {dist.get_world_size()}")


def all_stop():
    """Whether to stop: the same answer on all ranks."""
    is_asked = torch.tensor(float(cpprun_worker.should_stop()))
    dist.all_reduce(is_asked)
    return is_asked.item() > 0


def train_epoch(epoch, model, optimizer, loader):
    loader.sampler.set_epoch(epoch)
    loss_sum = torch.zeros(1)
    for step, (images, labels) in enumerate(loader, epoch * len(loader)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_sum += loss.detach()
        cpprun_worker.heartbeat(step)
    dist.all_reduce(loss_sum)
    return loss_sum.item() / len(loader) / dist.get_world_size()


def count_right(model, test):
    """Each rank classifies every world-size-th image; all_reduce sums the counts."""
    images, labels = (part[dist.get_rank() :: dist.get_world_size()] for part in test.tensors)
    with torch.no_grad():
        right = (model.module(images).argmax(1) == labels).sum()
    dist.all_reduce(right)
    return right.item()


def checksum(model):
    state = model.module.state_dict()
    return hashlib.sha256(
        b"".join(state[name].numpy().tobytes() for name in sorted(state))
    ).hexdigest()[:16]


def leave(code=0):
    """Exits without Python's tear-down: DDP keeps the group alive, and torch 2.11 sometimes aborts
    when the interpreter ends while gloo's threads still run.
    """
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(code)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="training epochs, default: 20")
    parser.add_argument("--snapshot", default="digits", help="snapshot folder, default: digits")
    parser.add_argument(
        "--sleep", type=float, default=0, help="seconds added to each training epoch"
    )
    return parser.parse_args()


def main():
    args = parse_args()
    join()
    is_first = dist.get_rank() == 0
    train, test = load_digits()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(
        train, batch_size=64 // dist.get_world_size() or 1, sampler=DistributedSampler(train)
    )

    cpprun_worker.enable_graceful_stop()
    state = cpprun_worker.Snapshot(args.snapshot, model=model, optimizer=optimizer)
    epochs_done = state.resume()
    if is_first and epochs_done:
        done = f"{epochs_done} of {args.epochs} training epochs are done"
        report(f"resuming from snapshot {args.snapshot}: {done}, read from {state.source}")
    for epoch in range(epochs_done, args.epochs):
        loss = train_epoch(epoch, model, optimizer, loader)
        time.sleep(args.sleep)
        saved = "snapshot saved" if state.save(epoch + 1) else "snapshot not saved"
        if is_first:
            report(f"training epoch {epoch + 1} of {args.epochs} done, loss {loss:.4f}, {saved}")
        if all_stop():
            leave(cpprun_worker.STOPPED_RESUMABLE)

    right = count_right(model, test)
    if is_first:
        share = f"{right} of {TEST_SIZE} unseen digits read right"
        report(f"test accuracy {100 * right / TEST_SIZE:.1f} % ({share})")
        report(f"parameters {checksum(model)}")
    leave()


if __name__ == "__main__":
    main()
