// The `.metadata` of a checkpoint of torch.distributed.checkpoint (DCP). Pure.
//
// It is a pickle that lists for each tensor its dtype, its shape and the chunks that the ranks
// wrote, and for each chunk its place in one of the files beside it. There, chunks are files of
// torch.save, one behind the other; so are the objects that are no tensors. The bytes are not
// trusted: that the chunks of a tensor cover it exactly, and every number, is checked before it is
// used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "snapshot_files/pickle/pickle.hpp"

namespace cpprun::archive {

struct DcpPlace {
  std::string file;                // a file of the same folder, by its plain name
  uint64_t offset = 0, bytes = 0;  // each at most INT64_MAX
};

// A box of a tensor: of its dimensions, within its shape, not empty.
struct DcpChunk {
  std::vector<int64_t> offsets, sizes;
  DcpPlace place = {};
};

struct DcpTensor {
  std::string dtype;             // as torch spells it
  std::vector<int64_t> shape;    // not negative; the number of bytes fits into int64_t
  std::vector<DcpChunk> chunks;  // each element is in one of them; their places do not overlap
};

struct DcpMetadata {
  std::map<std::string, DcpTensor> tensors;
  std::map<std::string, DcpPlace> objects;  // those that are no tensors
};

inline constexpr pickle::ReadLimits kDcpReadLimits{.nodes = limits::kPickleValues,
                                                   .memo = limits::kPickleValues};
// `limits.text_bytes` applies beside the length of `bytes`. Error: what is wrong, with the name of
// the tensor.
Result<DcpMetadata> parse_dcp_metadata(std::string_view bytes,
                                       pickle::ReadLimits limits = kDcpReadLimits);

}  // namespace cpprun::archive
