"""FSDP2 (fully_shard), saved by torch.distributed.checkpoint itself, without code of cpprun."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import EPOCH, FOLDER, RANK, STEPS
from common import batch_of, end, fail_if_wanted, make_model, newest, resumed_at
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard


def save(model, optimizer, step):
    part = FOLDER / f'part-{step}'
    states = get_state_dict(model, optimizer)
    dcp.save({'model': states[0], 'optimizer': states[1]}, checkpoint_id=part)
    if RANK == 0:
        part.rename(FOLDER / f'step-{step}')
    dist.barrier()


def resume(model, optimizer):
    folder, step = newest()
    if folder:
        states = get_state_dict(model, optimizer)
        loaded = {'model': states[0], 'optimizer': states[1]}
        dcp.load(loaded, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=loaded['model'],
                       optim_state_dict=loaded['optimizer'])
    resumed_at(step)
    return step


def main():
    dist.init_process_group('gloo')
    model = make_model()
    fully_shard(model[0])
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    step = resume(model, optimizer)
    while step < STEPS:
        fail_if_wanted(step)
        inputs, labels = batch_of(step)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        step += 1
        if step % EPOCH == 0:
            save(model, optimizer, step)
    end([each.full_tensor() for each in model.parameters()], step)


main()
