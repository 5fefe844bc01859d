"""Ignite with its own Checkpoint handler, without code of cpprun."""

import ignite.distributed as idist
import torch
from common import EPOCH, FOLDER, STEPS
from common import batch_of, end, fail_if_wanted, make_model, newest, resumed_at
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver


def main():
    idist.initialize('gloo')
    model = idist.auto_model(make_model())
    optimizer = idist.auto_optim(torch.optim.AdamW(model.parameters(), 1e-2))

    def train(engine, _):
        step = engine.state.iteration - 1
        fail_if_wanted(step)
        inputs, labels = batch_of(step)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    trainer = Engine(train)
    objects = {'model': model, 'optimizer': optimizer, 'trainer': trainer}
    saver = DiskSaver(str(FOLDER), create_dir=True, require_empty=False)  # atomic
    checkpoint = Checkpoint(objects, saver, n_saved=None, global_step_transform=lambda *_:
                            trainer.state.iteration, filename_pattern='step-{global_step}')
    trainer.add_event_handler(Events.ITERATION_COMPLETED(every=EPOCH), checkpoint)
    path, step = newest()
    if path:
        Checkpoint.load_objects(objects, str(path))
    resumed_at(step)
    trainer.run(range(EPOCH), max_epochs=STEPS // EPOCH, epoch_length=EPOCH)
    end(model.parameters(), trainer.state.iteration)


main()
