// Sends bytes of different lengths: all ranks gather headers, then rounds of equal chunks.
#include "cpprun/dist/objects.hpp"

#include <algorithm>
#include <cstring>

#include "cpprun/dist/bytes.hpp"
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/single_calls.hpp"
#include "cpprun/dist/objects/object_header.hpp"

namespace cpprun::dist {
namespace {

// Bytes per rank and round. Bounds the memory for padding: this times the number of ranks.
constexpr int64_t kChunk = int64_t{16} << 20;

// Allocates buffers on a device that the group's backend accepts.
struct Buffers {
  explicit Buffers(const Call& call) {
    for (const c10::Device known : call.pg().getDeviceTypes()) {
      if (known.is_cpu()) return;
    }
    device = local_device();
  }
  at::Tensor bytes(int64_t size) const {
    return at::zeros({size}, at::TensorOptions().dtype(at::kByte).device(device));
  }
  c10::Device device{c10::DeviceType::CPU};
};

// The part of `bytes` from `offset` on, in a buffer of `width` bytes.
at::Tensor chunk_of(const Buffers& buffers, const std::string& bytes, int64_t offset,
                    int64_t width) {
  at::Tensor chunk = at::zeros({width}, at::kByte);
  const auto left = static_cast<int64_t>(bytes.size()) - offset;
  if (left > 0) {
    std::memcpy(chunk.data_ptr(), bytes.data() + offset,
                static_cast<size_t>(std::min(left, width)));
  }
  return chunk.to(buffers.device);
}

void append(std::string& to, const at::Tensor& chunk, uint64_t size) {
  const at::Tensor local = chunk.cpu();
  const auto left = size - to.size();
  to.append(static_cast<const char*>(local.data_ptr()),
            std::min(left, static_cast<uint64_t>(local.numel())));
}

// Calls `f(offset, width)` once per round.
template <class F>
void in_rounds(uint64_t longest, F&& f) {
  for (int64_t offset = 0; offset < static_cast<int64_t>(longest); offset += kChunk) {
    f(offset, std::min(kChunk, static_cast<int64_t>(longest) - offset));
  }
}

std::vector<std::string> all_gather_padded(const Call& call, const std::string& own,
                                           const std::vector<uint64_t>& sizes) {
  const Buffers buffers(call);
  std::vector<std::string> all(sizes.size());
  const auto native = call.options<c10d::AllgatherOptions>();
  in_rounds(*std::max_element(sizes.begin(), sizes.end()), [&](int64_t offset, int64_t width) {
    at::Tensor from = chunk_of(buffers, own, offset, width);
    at::Tensor to = buffers.bytes(width * call.size());
    call.start(false, [&] { return single_all_gather(call.pg(), to, from, native); });
    const auto parts = to.split(width);
    for (size_t i = 0; i < all.size(); ++i) append(all[i], parts[i], sizes[i]);
  });
  return all;
}

std::vector<std::string> gather_padded(const Call& call, const std::string& own,
                                       const std::vector<uint64_t>& sizes, int root) {
  const Buffers buffers(call);
  std::vector<std::string> all(call.rank() == root ? sizes.size() : 0);
  auto native = call.options<c10d::GatherOptions>();
  native.rootRank = root;
  in_rounds(*std::max_element(sizes.begin(), sizes.end()), [&](int64_t offset, int64_t width) {
    std::vector<at::Tensor> from{chunk_of(buffers, own, offset, width)};
    std::vector<std::vector<at::Tensor>> to;
    if (!all.empty()) to.emplace_back();
    for (size_t i = 0; i < all.size(); ++i) to[0].push_back(buffers.bytes(width));
    call.start(false, [&] { return call.pg().gather(to, from, native); });
    for (size_t i = 0; i < all.size(); ++i) append(all[i], to[0][i], sizes[i]);
  });
  return all;
}

std::string broadcast_whole(const Call& call, const std::string& own, uint64_t size, int root) {
  const Buffers buffers(call);
  std::string all;
  auto native = call.options<c10d::BroadcastOptions>();
  native.rootRank = root;
  in_rounds(size, [&](int64_t offset, int64_t width) {
    std::vector<at::Tensor> chunk{chunk_of(buffers, own, offset, width)};
    call.start(false, [&] { return call.pg().broadcast(chunk, native); });
    append(all, chunk[0], size);
  });
  return all;
}

// `sizes`: bytes for each rank, known to all ranks.
std::string scatter_padded(const Call& call, const std::vector<std::string>& list,
                           const std::vector<uint64_t>& sizes, int root) {
  const Buffers buffers(call);
  std::string own;
  auto native = call.options<c10d::ScatterOptions>();
  native.rootRank = root;
  in_rounds(*std::max_element(sizes.begin(), sizes.end()), [&](int64_t offset, int64_t width) {
    std::vector<at::Tensor> to{buffers.bytes(width)};
    std::vector<std::vector<at::Tensor>> from;
    if (call.rank() == root) from.emplace_back();
    for (size_t i = 0; i < list.size() && !from.empty(); ++i) {
      from[0].push_back(chunk_of(buffers, list[i], offset, width));
    }
    call.start(false, [&] { return call.pg().scatter(to, from, native); });
    append(own, to[0], sizes[static_cast<size_t>(call.rank())]);
  });
  return own;
}

// Exchanges and compares headers; returns those of all ranks. `root`: global rank or -1.
std::vector<ObjectHeader> exchange_headers(const Call& call, std::string_view type, int64_t root,
                                           uint64_t count, uint64_t bytes, bool counts_matter) {
  call.compare(std::string(call.name()) + " of " + std::string(type));
  const auto own = object_header(call, type, root, count, bytes).packed();
  const std::vector<uint64_t> sizes(call.group()->ranks.size(), kObjectHeaderBytes);
  return agreed(call.where(), call.group()->ranks, all_gather_padded(call, own, sizes),
                counts_matter);
}

std::vector<uint64_t> sizes_of(const std::vector<ObjectHeader>& headers) {
  std::vector<uint64_t> sizes;
  for (const ObjectHeader& header : headers) sizes.push_back(header.bytes);
  return sizes;
}

std::string joined(const std::vector<std::string>& list) {
  ByteWriter to;
  for (const std::string& bytes : list) to.text(bytes);
  return to.take();
}

// Reads back what joined() wrote, into a list of as many texts.
void split_into(std::vector<std::string>& list, const std::string& bytes) {
  ByteReader from(bytes);
  for (std::string& each : list) each = from.text();
  from.end();
}

std::vector<uint64_t> lengths(const std::vector<std::string>& list) {
  std::vector<uint64_t> all;
  for (const std::string& bytes : list) all.push_back(bytes.size());
  return all;
}

std::vector<uint64_t> checked_lengths(const Call& call, const std::string& bytes) {
  auto sizes = deserialize<std::vector<uint64_t>>(bytes);
  const bool is_absurd =
      std::any_of(sizes.begin(), sizes.end(), [](uint64_t size) { return size > kObjectBytesMax; });
  if (sizes.size() == call.group()->ranks.size() && !is_absurd) return sizes;
  throw DistMismatchError(call.where() + ": the root sent lengths that can't be");
}

constexpr const char* kObjectList = "object list";  // the call in headers of send_object_list

void send_string(const Call& call, const Buffers& buffers, const std::string& bytes, int dst) {
  in_rounds(bytes.size(), [&](int64_t offset, int64_t width) {
    send(chunk_of(buffers, bytes, offset, width), dst, 0, ProcessGroup(call.group()));
  });
}

// Returns the sender, too. `src` -1: any rank.
std::pair<std::string, int> recv_string(const Call& call, const Buffers& buffers, uint64_t size,
                                        int src) {
  std::string all;
  in_rounds(size, [&](int64_t, int64_t width) {
    const at::Tensor chunk = buffers.bytes(width);
    src = recv(chunk, src, 0, ProcessGroup(call.group()));
    append(all, chunk, size);
  });
  return {std::move(all), src};
}

}  // namespace

std::vector<std::string> all_gather_bytes(const std::string& bytes, std::string_view type,
                                          const ProcessGroup& group) {
  const Call call("all_gather_object", group);
  const auto headers = exchange_headers(call, type, -1, 1, bytes.size(), true);
  return all_gather_padded(call, bytes, sizes_of(headers));
}

std::vector<std::string> gather_bytes(const std::string& bytes, std::string_view type, int dst,
                                      const ProcessGroup& group) {
  const Call call("gather_object", group);
  const int root = call.group_rank(dst, "dst");
  const auto headers = exchange_headers(call, type, dst, 1, bytes.size(), true);
  return gather_padded(call, bytes, sizes_of(headers), root);
}

void broadcast_bytes(std::vector<std::string>& list, std::string_view type, int src,
                     const ProcessGroup& group) {
  const Call call("broadcast_object_list", group);
  const int root = call.group_rank(src, "src");
  const bool is_source = call.rank() == root;
  const std::string own = is_source ? joined(list) : std::string();
  const auto headers = exchange_headers(call, type, src, list.size(), own.size(), true);
  const auto size = headers[static_cast<size_t>(root)].bytes;
  const std::string all = broadcast_whole(call, own, size, root);
  if (is_source) return;
  split_into(list, all);
}

std::string scatter_bytes(const std::vector<std::string>& list, std::string_view type, int src,
                          const ProcessGroup& group) {
  const Call call("scatter_object_list", group);
  const int root = call.group_rank(src, "src");
  const std::string own_lengths = call.rank() == root ? serialize(lengths(list)) : std::string();
  const auto headers = exchange_headers(call, type, src, list.size(), own_lengths.size(), false);
  const ObjectHeader& source = headers[static_cast<size_t>(root)];
  if (source.count != headers.size()) {
    call.refuse("the list of rank " + std::to_string(src) + " has " + std::to_string(source.count) +
                " object(s), wanted is one for each of the " + std::to_string(headers.size()) +
                " ranks");
  }
  const auto sizes = checked_lengths(call, broadcast_whole(call, own_lengths, source.bytes, root));
  return scatter_padded(call, list, sizes, root);
}

void send_bytes(const std::vector<std::string>& list, std::string_view type, int dst,
                const ProcessGroup& group) {
  const Call call("send_object_list", group);
  const Buffers buffers(call);
  const std::string bytes = joined(list);
  ObjectHeader header = object_header(call, type, -1, list.size(), bytes.size());
  header.call = kObjectList;
  send_string(call, buffers, header.packed(), dst);
  send_string(call, buffers, bytes, dst);
}

int recv_bytes(std::vector<std::string>& list, std::string_view type, int src,
               const ProcessGroup& group) {
  const Call call("recv_object_list", group);
  const Buffers buffers(call);
  const auto [packed, sender] = recv_string(call, buffers, kObjectHeaderBytes, src);
  ObjectHeader own = object_header(call, type, -1, list.size(), 0);
  own.call = kObjectList;
  const auto headers = agreed(call.where(), {sender, get_rank()}, {packed, own.packed()}, true);
  const std::string bytes = recv_string(call, buffers, headers[0].bytes, sender).first;
  split_into(list, bytes);
  return sender;
}

}  // namespace cpprun::dist
