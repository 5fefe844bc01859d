"""The Trainer of the torchrun tutorials, with snapshots. Runs on GPUs, or on CPU over gloo.

    cpprun --standalone --nproc_per_node=2 --max_restarts=3 \\
        examples/python/toy_trainer.py --total-epochs 20 --save-every 1
    cpprun --standalone --nproc_per_node=2 examples/python/toy_trainer.py 50 10

Run again, it resumes from snapshot.pt in the current folder. EPOCHS_RUN counts finished training
epochs.
"""

import argparse
import os
import sys

import torch
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, model, train_data, optimizer, loss, save_every, snapshot_path):
        self.gpu_id = int(os.environ["LOCAL_RANK"])
        self.is_first = int(os.environ["RANK"]) == 0  # not LOCAL_RANK, which is 0 once per node
        self.device = (
            torch.device("cuda", self.gpu_id) if torch.cuda.is_available() else torch.device("cpu")
        )
        self.model = model.to(self.device)
        self.train_data = train_data
        self.optimizer = optimizer
        self.loss = loss
        self.save_every = save_every
        self.epochs_run = 0
        self.snapshot_path = snapshot_path
        if os.path.exists(snapshot_path):
            print("loading snapshot", flush=True)
            self._load_snapshot(snapshot_path)
        self.model = DDP(
            self.model, device_ids=[self.gpu_id] if self.device.type == "cuda" else None
        )

    def _load_snapshot(self, snapshot_path):
        snapshot = torch.load(snapshot_path, map_location=self.device)
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.optimizer.load_state_dict(snapshot["OPTIMIZER_STATE"])
        self.epochs_run = snapshot["EPOCHS_RUN"]
        print(f"Resuming training from snapshot at Epoch {self.epochs_run}", flush=True)

    def _save_snapshot(self, epoch):
        snapshot = {
            "MODEL_STATE": self.model.module.state_dict(),
            "OPTIMIZER_STATE": self.optimizer.state_dict(),
            "EPOCHS_RUN": epoch + 1,
        }
        # Written to a temporary file and renamed: after a crash the old snapshot is still complete.
        torch.save(snapshot, self.snapshot_path + ".part")
        os.replace(self.snapshot_path + ".part", self.snapshot_path)
        print(f"Epoch {epoch} | Training snapshot saved at {self.snapshot_path}", flush=True)

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        self.loss(self.model(source), targets).backward()
        self.optimizer.step()

    def _run_epoch(self, epoch):
        batch_size = len(next(iter(self.train_data))[0])
        steps = len(self.train_data)
        print(
            f"[GPU{self.gpu_id}] Epoch {epoch} | Batchsize: {batch_size} | Steps: {steps}",
            flush=True,
        )
        self.train_data.sampler.set_epoch(epoch)
        for source, targets in self.train_data:
            self._run_batch(source.to(self.device), targets.to(self.device))

    def train(self, max_epochs):
        for epoch in range(self.epochs_run, max_epochs):
            self._run_epoch(epoch)
            if self.is_first and (epoch % self.save_every == 0 or epoch + 1 == max_epochs):
                self._save_snapshot(epoch)


def make_task(name):
    """Data, model and loss. The tutorial's task has one class, so its loss is always zero."""
    generator = torch.Generator().manual_seed(0)
    if name == "tutorial":
        data = TensorDataset(
            torch.rand(2048, 20, generator=generator), torch.rand(2048, 1, generator=generator)
        )
        return data, torch.nn.Linear(20, 1), F.cross_entropy
    inputs = torch.randn(2048, 2, generator=generator)
    noise = 0.01 * torch.randn(2048, 1, generator=generator)
    targets = inputs @ torch.tensor([[-2.0], [3.4]]) + 4.2 + noise
    return TensorDataset(inputs, targets), torch.nn.Linear(2, 1), F.mse_loss


def leave():
    """Exits without Python's tear-down: DDP keeps the group alive, and torch 2.11 sometimes aborts
    when the interpreter ends while gloo's threads still run.
    """
    destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


def parse_args():
    parser = argparse.ArgumentParser(description="a simple distributed training job")
    parser.add_argument("epochs", type=int, nargs="?", help="same as --total-epochs")
    parser.add_argument("every", type=int, nargs="?", help="same as --save-every")
    parser.add_argument("--total-epochs", type=int, default=50, help="default: 50")
    parser.add_argument(
        "--save-every", type=int, default=10, help="training epochs between snapshots, default: 10"
    )
    parser.add_argument(
        "--batch_size", type=int, default=32, help="samples per worker and step, default: 32"
    )
    parser.add_argument("--task", choices=["tutorial", "regression"], default="tutorial")
    parser.add_argument(
        "--print-params", action="store_true", help="print the parameters at the end"
    )
    return parser.parse_args()


def main():
    args = parse_args()
    init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    data, model, loss = make_task(args.task)
    loader = DataLoader(
        data, batch_size=args.batch_size, shuffle=False, sampler=DistributedSampler(data)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    trainer = Trainer(model, loader, optimizer, loss, args.every or args.save_every, "snapshot.pt")
    trainer.train(args.epochs or args.total_epochs)
    if args.print_params and trainer.is_first:
        weight, bias = trainer.model.module.weight, trainer.model.module.bias
        print(
            "parameters:",
            [round(p, 2) for p in [*weight.flatten().tolist(), *bias.tolist()]],
            flush=True,
        )
    leave()


if __name__ == "__main__":
    main()
