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
         "the machine or the job's cgroup ran out of memory. Use fewer workers per node, a "
         "smaller batch or fewer DataLoader workers, or raise the memory limit of the "
         "container or Slurm job"},
    Hint{"unusable_node", "SIGKILL did not end a process",
         "SIGKILL did not end|after SIGKILL: state",
         "the process waits inside the kernel (state D), a tracer holds it, or it has become "
         "another user's (sudo). Bring back the file server or device that it waits for, end "
         "the tracer, or end the process as its user; otherwise reboot the node. Start nothing "
         "on the node before that"},
    Hint{"gpu_out_of_memory", "CUDA out of memory",
         "CUDA out of memory|torch.OutOfMemoryError|torch.cuda.OutOfMemoryError|"
         "CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED|HIP out of memory",
         "the GPU's memory is full. Use a smaller batch, gradient accumulation or activation "
         "checkpointing, and check with nvidia-smi whether another process uses the GPU"},
    Hint{"shared_memory", "A DataLoader worker ends with a bus error",
         "signal=SIGBUS|insufficient shared memory|No space left on device: '/dev/shm|"
         "unable to write to file </torch_",
         "shared memory is full. Make /dev/shm larger (docker run --shm-size=8g, or "
         "--ipc=host), or use fewer DataLoader workers. If `df /dev/shm` shows room: a file that "
         "the program maps (mmap, numpy.memmap) has become shorter, or its disk has failed"},
    Hint{"dataloader_killed", "A DataLoader worker is killed", "is killed by signal: Killed",
         "another program killed a process of the DataLoader, usually the kernel's OOM killer. "
         "Check dmesg and the container's memory limit, and use fewer DataLoader workers"},
    Hint{"port_in_use", "Address already in use",
         "Address already in use|EADDRINUSE|errno: 98|address already in use",
         "another process listens on this port, often an earlier run of the same script. Do "
         "not set MASTER_PORT yourself: cpprun picks a free one each round. `ss -ltnp` shows "
         "which process has the port"},
    Hint{"missing_cpprun_worker", "No module named 'cpprun_worker'",
         "No module named 'cpprun_worker",
         "install cpprun's wheel into the environment of the workers, or put worker_sdk/python of "
         "cpprun's sources on PYTHONPATH"},
    Hint{"missing_module", "ModuleNotFoundError",
         "ModuleNotFoundError|No module named|ImportError: cannot import name",
         "Python does not find a module. It is not installed on this node, or the workers run "
         "another environment than you expect: cpprun runs python3 from PATH, or the program "
         "that PYTHON_EXEC names"},
    Hint{"missing_library", "error while loading shared libraries",
         "error while loading shared libraries|cannot open shared object file|"
         "libcudart.so|undefined symbol: ",
         "a shared library is missing on this node, or has another version. Check the program "
         "with ldd, and set LD_LIBRARY_PATH for the workers"},
    Hint{"disk_full", "No space left on device", "No space left on device|Disk quota exceeded",
         "a disk or your quota is full. Check the folders of snapshots and logs with df -h"},
    Hint{"too_many_files", "Too many open files", "Too many open files|too many open files|EMFILE",
         "the limit on open files is reached. Raise it with ulimit -n 65536; with many "
         "DataLoader workers also call "
         "torch.multiprocessing.set_sharing_strategy('file_system')"},
    Hint{"no_threads", "No thread can be started",
         "can't start new thread|Resource temporarily unavailable|libgomp: Thread creation failed",
         "the limit on processes and threads is reached. Check ulimit -u and -v, the container's "
         "pids limit and OMP_NUM_THREADS"},
    Hint{"too_long_arguments", "Arguments and environment are too long",
         "are too long together|Argument list too long",
         "the system limits a program's arguments and environment together to a quarter of "
         "ulimit -s, and each of them to 128 KiB. Unset large variables, pass long values in a "
         "file, or raise ulimit -s"},
    Hint{"program_not_found", "The program could not be started",
         "class=start_failure|can't open file|No such file or directory: 'train",
         "the program could not be started. Check that its path is the same on every node, "
         "that the file is executable, and that a script without a #! line runs without "
         "--no-python"},
    Hint{"wrong_arguments", "The script does not know an argument",
         "unrecognized arguments|the following arguments are required|error: argument ",
         "the script refused its arguments. Options of cpprun go before the script's name, "
         "those of the script after it. A script written for torch.distributed.launch needs "
         "--pass-local-rank"},
    Hint{"no_gpu", "No CUDA device",
         "No CUDA GPUs are available|no CUDA-capable device|invalid device ordinal|"
         "Found no NVIDIA driver|CUDA driver version is insufficient",
         "there are more workers than usable GPUs, or no GPU. --nproc-per-node=gpu starts one "
         "worker per GPU; CUDA_VISIBLE_DEVICES hides GPUs; each worker uses the device of its "
         "LOCAL_RANK"},
    Hint{"gpu_fault", "A kernel on the GPU failed",
         "device-side assert|an illegal memory access|uncorrectable ECC|CUDA error: unspecified|"
         "CUDA error: misaligned|has fallen off the bus",
         "a GPU kernel failed. Run once with CUDA_LAUNCH_BLOCKING=1 to find the call. The "
         "usual cause is an index out of range (labels, embeddings). ECC and bus errors are "
         "hardware errors: look for Xid lines in dmesg"},
    Hint{"collective_mismatch", "Ranks are not in the same collective",
         "Detected mismatch between collectives|monitoredBarrier|monitored_barrier|"
         "verify_params_across_processes|params_do_not_match",
         "the ranks run different collectives: one rank skipped a call, has a model of "
         "another shape, or has more batches than the others. TORCH_DISTRIBUTED_DEBUG=DETAIL "
         "names the first difference. DDP needs no barrier, and a barrier that one rank "
         "misses stops all ranks"},
    Hint{"unused_parameters", "Expected to have finished reduction",
         "Expected to have finished reduction in the prior iteration",
         "some parameters got no gradient in this step. Pass find_unused_parameters=True to "
         "DistributedDataParallel, or let every output take part in the loss"},
    Hint{"peer_lost", "A peer's connection broke", "class=lost_peer",
         "this worker lost its connection to a peer that failed first. cpprun has no report "
         "from that peer: check the other ranks' logs and the kernel logs of the nodes"},
    Hint{"rendezvous_timeout", "The workers did not meet",
         "client socket has timed out|wait timeout after|Timed out waiting for clients|"
         "The client socket has failed to connect|DistStoreError|Wait timeout",
         "a rank did not reach init_process_group in time, or this node cannot reach "
         "MASTER_ADDR. Call init_process_group on every rank, with the variables that cpprun "
         "sets, and check firewalls and host names. If all ranks are only clients of "
         "MASTER_ADDR:MASTER_PORT, use --worker-store=agent"},
    Hint{"collective_timeout", "A collective timed out",
         "Watchdog caught collective operation timeout|collective operation timeout|"
         "Operation timed out!|Application timeout caused pair closure|"
         "ms for recv operation to complete|ms for send operation to complete",
         "a rank did not reach the collective in time: an uneven number of batches, a slow "
         "save on rank 0, or a rank that hangs. Look at the ranks without this error"},
    Hint{"nan", "The loss is not a number",
         "FloatingPointError|loss is nan|Loss is nan|contains NaN|contains inf",
         "the numbers diverged, and will diverge again from the same snapshot. Check the "
         "learning rate, the loss scale and the last batch"},
    Hint{"permission", "Permission denied", "PermissionError|Permission denied",
         "the workers may not read or write this path. Check its owner and mode on this node"},
    Hint{"file_not_found", "A file is not there", "FileNotFoundError|No such file or directory",
         "this path does not exist on this node. Relative paths start in the folder where "
         "cpprun was started, and data must be on every node"},
    Hint{"bad_weights", "A state dict does not fit",
         "Error(s) in loading state_dict|size mismatch for|Missing key(s) in state_dict|"
         "Unexpected key(s) in state_dict",
         "the snapshot belongs to another model. Other shapes come from other settings: go back "
         "to those, or save into another folder. Names that begin with `module.` come from a "
         "wrapped model (use cpprunctl snapshot convert --strip-prefix module.)"},
    Hint{"killed", "Ended by SIGKILL", "signal=SIGKILL",
         "another program sent this signal: a user, a scheduler, a container's limit, or the "
         "OOM killer of an outer cgroup. Check dmesg"},
    Hint{"interrupted", "Ended by a signal from outside",
         "signal=SIGTERM|signal=SIGINT|signal=SIGHUP",
         "another program sent this signal, such as a user or a scheduler"},
    Hint{"cpu_time", "Ended by SIGXCPU", "signal=SIGXCPU",
         "the process has used the CPU time of its limit. Raise it (ulimit -t)"},
    Hint{"unjoined_thread", "terminate called without an active exception",
         "terminate called without an active exception",
         "a thread was still running when its object was destroyed. torch's Gloo does this if "
         "a program ends without torch.distributed.destroy_process_group(): call it last. In "
         "your own C++ code, join or detach each std::thread"},
    Hint{"crash", "Segmentation fault, abort", "class=crash",
         "native code crashed. PYTHONFAULTHANDLER=1 prints the Python stack, a core file "
         "(ulimit -c unlimited) has the native one. The usual cause is an extension that was "
         "built for another version of torch"},
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

// The name after "No module named", as in "No module named 'torch_geometric'"; "" if there is none.
std::string missing_module(const WorkerExit& end) {
  constexpr std::string_view kWords = "No module named ";
  const std::string text = error_text(end);
  const size_t at = text.find(kWords);
  if (at == std::string::npos) return "";
  std::string_view name = std::string_view(text).substr(at + kWords.size());
  if (name.starts_with('\'')) name.remove_prefix(1);
  return std::string(name.substr(0, name.find_first_of("'; \n")));
}

}  // namespace

std::span<const Hint> hints() { return kHints; }

std::string hint_text(const Hint& hint, const RootCause& root_cause,
                      const std::string& interpreter) {
  const std::string module = hint.id == "missing_module" ? missing_module(root_cause.end) : "";
  if (module.empty()) return std::string(hint.fix);
  const std::string program = interpreter.empty() ? "Python" : interpreter;
  return "module '" + module + "' is not installed for " + program + " on " + root_cause.node +
         ". Wrong environment? cpprun runs python3 from PATH, or the program that PYTHON_EXEC "
         "names";
}

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
