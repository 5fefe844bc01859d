"""GPT-2 as Hugging Face publishes it, and its fine-tuning as examples/cpp/ex_finetune.cpp does it.

    finetune.py write FOLDER    # model.safetensors of a small GPT-2, tokens.safetensors
    finetune.py train FOLDER    # prints the losses, checks FOLDER/tuned.safetensors

The layers have the names and layouts of transformers' GPT2LMHeadModel.
"""

import math
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WIDTH, HEADS, LAYERS, WORDS, PLACES = 32, 4, 2, 96, 24
LENGTH, BATCH, EPOCHS = 16, 2, 2


class Conv1D(torch.nn.Module):
    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs) * 0.1)
        self.bias = torch.nn.Parameter(torch.randn(outputs) * 0.1)

    def forward(self, x):
        flat = torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight)
        return flat.view(*x.shape[:-1], -1)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = Conv1D(3 * WIDTH, WIDTH)
        self.c_proj = Conv1D(WIDTH, WIDTH)
        mask = torch.ones(PLACES, PLACES, dtype=torch.bool).tril()
        self.register_buffer('bias', mask.view(1, 1, PLACES, PLACES))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, -1).transpose(1, 2)
            for part in self.c_attn(x).split(WIDTH, dim=2)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~self.bias[:, :, :length, :length], float('-inf'))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = Conv1D(4 * WIDTH, WIDTH)
        self.c_proj = Conv1D(WIDTH, 4 * WIDTH)

    def forward(self, x):
        x = self.c_fc(x)
        cube = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)  # gelu_new
        return self.c_proj(0.5 * x * (1 + torch.tanh(cube)))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = torch.nn.LayerNorm(WIDTH), Attention()
        self.ln_2, self.mlp = torch.nn.LayerNorm(WIDTH), Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = torch.nn.Embedding(WORDS, WIDTH)
        self.wpe = torch.nn.Embedding(PLACES, WIDTH)
        self.h = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.ln_f = torch.nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1)))
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def write(folder):
    torch.manual_seed(5)
    net = Gpt2()
    save_file(net.state_dict(), folder / 'model.safetensors')
    tokens = (torch.arange(700) * 7 + torch.randint(0, 3, (700,))) % WORDS
    save_file({'tokens': tokens}, folder / 'tokens.safetensors')


# Names of the SDK's file, and whether the matrix is transposed.
OWN = {
    'words.weight': ('wte.weight', False),
    'places.weight': ('wpe.weight', False),
    'blocks.1.qkv.weight': ('h.1.attn.c_attn.weight', True),
    'blocks.0.down.weight': ('h.0.mlp.c_proj.weight', True),
    'blocks.0.norm2.bias': ('h.0.ln_2.bias', False),
}


def check(net, file):
    tuned, own = load_file(file), net.state_dict()
    assert len(tuned) == len(list(net.parameters()))
    for name, (published, is_transposed) in OWN.items():
        expected = own[published].T if is_transposed else own[published]
        torch.testing.assert_close(tuned[name], expected, rtol=0, atol=2e-3)
        print('checked', name)


def train(folder):
    dist.init_process_group('gloo')
    net = Gpt2()
    net.load_state_dict(load_file(folder / 'model.safetensors'))
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    text = load_file(folder / 'tokens.safetensors')['tokens']
    samples = (len(text) - 1) // LENGTH
    cut = [text[i : i + samples * LENGTH].view(samples, LENGTH) for i in range(2)]
    dataset = TensorDataset(*cut)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=BATCH, sampler=sampler)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3, fused=True)
    step = 0
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(ddp(x).flatten(0, 1), y.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
            optimizer.step()
            loss = loss.detach()
            dist.all_reduce(loss)
            if dist.get_rank() == 0:
                print(f'step {step} loss {loss.item() / dist.get_world_size():.6g}')
            step += 1
    if dist.get_rank() == 0:
        check(net, folder / 'tuned.safetensors')
    dist.destroy_process_group()


{'write': write, 'train': train}[sys.argv[1]](pathlib.Path(sys.argv[2]))
