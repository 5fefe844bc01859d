"""Accelerate with its own save_state() and load_state(), without code of cpprun."""

import shutil

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from common import BATCH, EPOCH, FOLDER, RANK, STEPS, Numbers
from common import end, fail_if_wanted, make_model, newest, resumed_at


def save(accelerator, step):
    """In a folder of another name first: a folder step-N is whole."""
    accelerator.save_state(str(FOLDER / 'part'))
    accelerator.wait_for_everyone()
    if RANK == 0:
        shutil.move(FOLDER / 'part', FOLDER / f'step-{step}')
    accelerator.wait_for_everyone()


def main():
    # The order of an epoch follows from its number; else it depends on the generator, which the
    # loader has moved on by the time of a save.
    order = DataLoaderConfiguration(use_seedable_sampler=True)
    accelerator = Accelerator(cpu=True, dataloader_config=order)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 80)
    loader = torch.utils.data.DataLoader(Numbers(), BATCH, shuffle=True)
    model, optimizer, scheduler, loader = accelerator.prepare(model, optimizer, scheduler, loader)
    folder, step = newest()
    if folder:
        accelerator.load_state(str(folder))
    resumed_at(step)
    for epoch in range(step // EPOCH, STEPS // EPOCH):
        loader.set_epoch(epoch)
        for inputs, labels in loader:
            fail_if_wanted(step)
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.cross_entropy(model(inputs), labels))
            optimizer.step()
            scheduler.step()
            step += 1
        save(accelerator, step)
    end(model.parameters(), step)


main()
