"""A training with the Trainer of transformers for the test of its adapter.

    transformers_worker.py FOLDER
"""

import os
import sys

os.environ['HF_HUB_OFFLINE'] = '1'
import torch
from framework_data import DISK_EVERY, EPOCHS, Numbers, before_step, end, every, make_model, report
from transformers import Trainer, TrainerCallback, TrainingArguments

from cpprun_worker.transformers import SnapshotCallback


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = make_model()

    def forward(self, inputs, labels):
        scores = self.layers(inputs)
        return {'loss': torch.nn.functional.cross_entropy(scores, labels), 'logits': scores}


class Items(torch.utils.data.Dataset):
    def __init__(self, size):
        self.numbers = Numbers(size)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        inputs, label = self.numbers[index]
        return {'inputs': inputs, 'labels': label}


class Steps(TrainerCallback):
    def on_step_begin(self, args, state, control, **_):
        before_step(state.global_step)


def main():
    torch.manual_seed(int(os.environ['RANK']))
    arguments = TrainingArguments(
        output_dir='unused',
        use_cpu=True,
        num_train_epochs=EPOCHS,
        lr_scheduler_type='constant_with_warmup',  # the same for each number of epochs
        warmup_steps=15,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        eval_strategy='steps',
        eval_steps=int(os.environ.get('EVAL_STEPS', 6)),
        save_strategy='no',
        report_to=[],
        disable_tqdm=True,
    )
    state = SnapshotCallback(every(3), sys.argv[1], disk_every=DISK_EVERY)
    trainer = Trainer(
        Model(),
        arguments,
        train_dataset=Items(20 * 2 * 4),
        eval_dataset=Items(16),
        callbacks=[Steps(), state],
    )
    found = state.resume(trainer)
    trainer.add_callback(ResumePrinter(state))
    trainer.train(resume_from_checkpoint=found)
    end(trainer.model)


class ResumePrinter(TrainerCallback):
    def __init__(self, snapshots):
        self.snapshots = snapshots

    def on_train_begin(self, args, state, control, **_):
        report(f'from {state.global_step} {self.snapshots.snapshot.source}')


main()
