"""A trainer without torch: counts steps, saves every ten and at SIGTERM, ends with 75 then, and
continues from what is saved.

lab_worker.py STEPS FOLDER: rank 0 writes FOLDER/step, FOLDER/running-RANK marks a first step,
and the file FOLDER/finish ends the training before STEPS. FOLDER/process-... has the world of a
process, and the times of its first and its newest step (worlds.py).
"""
import os
import pathlib
import signal
import sys
import time

steps, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
rank, world = os.environ['RANK'], os.environ['WORLD_SIZE']
record = folder / f'process-{os.uname().nodename}-{time.monotonic_ns()}'
world_of_all = ':'.join(os.environ[name] for name in (
    'TORCHELASTIC_RUN_ID', 'TORCHELASTIC_RESTART_COUNT', 'MASTER_ADDR', 'MASTER_PORT'))
first_step = None
stops = []
signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
saved = folder / 'step'
step = int(saved.read_text()) if saved.exists() else 0
print(f'rank {rank} of {world} on {os.uname().nodename} begins at step {step} of run '
      f'{os.environ["TORCHELASTIC_RUN_ID"]}', flush=True)


def save():
    draft = folder / 'step.new'
    draft.write_text(str(step))
    draft.rename(saved)


def note_process():
    global first_step
    now = time.monotonic()  # all hosts of a lab have one clock
    first_step = first_step or now
    draft = folder / f'{record.name}.new'.replace('process-', 'draft-')
    draft.write_text(f'{world_of_all} {first_step} {now}\n')
    draft.rename(record)


def is_over():
    return step >= steps or (folder / 'finish').exists()


while not is_over() and not stops:
    time.sleep(0.05)
    step += 1
    note_process()
    (folder / f'running-{rank}').touch()
    if rank == '0' and step % 10 == 0:
        save()
if rank == '0':
    save()
print(f'rank {rank} {"saves" if stops else "ends"} at step {step}', flush=True)
sys.exit(75 if stops and not is_over() else 0)
