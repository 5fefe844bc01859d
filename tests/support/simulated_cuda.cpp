// A CUDA runtime without a GPU, for tests: preloaded (LD_PRELOAD), it takes the place of
// libcudart.so.13 below torch.cuda. The memory of its devices is memory of the process.
//
// A stream is a thread that does what is queued, in order. As CUDA does, copies between the device
// and pinned memory are asynchronous, and copies to pageable memory wait. There are no kernels: a
// launch is an error, so a test can't take memory that nothing has computed for a result.
// tests/support/simulated_cuda.py has the calls by which a test controls the streams.
//
// The library has the SONAME libcuda.so.1, because torch opens the driver by that name. What is not
// defined here is libcudart's own, which reports that there is no driver.
//
// Source: CUDA Runtime API 13.0, "API synchronization behavior" and "Stream synchronization
// behavior" (torch makes streams that do not synchronize with the legacy default stream).
#include <cuda_runtime_api.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int kDevices = 2;
constexpr size_t kDeviceBytes = size_t{8} << 30;
constexpr size_t kAlignment = 512;  // of what cudaMalloc returns
constexpr int kDriverVersion = 13000;
constexpr int kMajorVersion = 9;  // compute capability
constexpr int kWarp = 32;
constexpr int kThreads = 1024;

thread_local int current_device = 0;

// Something that happens once.
class Occurrence {
 public:
  void happen() {
    {
      const std::lock_guard lock(mutex_);
      has_happened_ = true;
    }
    changed_.notify_all();
  }

  bool has_happened() {
    const std::lock_guard lock(mutex_);
    return has_happened_;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return has_happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_happened_ = false;
};

class Stream {
 public:
  Stream() {
    std::thread([this] { run(); }).detach();
  }

  void queue(std::function<void()> call) {
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
    }
    has_calls_.notify_one();
  }

  // Happens when all that is queued now is done.
  std::shared_ptr<Occurrence> end_of_queue() {
    auto end = std::make_shared<Occurrence>();
    queue([end] { end->happen(); });
    return end;
  }

  // The stream stops after what is queued now, until release(), once for each hold().
  void hold() {
    auto release = std::make_shared<Occurrence>();
    const std::lock_guard lock(mutex_);
    releases_.push_back(release);
    calls_.emplace_back([release] { release->wait(); });
    has_calls_.notify_one();
  }

  void release() {
    const std::lock_guard lock(mutex_);
    releases_.front()->happen();
    releases_.pop_front();
  }

 private:
  [[noreturn]] void run() {
    for (;;) next()();
  }

  std::function<void()> next() {
    std::unique_lock lock(mutex_);
    has_calls_.wait(lock, [this] { return !calls_.empty(); });
    auto call = std::move(calls_.front());
    calls_.pop_front();
    return call;
  }

  std::mutex mutex_;
  std::condition_variable has_calls_;
  std::deque<std::function<void()>> calls_;
  std::deque<std::shared_ptr<Occurrence>> releases_;
};

// All streams. They live as long as the process, because their threads do.
class Streams {
 public:
  static Streams& all() {
    static auto* streams = new Streams;
    return *streams;
  }

  Stream& make() {
    const std::lock_guard lock(mutex_);
    made_.push_back(std::make_unique<Stream>());
    return *made_.back();
  }

  // The stream of a handle. The handles of the current device's default streams are small numbers.
  Stream& of(cudaStream_t handle) {
    if (reinterpret_cast<uintptr_t>(handle) > 2) return *reinterpret_cast<Stream*>(handle);
    static const std::array<Stream*, kDevices> defaults = {&make(), &make()};
    return *defaults.at(static_cast<size_t>(current_device));
  }

  void synchronize() {
    std::vector<std::shared_ptr<Occurrence>> ends;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& stream : made_) ends.push_back(stream->end_of_queue());
    }
    for (const auto& end : ends) end->wait();
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Stream>> made_;
};

class Event {
 public:
  void record(Stream& stream) {
    auto end = stream.end_of_queue();
    const std::lock_guard lock(mutex_);
    last_ = std::move(end);
  }

  // Of the last record(). As for CUDA, an event that was never recorded has happened.
  std::shared_ptr<Occurrence> last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Occurrence> last_ = [] {
    auto never_recorded = std::make_shared<Occurrence>();
    never_recorded->happen();
    return never_recorded;
  }();
};

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

// Ranges of memory of one kind.
class Ranges {
 public:
  bool add(void* at, size_t size) {
    const std::lock_guard lock(mutex_);
    return sizes_.emplace(static_cast<char*>(at), size).second;
  }

  bool remove(void* at) {
    const std::lock_guard lock(mutex_);
    return sizes_.erase(static_cast<char*>(at)) == 1;
  }

  bool contain(const void* at) {
    const std::lock_guard lock(mutex_);
    const auto* place = static_cast<const char*>(at);
    auto after = sizes_.upper_bound(const_cast<char*>(place));
    if (after == sizes_.begin()) return false;
    const auto& [begin, size] = *std::prev(after);
    return place < begin + size;
  }

 private:
  std::mutex mutex_;
  std::map<char*, size_t> sizes_;
};

Ranges on_device;
Ranges pinned;
bool is_capturing = false;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t fail(cudaError_t error) { return last_error = error; }

cudaError_t allocate(Ranges& ranges, void** at, size_t size) {
  *at = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (*at == nullptr) return fail(cudaErrorMemoryAllocation);
  ranges.add(*at, size);
  return cudaSuccess;
}

cudaError_t release(Ranges& ranges, void* at) {
  if (at == nullptr) return cudaSuccess;
  if (!ranges.remove(at)) return fail(cudaErrorInvalidValue);
  std::free(at);
  return cudaSuccess;
}

}  // namespace

extern "C" {

// The controls of tests.

void simulated_cuda_hold(cudaStream_t stream) { Streams::all().of(stream).hold(); }
void simulated_cuda_release(cudaStream_t stream) { Streams::all().of(stream).release(); }
void simulated_cuda_set_capturing(bool is) { is_capturing = is; }

// Devices.

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) return fail(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kDriverVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  constexpr std::string_view kName = "simulated";
  kName.copy(properties->name, sizeof properties->name - 1);
  properties->major = kMajorVersion;
  properties->totalGlobalMem = kDeviceBytes;
  properties->multiProcessorCount = 1;
  properties->maxThreadsPerMultiProcessor = kThreads;
  properties->maxThreadsPerBlock = kThreads;
  properties->warpSize = kWarp;
  properties->textureAlignment = kAlignment;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  Streams::all().synchronize();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

// Of the driver: whether this process has a context on the device.
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return 0;
}

// Memory.

cudaError_t cudaMalloc(void** at, size_t size) { return allocate(on_device, at, size); }
cudaError_t cudaFree(void* at) { return release(on_device, at); }
cudaError_t cudaHostAlloc(void** at, size_t size, unsigned) { return allocate(pinned, at, size); }
cudaError_t cudaFreeHost(void* at) { return release(pinned, at); }

cudaError_t cudaHostRegister(void* at, size_t size, unsigned) {
  if (std::getenv("SIMULATED_CUDA_REFUSES_TO_PIN") != nullptr) {
    return fail(cudaErrorMemoryAllocation);
  }
  return pinned.add(at, size) ? cudaSuccess : fail(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* at) {
  return pinned.remove(at) ? cudaSuccess : fail(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* at) {
  *attributes = {};
  if (on_device.contain(at)) {
    attributes->type = cudaMemoryTypeDevice;
  } else if (pinned.contain(at)) {
    attributes->type = cudaMemoryTypeHost;
  }
  attributes->devicePointer = const_cast<void*>(at);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t handle) {
  auto& stream = Streams::all().of(handle);
  if (!on_device.contain(from) && !pinned.contain(from)) {  // may change when this has returned
    const auto* bytes = static_cast<const char*>(from);
    stream.queue([to, copy = std::vector<char>(bytes, bytes + size)] {
      std::memcpy(to, copy.data(), copy.size());
    });
  } else {
    stream.queue([to, from, size] { std::memcpy(to, from, size); });
  }
  if (!on_device.contain(to) && !pinned.contain(to)) stream.end_of_queue()->wait();
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* at, int value, size_t size, cudaStream_t stream) {
  Streams::all().of(stream).queue([at, value, size] { std::memset(at, value, size); });
  return cudaSuccess;
}

// Streams and events.

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(&Streams::all().make());
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Streams::all().of(stream).end_of_queue()->wait();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Streams::all().of(stream).queue([last = event_of(event).last()] { last->wait(); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event_of(event).record(Streams::all().of(stream));
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event_of(event).last()->has_happened() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event_of(event).last()->wait();
  return cudaSuccess;
}

// Kernels.

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return fail(cudaErrorNotSupported);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) {
  return fail(cudaErrorNotSupported);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) {
  return fail(cudaErrorNotSupported);
}

}  // extern "C"
