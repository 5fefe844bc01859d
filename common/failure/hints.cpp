#include "common/failure/hints.hpp"

#include <array>
#include <string>

#include "common/signals.hpp"
#include "common/text.hpp"

namespace cpprun {
namespace {

// A pattern that begins with "class=" or "signal=" matches how the worker ended, not its text.
constexpr std::array kHints{
    Hint{"out_of_memory", "A worker ran out of memory",
         "class=out_of_memory|Cannot allocate memory",
         "the machine, or the job's cgroup, ran out of memory: fewer workers per node, a smaller "
         "batch, fewer DataLoader workers, or a higher memory limit of the container or Slurm "
         "job"},
    Hint{"unusable_node", "SIGKILL did not end a process",
         "SIGKILL did not end|after SIGKILL: state",
         "the process waits inside the kernel (state D) or a tracer holds it: bring back the file "
         "server or the device that it waits for, or end the tracer, else restart the node, and "
         "start nothing on the node before that"},
    Hint{"gpu_out_of_memory", "CUDA out of memory",
         "CUDA out of memory|torch.OutOfMemoryError|torch.cuda.OutOfMemoryError|"
         "CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED|HIP out of memory",
         "the GPU's memory is full: a smaller batch, gradient accumulation or checkpointing, and "
         "look with nvidia-smi whether another process holds the card"},
    Hint{
        "shared_memory", "A DataLoader worker ends with a bus error",
        "signal=SIGBUS|insufficient shared memory|No space left on device: '/dev/shm|"
        "unable to write to file </torch_",
        "shared memory is full: give /dev/shm more room (docker run --shm-size=8g, or --ipc=host), "
        "or use fewer DataLoader workers"},
    Hint{"port_in_use", "Address already in use",
         "Address already in use|EADDRINUSE|errno: 98|address already in use",
         "somebody else listens at this port, often an earlier run of the same script: leave "
         "MASTER_PORT to cpprun (it takes a free one each round), and see who has the port with "
         "ss -ltnp"},
    Hint{"missing_module", "ModuleNotFoundError",
         "ModuleNotFoundError|No module named|ImportError: cannot import name",
         "Python does not find a module: the workers run another interpreter or environment than "
         "you think (cpprun takes python3 from PATH, or PYTHON_EXEC), or it is not installed on "
         "this node"},
    Hint{"missing_library", "error while loading shared libraries",
         "error while loading shared libraries|cannot open shared object file|"
         "libcudart.so|undefined symbol: ",
         "a shared library is missing or of another version on this node: look with ldd, and "
         "set LD_LIBRARY_PATH for the workers"},
    Hint{"disk_full", "No space left on device", "No space left on device|Disk quota exceeded",
         "a disk, or your quota, is full: see df -h for the folders of snapshots and logs"},
    Hint{"too_many_files", "Too many open files", "Too many open files|too many open files|EMFILE",
         "the limit on open files is reached: ulimit -n 65536, and "
         "torch.multiprocessing.set_sharing_strategy('file_system') for many DataLoader workers"},
    Hint{"no_threads", "No thread can be started",
         "can't start new thread|Resource temporarily unavailable|libgomp: Thread creation failed",
         "the limit on processes is reached: ulimit -u, the pids limit of the container, and "
         "OMP_NUM_THREADS"},
    Hint{"program_not_found", "The program could not be started",
         "class=start_failure|can't open file|No such file or directory: 'train",
         "check the program's path on every node (it must be the same), that it may be executed, "
         "and that scripts without an interpreter line run without --no-python"},
    Hint{"wrong_arguments", "The script does not know an argument",
         "unrecognized arguments|the following arguments are required|error: argument ",
         "the script itself refused its arguments: cpprun's own options go before the script's "
         "name, the script's after it; a script of the old launcher wants --pass-local-rank"},
    Hint{"no_gpu", "No CUDA device",
         "No CUDA GPUs are available|no CUDA-capable device|invalid device ordinal|"
         "Found no NVIDIA driver|CUDA driver version is insufficient",
         "there are more workers than usable GPUs, or none: --nproc-per-node=gpu counts them, "
         "CUDA_VISIBLE_DEVICES hides some, and each worker takes the device of its LOCAL_RANK"},
    Hint{"gpu_fault", "A kernel on the GPU failed",
         "device-side assert|an illegal memory access|uncorrectable ECC|CUDA error: unspecified|"
         "CUDA error: misaligned|has fallen off the bus",
         "run once with CUDA_LAUNCH_BLOCKING=1 to see which call it was; an index out of range "
         "(labels, embeddings) is the usual cause, and ECC or bus errors are the card's own: see "
         "dmesg for Xid lines"},
    Hint{"collective_mismatch", "Ranks are not in the same collective",
         "Detected mismatch between collectives|monitoredBarrier|monitored_barrier|"
         "verify_params_across_processes|params_do_not_match",
         "the ranks do different things: a rank skipped a collective, has a model of another "
         "shape, or got more batches than others. TORCH_DISTRIBUTED_DEBUG=DETAIL names the first "
         "that differs. Training with DDP needs no barrier: one that a rank misses stops all"},
    Hint{"unused_parameters", "Expected to have finished reduction",
         "Expected to have finished reduction in the prior iteration",
         "some parameters got no gradient in this step: give DistributedDataParallel "
         "find_unused_parameters=True, or let every output take part in the loss"},
    Hint{"peer_lost", "A peer's connection broke", "class=lost_peer",
         "that is a consequence: another worker, or its node, went first without a word that "
         "reached cpprun. Look at the logs of the other ranks at this moment, and for nodes at "
         "their kernel log"},
    Hint{"rendezvous_timeout", "The workers did not meet",
         "client socket has timed out|wait timeout after|Timed out waiting for clients|"
         "The client socket has failed to connect|DistStoreError|Wait timeout",
         "a rank did not come to init_process_group in time, or MASTER_ADDR can't be reached "
         "from this node: let every rank call it, with the variables that cpprun sets, and check "
         "firewalls and names between the nodes. Where all ranks are only clients of "
         "MASTER_ADDR:MASTER_PORT, --worker-store=agent serves it"},
    Hint{"collective_timeout", "A collective timed out",
         "Watchdog caught collective operation timeout|collective operation timeout|"
         "Operation timed out!|Application timeout caused pair closure",
         "some rank did not come to the collective in time: an uneven number of batches, a slow "
         "save on rank 0, or a rank that hangs. Ranks without this error are the ones to look at"},
    Hint{"nan", "The loss is not a number",
         "FloatingPointError|loss is nan|Loss is nan|contains NaN|contains inf",
         "the numbers diverged, and a restart from the same snapshot diverges again: look at the "
         "learning rate, the loss scale and the batch that came last"},
    Hint{"permission", "Permission denied", "PermissionError|Permission denied",
         "the workers may not read or write what they name: look at the owner of that path on "
         "this node"},
    Hint{"file_not_found", "A file is not there", "FileNotFoundError|No such file or directory",
         "the path is not there on this node: paths are taken from the folder in which cpprun "
         "was started, and data must lie on every node"},
    Hint{"bad_weights", "A state dict does not fit",
         "Error(s) in loading state_dict|size mismatch for|Missing key(s) in state_dict|"
         "Unexpected key(s) in state_dict",
         "the snapshot is of another model: names with `module.` in front come from a wrapped "
         "model (cpprunctl snapshot convert --strip-prefix module.), other shapes from other "
         "settings"},
    Hint{"interrupted", "Ended by a signal from outside",
         "signal=SIGKILL|signal=SIGTERM|"
         "signal=SIGINT|signal=SIGHUP|signal=SIGXCPU",
         "somebody sent this signal: a person, a scheduler, a container's limit, or the OOM "
         "killer of a cgroup above this one (see dmesg)"},
    Hint{"unjoined_thread", "terminate called without an active exception",
         "terminate called without an active exception",
         "a thread still ran when its object was destroyed: torch's Gloo does this where a "
         "program ends without torch.distributed.destroy_process_group(), so call that last; in "
         "C++ programs of your own, join or detach each std::thread"},
    Hint{"crash", "Segmentation fault, abort", "class=crash",
         "native code crashed: PYTHONFAULTHANDLER=1 shows where Python was, a core file (ulimit "
         "-c unlimited) where the rest was; extensions built for another version of torch are "
         "the usual cause"},
};

std::string searched_text(const WorkerExit& end, FailureClass kind, std::string_view why) {
  std::string text = std::string("class=") + name_of(kind) + "\n";
  if (end.signal() != 0) text += "signal=" + signal_name(end.signal()) + "\n";
  text += std::string(why) + "\n";
  if (end.error) text += end.error->message + "\n" + end.error->traceback + "\n";
  for (const std::string& line : end.last_lines) text += line + "\n";
  return text;
}

// "class=" and "signal=" patterns must match a whole line.
bool matches(const std::string& pattern, const std::string& text) {
  const bool is_about_end = pattern.starts_with("class=") || pattern.starts_with("signal=");
  return text.find(is_about_end ? pattern + "\n" : pattern) != std::string::npos;
}

}  // namespace

std::span<const Hint> hints() { return kHints; }

const Hint* hint_for(const WorkerExit& end, FailureClass kind, std::string_view why) {
  const std::string text = searched_text(end, kind, why);
  for (const Hint& hint : kHints) {
    for (const std::string& pattern : text::split(hint.words, '|')) {
      if (matches(pattern, text)) return &hint;
    }
  }
  return nullptr;
}

}  // namespace cpprun
