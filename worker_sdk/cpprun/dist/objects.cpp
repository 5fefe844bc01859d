// The wire of torch.distributed's object collectives (distributed_c10d.py): the lengths of the
// pickles as int64, then the pickles as uint8, padded to the longest where all ranks send.
#include "cpprun/dist/objects.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/call.hpp"

namespace cpprun::dist {
namespace {

// Limit on the bytes that a peer may announce.
constexpr int64_t kObjectBytesMax = int64_t{16} << 30;

// The tensors of a call, on a device that the group's backend accepts.
class Buffers {
 public:
  explicit Buffers(const Call& call) : call_(call) {
    for (const c10::Device known : call.pg().getDeviceTypes()) {
      if (known.is_cpu()) return;
    }
    device_ = local_device();
  }

  at::Tensor empty(int64_t size, at::ScalarType type = at::kByte) const {
    return at::empty({size}, at::TensorOptions().dtype(type).device(device_));
  }
  // `bytes`, then zeros up to `size`.
  at::Tensor bytes(const std::string& bytes, int64_t size) const {
    at::Tensor made = at::zeros({size}, at::kByte);
    if (!bytes.empty()) std::memcpy(made.data_ptr(), bytes.data(), bytes.size());
    return made.to(device_);
  }
  at::Tensor numbers(const std::vector<int64_t>& numbers) const {
    return at::tensor(numbers, at::TensorOptions().dtype(at::kLong)).to(device_);
  }
  std::vector<at::Tensor> lengths_of(const std::vector<std::string>& list) const {
    std::vector<at::Tensor> all;
    for (const std::string& each : list) all.push_back(numbers({length_of(each)}));
    return all;
  }
  int64_t length_of(const std::string& bytes) const {
    const auto length = static_cast<int64_t>(bytes.size());
    if (length <= kObjectBytesMax) return length;
    call_.refuse("the object takes " + std::to_string(length) + " bytes, the limit is " +
                 std::to_string(kObjectBytesMax));
  }

 private:
  const Call& call_;
  c10::Device device_{c10::DeviceType::CPU};
};

std::string text_of(const at::Tensor& bytes, int64_t size) {
  const at::Tensor local = bytes.cpu();
  return {static_cast<const char*>(local.const_data_ptr()), static_cast<size_t>(size)};
}

int64_t checked_length(const Call& call, int64_t length) {
  if (length >= 0 && length <= kObjectBytesMax) return length;
  throw DistMismatchError(call.where() + ": a peer announces an object of " +
                          std::to_string(length) + " bytes");
}

// Lengths that a peer sent, all in `tensor`.
std::vector<int64_t> checked_lengths(const Call& call, const at::Tensor& tensor) {
  const at::Tensor local = tensor.cpu();
  const auto* begin = local.const_data_ptr<int64_t>();
  std::vector<int64_t> lengths(begin, begin + local.numel());
  int64_t total = 0;
  for (const int64_t length : lengths)
    total = checked_length(call, total + checked_length(call, length));
  return lengths;
}

int64_t total_of(const std::vector<int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

std::string concatenated(const std::vector<std::string>& list) {
  std::string all;
  for (const std::string& each : list) all += each;
  return all;
}

std::vector<int64_t> lengths_of(const Buffers& buffers, const std::vector<std::string>& list) {
  std::vector<int64_t> all;
  for (const std::string& each : list) all.push_back(buffers.length_of(each));
  return all;
}

void split_into(std::vector<std::string>& list, const at::Tensor& bytes,
                const std::vector<int64_t>& lengths) {
  const std::string all = text_of(bytes, bytes.numel());
  size_t at = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = all.substr(at, static_cast<size_t>(lengths[i]));
    at += list[i].size();
  }
}

std::vector<at::Tensor> gathered(const Call& call, const Buffers& buffers, at::Tensor own) {
  std::vector<std::vector<at::Tensor>> to(1);
  for (int i = 0; i < call.size(); ++i) {
    to[0].push_back(buffers.empty(own.numel(), own.scalar_type()));
  }
  std::vector<at::Tensor> from{std::move(own)};
  const auto native = call.options<c10d::AllgatherOptions>();
  call.start(false, [&] { return call.pg().allgather(to, from, native); });
  return std::move(to[0]);
}

std::vector<int64_t> gathered_lengths(const Call& call, const Buffers& buffers,
                                      const std::string& own) {
  std::vector<int64_t> lengths;
  for (const at::Tensor& one : gathered(call, buffers, buffers.numbers({buffers.length_of(own)}))) {
    lengths.push_back(checked_length(call, one.item<int64_t>()));
  }
  return lengths;
}

std::vector<std::string> texts_of(const std::vector<at::Tensor>& tensors,
                                  const std::vector<int64_t>& lengths) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < tensors.size(); ++i) texts.push_back(text_of(tensors[i], lengths[i]));
  return texts;
}

void broadcast_now(const Call& call, const at::Tensor& tensor, int root) {
  auto native = call.options<c10d::BroadcastOptions>();
  native.rootRank = root;
  std::vector<at::Tensor> tensors{tensor};
  call.start(false, [&] { return call.pg().broadcast(tensors, native); });
}

// `from` is empty except on the root.
void scatter_now(const Call& call, const at::Tensor& to, std::vector<at::Tensor> from, int root) {
  auto native = call.options<c10d::ScatterOptions>();
  native.rootRank = root;
  std::vector<at::Tensor> outputs{to};
  std::vector<std::vector<at::Tensor>> inputs;
  if (call.rank() == root) inputs.push_back(std::move(from));
  call.start(false, [&] { return call.pg().scatter(outputs, inputs, native); });
}

// The root broadcasts the longest length. If its list has not one object per rank, it broadcasts -1
// minus the length of the list instead, so that all ranks fail and none waits for the root.
// Python's ranks refuse a negative length too.
int64_t broadcast_longest(const Call& call, const Buffers& buffers,
                          const std::vector<std::string>& list, int root, int src) {
  int64_t longest = 0;
  if (call.rank() == root) {
    for (const int64_t length : lengths_of(buffers, list)) longest = std::max(longest, length);
    const bool is_whole = list.size() == static_cast<size_t>(call.size());
    if (!is_whole) longest = -1 - static_cast<int64_t>(list.size());
  }
  const at::Tensor sent = buffers.numbers({longest});
  broadcast_now(call, sent, root);
  longest = sent.item<int64_t>();
  if (longest >= 0) return checked_length(call, longest);
  call.refuse("the list of rank " + std::to_string(src) + " has " + std::to_string(-1 - longest) +
              " object(s), wanted is one for each of the " + std::to_string(call.size()) +
              " ranks");
}

std::string with_root(const Call& call, const char* argument, int root) {
  return std::string(call.name()) + " " + argument + "=" + std::to_string(root);
}

}  // namespace

std::vector<std::string> all_gather_bytes(const std::string& bytes, const ProcessGroup& group) {
  const Call call("all_gather_object", group);
  call.compare(call.name());
  const Buffers buffers(call);
  const auto lengths = gathered_lengths(call, buffers, bytes);
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest == 0) return std::vector<std::string>(lengths.size());
  return texts_of(gathered(call, buffers, buffers.bytes(bytes, longest)), lengths);
}

std::vector<std::string> gather_bytes(const std::string& bytes, int dst,
                                      const ProcessGroup& group) {
  const Call call("gather_object", group);
  const int root = call.group_rank(dst, "dst");
  call.compare(with_root(call, "dst", dst));
  const Buffers buffers(call);
  const auto lengths = gathered_lengths(call, buffers, bytes);
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const bool is_root = call.rank() == root;
  if (longest == 0) return std::vector<std::string>(is_root ? lengths.size() : 0);
  auto native = call.options<c10d::GatherOptions>();
  native.rootRank = root;
  std::vector<at::Tensor> from{buffers.bytes(bytes, longest)};
  std::vector<std::vector<at::Tensor>> to;
  if (is_root) {
    to.emplace_back();
    for (int i = 0; i < call.size(); ++i) to[0].push_back(buffers.empty(longest));
  }
  call.start(false, [&] { return call.pg().gather(to, from, native); });
  return is_root ? texts_of(to[0], lengths) : std::vector<std::string>();
}

void broadcast_bytes(std::vector<std::string>& list, int src, const ProcessGroup& group) {
  const Call call("broadcast_object_list", group);
  const int root = call.group_rank(src, "src");
  call.compare(with_root(call, "src", src) + ", " + std::to_string(list.size()) + " object(s)");
  if (list.empty()) return;
  const Buffers buffers(call);
  const bool is_source = call.rank() == root;
  const at::Tensor announced = is_source
                                   ? buffers.numbers(lengths_of(buffers, list))
                                   : buffers.empty(static_cast<int64_t>(list.size()), at::kLong);
  broadcast_now(call, announced, root);
  const auto lengths = checked_lengths(call, announced);
  const int64_t total = total_of(lengths);
  const at::Tensor bytes =
      is_source ? buffers.bytes(concatenated(list), total) : buffers.empty(total);
  if (total > 0) broadcast_now(call, bytes, root);
  if (!is_source) split_into(list, bytes, lengths);
}

std::string scatter_bytes(const std::vector<std::string>& list, int src,
                          const ProcessGroup& group) {
  const Call call("scatter_object_list", group);
  const int root = call.group_rank(src, "src");
  call.compare(with_root(call, "src", src));
  const Buffers buffers(call);
  const int64_t longest = broadcast_longest(call, buffers, list, root, src);
  if (longest == 0) return {};
  std::vector<at::Tensor> padded, lengths;
  if (call.rank() == root) {
    for (const std::string& each : list) padded.push_back(buffers.bytes(each, longest));
    lengths = buffers.lengths_of(list);
  }
  const at::Tensor bytes = buffers.empty(longest), length = buffers.empty(1, at::kLong);
  scatter_now(call, bytes, std::move(padded), root);
  scatter_now(call, length, std::move(lengths), root);
  const int64_t own = length.item<int64_t>();
  if (own > longest) checked_length(call, -1);
  return text_of(bytes, checked_length(call, own));
}

void send_bytes(const std::vector<std::string>& list, int dst, const ProcessGroup& group) {
  const Call call("send_object_list", group);
  call.group_rank(dst, "dst");
  if (list.empty()) return;
  const Buffers buffers(call);
  const auto lengths = lengths_of(buffers, list);
  send(buffers.numbers(lengths), dst, 0, group);
  send(buffers.bytes(concatenated(list), total_of(lengths)), dst, 0, group);
}

int recv_bytes(std::vector<std::string>& list, int src, const ProcessGroup& group) {
  const Call call("recv_object_list", group);
  if (list.empty()) return src;
  const Buffers buffers(call);
  const at::Tensor announced = buffers.empty(static_cast<int64_t>(list.size()), at::kLong);
  const int sender = recv(announced, src, 0, group);
  const auto lengths = checked_lengths(call, announced);
  const at::Tensor bytes = buffers.empty(total_of(lengths));
  recv(bytes, sender, 0, group);
  split_into(list, bytes, lengths);
  return sender;
}

void detail::from_rank(const char* call, int rank, const DistMismatchError& error) {
  throw DistMismatchError(std::string(call) + ": the object of rank " + std::to_string(rank) +
                          ": " + error.what());
}

}  // namespace cpprun::dist
