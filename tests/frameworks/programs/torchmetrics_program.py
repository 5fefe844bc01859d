"""torchmetrics, synchronised over the ranks of a DDP job; model and metric are in a
cpprun_worker.Snapshot."""

import torch
import torch.distributed as dist
import torchmetrics
from common import (
    EPOCH,
    FOLDER,
    STEPS,
    batch_of,
    end,
    fail_if_wanted,
    make_model,
    report,
    resumed_at,
)
from torch.nn.parallel import DistributedDataParallel

import cpprun_worker


def main():
    dist.init_process_group('gloo')
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    metric = torchmetrics.classification.MulticlassAccuracy(7, average='micro')
    metric.persistent(True)  # else its state_dict() is empty
    state = cpprun_worker.Snapshot(FOLDER, model=model, optimizer=optimizer,
                                   per_rank={'metric': metric})
    step = state.resume()
    resumed_at(step)
    while step < STEPS:
        fail_if_wanted(step)
        inputs, labels = batch_of(step)
        scores = model(inputs)
        metric.update(scores, labels)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores, labels).backward()
        optimizer.step()
        step += 1
        if step % EPOCH == 0:
            state.save(step)  # on disk before the next step, so that the test knows its step
    accuracy = metric.compute()  # of all ranks and all steps, those before the failure too
    report(f'accuracy {accuracy.item():.6f}')
    end([*model.parameters(), accuracy], step)


main()
