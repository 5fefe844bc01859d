// Programs beside Python's `safetensors`: twins/safetensors_files.py writes and checks the files.
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdio>
#include <iostream>

#include "cpprun/snapshot/safetensors.hpp"
#include "tests/sdk/snapshot/error_text.hpp"
#include "tests/sdk/support/cases.hpp"

namespace {

using namespace cpprun;
using test::error_text;

constexpr int64_t kWidth = 8;

// As gpt2() of the twin, in the names of a program of one's own.
struct Block : torch::nn::Module {
  Block() {
    register_module("norm", norm);
    register_module("qkv", qkv);
  }
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({kWidth})};
  torch::nn::Linear qkv{kWidth, 3 * kWidth};
};

struct Gpt : torch::nn::Module {
  explicit Gpt(int64_t words = 11) : embed(words, kWidth) {
    register_module("embed", embed);
    for (int i = 0; i < 2; ++i) blocks->push_back(std::make_shared<Block>());
    register_module("blocks", blocks);
    register_module("norm", norm);
    head_weight = register_parameter("head_weight", embed->weight);  // tied: a file has it once
  }
  torch::nn::Embedding embed;
  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({kWidth})};
  at::Tensor head_weight;
};

LoadSafetensorsOptions gpt2_names() {
  return {.names = {{"h.*.attn.c_attn.", "blocks.*.qkv.", true},
                    {"h.*.attn.bias", ""},  // the causal mask
                    {"h.*.ln_1.", "blocks.*.norm."},
                    {"wte.", "embed."},
                    {"ln_f.", "norm."}},
          .strict = false};
}

void print_sum(const std::string& name, const at::Tensor& tensor) {
  std::printf("%s %.9f\n", name.c_str(), tensor.to(at::kDouble).sum().item<double>());
}

}  // namespace

// safetensors_read PATH: the sum of each tensor.
SDK_CASE(safetensors_read) {
  const Safetensors file(args.at(0));
  for (const std::string& name : file.names()) print_sum(name, file.tensor(name));
  return 0;
}

// safetensors_describe PATH: dtypes, shapes, and that the file's memory is not the process's.
SDK_CASE(safetensors_describe) {
  at::Tensor kept;
  {
    const Safetensors file(args.at(0));
    for (const std::string& name : file.names()) {
      std::cout << name << ' ' << file.dtype(name) << ' ' << at::IntArrayRef(file.shape(name))
                << ' ' << file.tensor(name).to(at::kDouble).sum().item<double>() << '\n';
    }
    kept = file.tensor("float32");
    kept.fill_(7);
    at::Tensor again = at::zeros({2, 3});
    file.read("float32", again);
    std::cout << "in the file still " << again.sum().item<double>() << '\n';
  }
  std::cout << "in memory " << kept.sum().item<double>() << '\n';
  return 0;
}

// safetensors_load PATH OUT: loads by rules, tunes nothing, writes the module.
SDK_CASE(safetensors_load) {
  Gpt gpt;
  load_safetensors(gpt, args.at(0), gpt2_names());
  for (const auto& item : gpt.named_parameters()) print_sum(item.key(), *item);
  const auto& first = gpt.blocks->ptr<Block>(0)->qkv;
  const Safetensors file(args.at(0));
  const at::Tensor published = file.tensor("h.0.attn.c_attn.weight");
  std::cout << "turned " << at::equal(first->weight, published.t()) << '\n';
  save_safetensors(gpt, args.at(1));
  return 0;
}

// safetensors_misfits PATH: the message of each kind of error.
SDK_CASE(safetensors_misfits) {
  const std::string& path = args.at(0);
  Gpt gpt, wide(12);
  const at::Tensor before = wide.blocks->ptr<Block>(1)->qkv->weight.detach().clone();
  auto strict = gpt2_names();
  strict.strict = true;
  strict.names.erase(strict.names.begin() + 4);  // ln_f
  std::cout << "names: " << error_text([&] { load_safetensors(gpt, path, strict); }) << '\n';
  std::cout << "shape: " << error_text([&] { load_safetensors(wide, path, gpt2_names()); }) << '\n';
  std::cout << "untouched " << at::equal(before, wide.blocks->ptr<Block>(1)->qkv->weight.detach())
            << '\n';
  auto exact = gpt2_names();
  exact.exact_dtype = true;
  std::cout << "exact: " << error_text([&] { load_safetensors(gpt, path, exact); }) << '\n';
  torch::nn::Module counts;
  counts.register_buffer("counts", at::zeros({11, kWidth}, at::kLong));
  std::cout << "dtype: " << error_text([&] {
    load_safetensors(counts, path, {.names = {{"wte.weight", "counts"}}, .strict = false});
  }) << '\n';
  std::cout << "rule: " << error_text([&] {
    load_safetensors(gpt, path, {.names = {{"h.", "b.*"}}});
  }) << '\n';
  std::cout << "none: " << error_text([&] { Safetensors(path).tensor("nothing"); }) << '\n';
  std::cout << "absent: " << error_text([&] { Safetensors(path + ".gone"); }) << '\n';
  return 0;
}
