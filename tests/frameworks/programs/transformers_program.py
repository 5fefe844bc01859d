"""The Trainer of transformers with its own checkpoints, without code of cpprun."""

import os

os.environ['HF_HUB_OFFLINE'] = '1'
import torch
from common import BATCH, EPOCH, FOLDER, STEPS, Numbers
from common import end, fail_if_wanted, make_model, resumed_at
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = make_model()

    def forward(self, inputs, labels):
        scores = self.layers(inputs)
        return {'loss': torch.nn.functional.cross_entropy(scores, labels), 'logits': scores}


class Items(Numbers):
    def __getitem__(self, index):
        inputs, labels = super().__getitem__(index)
        return {'inputs': inputs, 'labels': labels}


class Steps(TrainerCallback):
    def on_train_begin(self, args, state, control, **_):
        resumed_at(state.global_step)

    def on_step_begin(self, args, state, control, **_):
        fail_if_wanted(state.global_step)


def main():
    arguments = TrainingArguments(
        output_dir=str(FOLDER),
        use_cpu=True,
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        save_steps=EPOCH,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(Model(), arguments, train_dataset=Items(), callbacks=[Steps()])
    FOLDER.mkdir(parents=True, exist_ok=True)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(FOLDER)))
    end(trainer.model.parameters(), trainer.state.global_step)


main()
