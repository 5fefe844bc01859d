// Fine-tunes GPT-2 from a published file: the weights of Hugging Face's `gpt2`, or of any size of
// it.
//
//   cpprun --standalone --nproc_per_node=2 ./ex_finetune --model=gpt2 --tokens=tokens.safetensors
//
// The file of tokens has one tensor `tokens` of int64, which a tokenizer in Python has written.
#include "cpprun/torch.hpp"
#include "examples/cpp/support/options.hpp"
#include "examples/cpp/support/print.hpp"

using namespace cpprun;

struct Block : torch::nn::Module {
  Block(int64_t width, int64_t heads) : heads_(heads), norm1(norm(width)), norm2(norm(width)) {
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
    out = register_module("out", torch::nn::Linear(width, width));
    up = register_module("up", torch::nn::Linear(width, 4 * width));
    down = register_module("down", torch::nn::Linear(4 * width, width));
  }
  static torch::nn::LayerNorm norm(int64_t width) {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
  }
  at::Tensor attend(const at::Tensor& x) {
    const auto split = [&](const at::Tensor& each) {
      return each.view({x.size(0), x.size(1), heads_, -1}).transpose(1, 2);
    };
    const auto parts = qkv(x).chunk(3, -1);
    const auto heads = at::scaled_dot_product_attention(
        split(parts[0]), split(parts[1]), split(parts[2]), {}, 0.0, /*is_causal=*/true);
    return out(heads.transpose(1, 2).reshape_as(x));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto y = x + attend(norm1(x));
    return y + down(torch::gelu(up(norm2(y)), "tanh"));
  }
  int64_t heads_;
  torch::nn::LayerNorm norm1, norm2;
  torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};

struct Gpt2 : torch::nn::Module {
  Gpt2(const Safetensors& file, int64_t heads) {
    const auto table = file.shape("wte.weight");
    words = register_module("words", torch::nn::Embedding(table[0], table[1]));
    places = register_module("places", torch::nn::Embedding(file.shape("wpe.weight")[0], table[1]));
    while (file.contains("h." + std::to_string(blocks->size()) + ".ln_1.weight")) {
      blocks->push_back(std::make_shared<Block>(table[1], heads));
    }
    register_module("blocks", blocks);
    norm = register_module("norm", Block::norm(table[1]));
  }
  at::Tensor forward(const at::Tensor& tokens) {
    auto x = words(tokens) + places(torch::arange(tokens.size(1), tokens.device()));
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    return torch::linear(norm(x), words->weight);  // the output layer is the table of words
  }
  torch::nn::Embedding words{nullptr}, places{nullptr};
  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm{nullptr};
};

// Hugging Face's names and ours. Its layers are Conv1D: transposed, compared with Linear.
const std::vector<NameRule> kNames = {{"h.*.attn.bias", ""},  // the causal mask
                                      {"h.*.attn.masked_bias", ""},
                                      {"h.*.attn.c_attn.", "blocks.*.qkv.", true},
                                      {"h.*.attn.c_proj.", "blocks.*.out.", true},
                                      {"h.*.mlp.c_fc.", "blocks.*.up.", true},
                                      {"h.*.mlp.c_proj.", "blocks.*.down.", true},
                                      {"h.*.ln_1.", "blocks.*.norm1."},
                                      {"h.*.ln_2.", "blocks.*.norm2."},
                                      {"ln_f.", "norm."},
                                      {"wte.", "words."},
                                      {"wpe.", "places."}};

// A small GPT-2 of random weights and a text of random tokens, to try this program without a
// download.
void write_demo(const std::string& model, const std::string& tokens) {
  const int64_t width = 48, words = 64;
  std::map<std::string, at::Tensor> tensors;
  const auto draw = [&](const std::string& name, at::IntArrayRef shape) {
    tensors[name] = 0.1 * torch::randn(shape);
  };
  draw("wte.weight", {words, width});
  draw("wpe.weight", {256, width});
  draw("ln_f.weight", {width});
  draw("ln_f.bias", {width});
  for (const std::string layer : {"h.0.", "h.1."}) {
    for (const char* norm : {"ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"}) {
      draw(layer + norm, {width});
    }
    const auto conv = [&](const std::string& name, int64_t inputs, int64_t outputs) {
      draw(layer + name + ".weight", {inputs, outputs});
      draw(layer + name + ".bias", {outputs});
    };
    conv("attn.c_attn", width, 3 * width);
    conv("attn.c_proj", width, width);
    conv("mlp.c_fc", width, 4 * width);
    conv("mlp.c_proj", 4 * width, width);
  }
  save_safetensors(tensors, model);
  save_safetensors({{"tokens", torch::randint(words, {4000}, torch::kLong)}}, tokens);
}

int train(Args args) {
  std::string model = "gpt2", tokens = "tokens.safetensors", output = "tuned.safetensors";
  bool is_demo = false;
  int64_t heads = 12, length = 128, batch_size = 4, epochs = 1;
  examples::Options("Fine-tunes GPT-2 from a published file.")
      .add("--model", model, "folder or .safetensors file")
      .add("--heads", heads, "attention heads of the model (n_head of its config.json)")
      .add("--tokens", tokens, "file with the tensor `tokens`")
      .add("--length", length, "tokens per sample")
      .add("--batch-size", batch_size, "samples per step and rank")
      .add("--epochs", epochs, "passes over the tokens")
      .add("--output", output, "file of the tuned model")
      .add("--demo", is_demo, "write a small random model and tokens to demo-*.safetensors first")
      .parse(args);
  auto group = dist::init_process_group_or_single({.backend = "gloo"});
  if (is_demo) {
    model = "demo-model.safetensors", tokens = "demo-tokens.safetensors";
    if (dist::is_main_process()) write_demo(model, tokens);
    dist::barrier();
  }
  auto net = std::make_shared<Gpt2>(Safetensors(model), heads);
  load_safetensors(*net, model, {.names = kNames});
  cpprun::nn::parallel::DistributedDataParallel ddp(net);

  const auto text = Safetensors(tokens).tensor("tokens");
  const int64_t samples = (text.numel() - 1) / length;
  const auto cut = [&](int64_t from) {
    return text.narrow(0, from, samples * length).view({samples, length});
  };
  data::DistributedSampler sampler(static_cast<size_t>(samples));
  data::DataLoader loader(data::TensorDataset({cut(0), cut(1)}), sampler,
                          {.batch_size = static_cast<size_t>(batch_size), .num_workers = 1});
  optim::FusedAdamW optimizer(ddp.parameters(), torch::optim::AdamWOptions(1e-3));
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    sampler.set_epoch(epoch);
    for (auto& batch : loader) {
      optimizer.zero_grad();
      const auto logits = ddp(batch[0]).flatten(0, 1);
      auto loss = torch::cross_entropy_loss(logits, batch[1].flatten());
      loss.backward();
      cpprun::nn::utils::clip_grad_norm_(ddp.parameters(), 1.0);
      optimizer.step();
      dist::all_reduce(loss.detach_(), dist::ReduceOp::AVG);
      if (dist::is_main_process())
        examples::print_line("step ", step, " loss ", loss.item<float>());
      ++step;
    }
  }
  if (dist::is_main_process()) save_safetensors(*net, output);
  return 0;
}

int main(int argc, char** argv) { return cpprun::main(argc, argv, train); }
