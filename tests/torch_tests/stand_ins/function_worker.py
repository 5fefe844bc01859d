"""A worker that calls the function in FOLDER/call and writes its result to FOLDER/<rank>."""

import os
import pathlib
import pickle
import sys

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    folder = pathlib.Path(sys.argv[1])
    sys.path, call = pickle.loads((folder / 'call').read_bytes())
    function, args = pickle.loads(call)
    (folder / os.environ['RANK']).write_bytes(pickle.dumps(function(*args)))


if __name__ == '__main__':
    main()
