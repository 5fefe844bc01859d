// send, recv, isend, irecv, batch_isend_irecv.
#include "cpprun/dist/collectives.hpp"
#include "cpprun/dist/collectives/call.hpp"
#include "cpprun/dist/objects/tensor_packing.hpp"

namespace cpprun::dist {
namespace {

using Kind = Work::State::Kind;

int peer_rank(const Call& call, int peer, const char* argument) {
  const int rank = call.group_rank(peer, argument);
  if (rank == call.rank()) {
    call.refuse(std::string(argument) + " is this rank itself, " + std::to_string(peer));
  }
  return rank;
}

void check_tag(const Call& call, int tag) {
  if (tag < 0) call.refuse("tag is " + std::to_string(tag) + ", wanted is 0 or more");
}

Kind kind_of(const Call& call, const at::Tensor& tensor) {
  return call.is_gloo(tensor) ? Kind::WaitedOnce : Kind::Polled;
}

Work start_send(const Call& call, const at::Tensor& tensor, int dst, int tag) {
  call.check(tensor, "tensor");
  check_tag(call, tag);
  const int to = peer_rank(call, dst, "dst");
  std::vector<at::Tensor> flat{TensorPacking(Payload::Bytes).pack_input(tensor)};
  return call.start(kind_of(call, tensor), [&] { return call.pg().send(flat, to, tag); });
}

void refuse_any_source(const Call& call, const at::Tensor& tensor) {
  if (!call.is_gloo(tensor)) call.unsupported("recv from any rank is gloo's; name `src`");
}

Work start_recv(const Call& call, const at::Tensor& tensor, int src, int tag) {
  call.check_written(tensor, "tensor");
  check_tag(call, tag);
  TensorPacking packing(Payload::Bytes);
  if (src == -1) {
    refuse_any_source(call, tensor);
    std::vector<at::Tensor> flat{packing.pack_output(tensor)};
    return call.start(
        Kind::FromAnybody, [&] { return call.pg().recvAnysource(flat, tag); }, packing.finish());
  }
  const int from = peer_rank(call, src, "src");
  std::vector<at::Tensor> flat{packing.pack_output(tensor)};
  return call.start(
      kind_of(call, tensor), [&] { return call.pg().recv(flat, from, tag); }, packing.finish());
}

// Backends with coalescing make one operation of all; for others the operations start one by one.
bool coalesces(const Call& call, const std::vector<P2POp>& ops) {
  if (ops.empty() || !ops[0].tensor.defined()) return false;
  return call.pg().getBackend(ops[0].tensor.device().type())->supportsCoalescing() &&
         !call.is_gloo(ops[0].tensor);
}

// All operations end together, in one Work, which then copies the results back into tensors that
// are not contiguous. batch_isend_irecv has checked the arguments.
std::vector<Work> start_coalesced(const Call& call, const std::vector<P2POp>& ops) {
  const auto device = ops[0].tensor.device().type();
  for (const P2POp& op : ops) {
    if (op.tensor.device().type() != device) {
      call.refuse("the tensors are on several kinds of device");
    }
    if (op.peer == -1) refuse_any_source(call, op.tensor);
  }
  const auto finishes = std::make_shared<std::vector<std::function<void()>>>();
  const auto start_all = [&] {
    call.pg().startCoalescing(device);
    for (const P2POp& op : ops) {
      const int peer = peer_rank(call, op.peer, "peer");
      TensorPacking packing(Payload::Bytes);
      if (op.kind == P2POp::Kind::Send) {
        std::vector<at::Tensor> flat{packing.pack_input(op.tensor)};
        call.pg().send(flat, peer, op.tag);
      } else {
        std::vector<at::Tensor> flat{packing.pack_output(op.tensor)};
        call.pg().recv(flat, peer, op.tag);
        if (auto finish = packing.finish()) finishes->push_back(std::move(finish));
      }
    }
    return call.pg().endCoalescing(device);
  };
  return {call.start(Kind::Polled, start_all, [finishes] {
    for (const auto& finish : *finishes) finish();
  })};
}

}  // namespace

void send(at::Tensor tensor, int dst, int tag, const ProcessGroup& group) {
  start_send(Call("send", group), tensor, dst, tag).wait();
}

int recv(at::Tensor tensor, int src, int tag, const ProcessGroup& group) {
  const Call call("recv", group);
  Work work = start_recv(call, tensor, src, tag);
  work.wait();
  if (src != -1) return src;
  return call.group()->ranks.at(static_cast<size_t>(work.state()->source_rank()));
}

Work isend(at::Tensor tensor, int dst, int tag, const ProcessGroup& group) {
  return start_send(Call("isend", group), tensor, dst, tag);
}

Work irecv(at::Tensor tensor, int src, int tag, const ProcessGroup& group) {
  return start_recv(Call("irecv", group), tensor, src, tag);
}

std::vector<Work> batch_isend_irecv(const std::vector<P2POp>& ops, const ProcessGroup& group) {
  const Call call("batch_isend_irecv", group);
  for (const P2POp& op : ops) {
    if (op.kind == P2POp::Kind::Recv) {
      call.check_written(op.tensor, "tensor");
    } else {
      call.check(op.tensor, "tensor");
    }
    check_tag(call, op.tag);
    if (op.kind == P2POp::Kind::Send || op.peer != -1) peer_rank(call, op.peer, "peer");
  }
  if (coalesces(call, ops)) return start_coalesced(call, ops);
  std::vector<Work> works;
  for (const P2POp& op : ops) {
    works.push_back(op.kind == P2POp::Kind::Send ? start_send(call, op.tensor, op.peer, op.tag)
                                                 : start_recv(call, op.tensor, op.peer, op.tag));
  }
  return works;
}

}  // namespace cpprun::dist
