"""DeepSpeed on CPU (ZeRO stage 1, Gloo) with its own checkpoints, without code of cpprun."""

import os

os.environ['DS_ACCELERATOR'] = 'cpu'
import deepspeed
import torch
from common import BATCH, EPOCH, FOLDER, STEPS
from common import batch_of, end, fail_if_wanted, make_model, resumed_at

CONFIG = {
    'train_micro_batch_size_per_gpu': BATCH,
    'zero_optimization': {'stage': 1},
    'zero_allow_untested_optimizer': True,
    'wall_clock_breakdown': False,
}


def main():
    # The all-reduce over shared memory of one node: DeepSpeed would compile it here, for a minute.
    deepspeed.ops.__compatible_ops__['deepspeed_shm_comm'] = False
    deepspeed.init_distributed('gloo', verbose=False)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
    engine.load_checkpoint(str(FOLDER))  # the newest whole one, by the file `latest`
    resumed_at(engine.global_steps)
    while engine.global_steps < STEPS:
        step = engine.global_steps
        fail_if_wanted(step)
        inputs, labels = batch_of(step)
        engine.backward(torch.nn.functional.cross_entropy(engine(inputs), labels))
        engine.step()
        if engine.global_steps % EPOCH == 0:
            engine.save_checkpoint(str(FOLDER))
    end(engine.module.parameters(), engine.global_steps)


main()
