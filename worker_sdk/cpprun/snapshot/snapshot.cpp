#include "cpprun/snapshot/snapshot.hpp"

#include <algorithm>
#include <stdexcept>

#include "cpprun/dist/process_group.hpp"
#include "cpprun/snapshot/impl.hpp"

namespace cpprun {
namespace {

using pickle::Value;
using snapshot::Capture;
using snapshot::Storages;
using snapshot::Tracked;

// Files keep int as int64_t: Python has one integer type.
template <class T>
Tracked track_number(T& value) {
  using Kept = std::conditional_t<std::is_same_v<T, int>, int64_t, T>;
  return {.object = &value,
          .save = [&value](Capture&) { return Value(static_cast<Kept>(value)); },
          .load =
              [&value](const Value& held, const Storages& storages) {
                const auto* whole = held.get_if<int64_t>();  // a double cannot hold every int64_t
                value = whole != nullptr ? static_cast<T>(*whole)
                                         : static_cast<T>(number_of(held, storages));
              }};
}

const std::string& text_of(const Value& value) {
  const auto* text = value.get_if<std::string>();
  if (text == nullptr) {
    throw std::runtime_error(std::string("the file has a ") + kind_name(value) +
                             " where a text belongs");
  }
  return *text;
}

// Other text may be invalid UTF-8, which Python refuses in a str; it is kept as bytes.
bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

int cuda_device() {
  if (!dist::is_initialized()) return -1;
  const c10::Device device = dist::local_device();
  return device.is_cuda() ? device.index() : -1;
}

}  // namespace

const char* name(SnapshotSource source) {
  switch (source) {
    case SnapshotSource::InMemorySnapshot:
      return "memory";
    case SnapshotSource::Disk:
      return "disk";
    case SnapshotSource::None:
      break;
  }
  return "none";
}

Snapshot::Snapshot(SnapshotOptions options) : impl_(new Impl(std::move(options))) {}
Snapshot::~Snapshot() = default;

void Snapshot::Impl::add(const std::string& name, Tracked added) {
  for (const Tracked& each : tracked) {
    const bool is_same = added.object != nullptr && each.object == added.object;
    if (each.name == name || is_same) {
      throw std::invalid_argument("a Snapshot tracks '" + name + "'" +
                                  (is_same ? " already, as '" + each.name + "'" : " twice") +
                                  ": each thing is tracked once");
    }
  }
  added.name = name;
  const std::string key = snapshot::single_key(added);
  const bool is_taken = std::any_of(tracked.begin(), tracked.end(), [&](const Tracked& each) {
    return snapshot::single_key(each) == key;
  });
  if (name.empty() || is_taken || key == snapshot::kRanksKey || key == snapshot::kStepKey ||
      key == snapshot::kFormatKey || key == snapshot::kSecondsKey) {
    throw std::invalid_argument("a Snapshot can't track anything as '" + name +
                                "': the name is taken" +
                                (key == snapshot::kStepKey ? " (resume() returns the step)" : ""));
  }
  tracked.push_back(std::move(added));
}

// With several tracked modules, names are prefixed with the name of their module.
std::vector<snapshot::NamedParameter> Snapshot::Impl::known_parameters() const {
  std::vector<snapshot::NamedParameter> all;
  for (const Tracked& each : tracked) {
    if (each.kind != snapshot::Kind::Module) continue;
    const auto* module = static_cast<const torch::nn::Module*>(each.object);
    for (auto& own : snapshot::named_parameters(*module)) {
      if (modules.size() > 1) own.name.insert(0, each.name + ".");
      all.push_back(std::move(own));
    }
  }
  return all;
}

Snapshot& Snapshot::track(const std::string& name, torch::nn::Module& model, TrackModule options) {
  impl_->add(name, snapshot::track_module(model, options.strict));
  impl_->modules.push_back(&model);
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, torch::optim::Optimizer& optimizer,
                          const torch::nn::Module& model) {
  impl_->add(name, snapshot::track_optimizer(optimizer, snapshot::named_parameters(model)));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, torch::optim::Optimizer& optimizer) {
  impl_->add(name, snapshot::track_optimizer(optimizer, impl_->known_parameters()));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, optim::LRScheduler& scheduler) {
  impl_->add(name, snapshot::track_scheduler(scheduler));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, data::DistributedSampler& sampler) {
  impl_->add(name, snapshot::track_sampler(sampler));
  return *this;
}

Snapshot& Snapshot::track_rng() {
  impl_->add("rng", snapshot::track_generators(cuda_device()));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, bool& value, TrackValue options) {
  Tracked tracked = track_number(value);
  tracked.is_per_rank = options.is_per_rank;
  impl_->add(name, std::move(tracked));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, int& value, TrackValue options) {
  Tracked tracked = track_number(value);
  tracked.is_per_rank = options.is_per_rank;
  impl_->add(name, std::move(tracked));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, int64_t& value, TrackValue options) {
  Tracked tracked = track_number(value);
  tracked.is_per_rank = options.is_per_rank;
  impl_->add(name, std::move(tracked));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, double& value, TrackValue options) {
  Tracked tracked = track_number(value);
  tracked.is_per_rank = options.is_per_rank;
  impl_->add(name, std::move(tracked));
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, std::string& value, TrackValue options) {
  impl_->add(name, {.is_per_rank = options.is_per_rank,
                    .object = &value,
                    .save = [&value](Capture&) { return pickle::text_or_bytes(value); },
                    .load =
                        [&value](const Value& held, const Storages&) {
                          const auto* bytes = held.get_if<pickle::Bytes>();
                          value = bytes != nullptr ? bytes->bytes : text_of(held);
                        }});
  return *this;
}

Snapshot& Snapshot::track(const std::string& name, at::Tensor& value, TrackValue options) {
  impl_->add(name, {.is_per_rank = options.is_per_rank,
                    .object = &value,
                    .save = [&value](Capture& capture) { return capture.add(value, true); },
                    .load =
                        [&value](const Value& held, const Storages& storages) {
                          const auto* ref = held.get_if<pickle::TensorRef>();
                          if (ref == nullptr) throw std::runtime_error("the file has no tensor");
                          snapshot::assign(value, *ref, storages);
                        }});
  return *this;
}

void Snapshot::track_buckets(const std::string& model, std::function<std::string()> save,
                             std::function<void(const std::string&)> load) {
  track_state(model + "_buckets", std::move(save), std::move(load));
  impl_->tracked.back().is_optional = true;
}

Snapshot& Snapshot::track_state(const std::string& name, std::function<std::string()> save,
                                std::function<void(const std::string&)> load, TrackValue options) {
  impl_->add(name, {.is_per_rank = options.is_per_rank,
                    .save =
                        [save = std::move(save)](Capture&) {
                          std::string text = save();
                          return is_ascii(text) ? Value(std::move(text))
                                                : Value(pickle::Bytes{std::move(text)});
                        },
                    .load =
                        [load = std::move(load)](const Value& held, const Storages&) {
                          const auto* bytes = held.get_if<pickle::Bytes>();
                          load(bytes != nullptr ? bytes->bytes : text_of(held));
                        }});
  return *this;
}

Resumed Snapshot::resume() {
  return impl_->resume();
}

bool Snapshot::save_async(int64_t step) {
  return impl_->start_save(step);
}

bool Snapshot::save(int64_t step) {
  impl_->saver.wait();
  return impl_->start_save(step) && impl_->saver.wait();
}

bool Snapshot::maybe_save(int64_t step, const SaveWhen& when) {
  return impl_->is_due(step, when) && impl_->start_save(step);
}

bool Snapshot::wait() {
  return impl_->saver.wait();
}

std::string Snapshot::last_path() const {
  impl_->saver.wait();
  return impl_->last_path;
}

}  // namespace cpprun
