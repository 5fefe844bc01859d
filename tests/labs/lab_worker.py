"""A trainer without torch: counts steps, saves at SIGTERM, ends with 75, continues from there.

lab_worker.py STEPS FOLDER: rank 0 writes FOLDER/step, FOLDER/running tells that step 1 is done.
"""
import os
import pathlib
import signal
import sys
import time

steps, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
rank, world = os.environ['RANK'], os.environ['WORLD_SIZE']
stops = []
signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
saved = folder / 'step'
step = int(saved.read_text()) if saved.exists() else 0
print(f'rank {rank} of {world} on {os.uname().nodename} begins at step {step} of run '
      f'{os.environ["TORCHELASTIC_RUN_ID"]}', flush=True)
while step < steps and not stops:
    time.sleep(0.05)
    step += 1
    (folder / f'running-{rank}').touch()
if rank == '0':
    saved.write_text(str(step))
print(f'rank {rank} {"saves" if stops else "ends"} at step {step}', flush=True)
sys.exit(75 if stops and step < steps else 0)
