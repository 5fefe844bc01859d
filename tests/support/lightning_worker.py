"""A training with Lightning for the test of its adapter.

    lightning_worker.py FOLDER plain | processes | stateful

processes: the loader has a worker process. stateful: torchdata's StatefulDataLoader.
"""

import os
import sys

import lightning.pytorch as pl
import torch
from framework_data import DISK_EVERY, EPOCHS, Numbers, before_step, end, every, make_model, report
from torch.utils.data import DataLoader

from cpprun_worker.lightning import SnapshotCallback


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = make_model()

    def training_step(self, batch, index):
        before_step(self.global_step)
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log('score', self.layers(batch[0]).mean() + torch.rand(()), sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)]

    def on_train_start(self):
        state = next(c for c in self.trainer.callbacks if isinstance(c, SnapshotCallback))
        report(f'from {self.global_step} {state.snapshot.source}')


def main():
    folder, kind = sys.argv[1], sys.argv[2]
    if kind == 'stateful':
        from torchdata.stateful_dataloader import StatefulDataLoader as Loader
    else:
        Loader = DataLoader
    trainer = pl.Trainer(
        accelerator='cpu',
        devices=int(os.environ['WORLD_SIZE']),
        strategy='ddp',
        max_epochs=EPOCHS,
        accumulate_grad_batches=2,
        callbacks=[
            pl.callbacks.EarlyStopping('score', patience=9),
            SnapshotCallback(every(4), folder, disk_every=DISK_EVERY),
        ],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    torch.manual_seed(trainer.global_rank)
    workers = 1 if kind == 'processes' else 0
    module = Module()
    trainer.fit(
        module,
        Loader(Numbers(20 * 2 * 4, noise=0.1), 4, shuffle=True, num_workers=workers),
        DataLoader(Numbers(16), 4),
    )
    end(module)


main()
