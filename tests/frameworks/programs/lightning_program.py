"""Lightning with its own ModelCheckpoint, without code of cpprun."""

import os
import warnings

import lightning.pytorch as pl
import torch
from common import EPOCH, FOLDER, LOCAL_WORLD, STEPS, Numbers
from common import end, fail_if_wanted, make_model, resumed_at


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = make_model()

    def on_train_start(self):
        resumed_at(self.global_step)

    def training_step(self, batch, index):
        fail_if_wanted(self.global_step)
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)]


def main():
    warnings.simplefilter('ignore')
    saves = pl.callbacks.ModelCheckpoint(FOLDER, save_last=True, every_n_epochs=1)
    trainer = pl.Trainer(
        accelerator='cpu',
        strategy='ddp',
        devices=LOCAL_WORLD,
        num_nodes=int(os.environ['GROUP_WORLD_SIZE']),
        max_epochs=STEPS // EPOCH,
        callbacks=[saves],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Module()
    last = FOLDER / 'last.ckpt'
    loader = torch.utils.data.DataLoader(Numbers(), 4, shuffle=True)
    trainer.fit(module, loader, ckpt_path=str(last) if last.exists() else None)
    end(module.parameters(), trainer.global_step)


main()
