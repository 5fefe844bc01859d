"""A small GPT as nanoGPT trains it: DDP, gradient accumulation, AdamW with two groups, a cosine
schedule with warm-up, gradient clipping; in a cpprun_worker.Snapshot."""

import contextlib
import math
import pathlib

import torch
import torch.distributed as dist
from common import EPOCH, FOLDER, RANK, STEPS, WORLD, end, fail_if_wanted, resumed_at
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel

import cpprun_worker

BLOCK, WIDTH, HEADS, LAYERS, MICRO_STEPS = 32, 32, 4, 2, 2
TEXT = torch.tensor(list(pathlib.Path(__file__).read_bytes()))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                 nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        q, k, v = (each.unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in parts)
        seen = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + self.out(seen)
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, 256, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        return self.head(self.layers(self.tokens(tokens) + self.places.weight))


def batch():
    """Drawn from the process's generator, whose state is in the snapshot."""
    starts = torch.randint(len(TEXT) - BLOCK - 1, (4,))
    rows = torch.stack([TEXT[at:at + BLOCK + 1] for at in starts])
    return rows[:, :-1], rows[:, 1:]


def rate(step):
    return min(1, (step + 1) / 4) * (1 + math.cos(math.pi * step / STEPS)) / 2


def main():
    dist.init_process_group('gloo')
    torch.manual_seed(0)
    net = Gpt()
    model = DistributedDataParallel(net)
    torch.manual_seed(100 + RANK)
    groups = [{'params': [p for p in net.parameters() if p.dim() >= 2], 'weight_decay': 0.1},
              {'params': [p for p in net.parameters() if p.dim() < 2], 'weight_decay': 0.0}]
    optimizer = torch.optim.AdamW(groups, 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    state = cpprun_worker.Snapshot(FOLDER, model=model, optimizer=optimizer, scheduler=schedule,
                                   extra={'world': WORLD}, rng=True)
    step = state.resume()
    resumed_at(step)
    while step < STEPS:
        fail_if_wanted(step)
        for micro in range(MICRO_STEPS):
            is_last = micro + 1 == MICRO_STEPS
            inputs, labels = batch()
            with contextlib.nullcontext() if is_last else model.no_sync():
                loss = cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
                (loss / MICRO_STEPS).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        step += 1
        if step % EPOCH == 0:
            state.save(step)  # on disk before the next step, so that the test knows its step
    end(model.parameters(), step)


main()
