#include "graph/layers.h"

#include <cmath>
#include <optional>

namespace vram {
namespace {

// Builds one block. Names of members follow the notation of docs/architecture.md: T tokens, h hidden, e bytes of an
// activation, A and K the widths of all query and KV heads of this rank.
template <Number N>
class Builder {
 public:
  Builder(const Model& model, const Dims<N>& dims, const LayerOptions& options)
      : dims_(dims),
        options_(options),
        kernels_(options.kernels),
        e_(dims.element_bytes),
        t_(dims.tensor_parallel),
        T_(dims.tokens()),
        h_(N::symbol("h", model.hidden)),
        hidden_(static_cast<double>(model.hidden)) {
    tokens_ = static_cast<double>(T_.value());
    tp_ = static_cast<double>(dims.tensor_parallel_value);
  }

  Block<N> take() { return std::move(block_); }
  Block<N>& block() { return block_; }

  // A tensor of the residual stream's shape: whole on every rank, or cut along the sequence.
  N stream(N bytes_a_token) const {
    return dims_.sequence_parallel ? ceil_div(T_ * bytes_a_token, t_) : T_ * bytes_a_token;
  }
  // A tensor whose last dimension is cut by tensor parallelism.
  N cut(N bytes_a_token) const { return ceil_div(T_ * bytes_a_token, t_); }
  N tokens() const { return T_; }
  N e() const { return N(e_); }
  N h() const { return h_; }
  N t() const { return t_; }
  double tokens_value() const { return tokens_; }
  double tp_value() const { return tp_; }
  double hidden_value() const { return hidden_; }

  BlockId store(std::string_view name, std::string_view module, N bytes, bool differentiable = true) {
    return block_.add({.name = name, .module = module, .bytes = bytes, .differentiable = differentiable});
  }

  Operation& op(Kernel kernel, std::string_view name, std::vector<BlockId> in, std::vector<BlockId> out) {
    block_.operations.push_back({.kernel = kernel, .name = name, .in = std::move(in), .out = std::move(out)});
    return block_.operations.back();
  }

  void start() {
    block_.input = store("hidden state", "residual", stream(e() * h_));
    block_.input_needs_gradient = options_.input_needs_gradient;
  }

  // width: numbers a token of the normalised tensor; split: its heads are cut by tensor parallelism (q/k norms).
  // LayerNorm is one kernel of PyTorch in every framework; only RMSNorm is written in Python anywhere.
  BlockId norm(BlockId x, std::string_view name, N width, bool trainable, bool split, N rows,
               NormKind kind = NormKind::rmsnorm) {
    const auto size = [&](N bytes) { return split ? cut(bytes * width) : stream(bytes * width); };
    const N statistics = split ? cut(N(4) * rows) : stream(N(4) * rows);
    if (kernels_.norm_fused || kind == NormKind::layernorm) {
      const BlockId y = store("norm output", "norm", size(e()));
      const BlockId stats = store("norm statistics", "norm", statistics, false);
      Operation& o = op(Kernel::norm_fused, name, {x}, {y});
      o.aux = {stats};
      o.trainable = trainable;
      return y;
    }
    const BlockId upcast = store("norm input, fp32", "norm", size(N(4)), false);
    const BlockId stats = store("norm statistics", "norm", statistics, false);
    const BlockId scaled = store("normalised value", "norm", size(e()), false);
    const BlockId y = store("norm output", "norm", size(e()));
    Operation& o = op(Kernel::norm_python, name, {x}, {y});
    o.aux = {upcast, stats, scaled};
    o.trainable = trainable;
    return y;
  }

  struct Width {
    N symbol;
    double value;
  };

  // y = x W^T with `out_bytes` for y. Adapters add x A^T B^T beside it.
  BlockId linear(BlockId x, std::string_view name, std::string_view out_name, std::string_view module, N out_bytes,
                 Width in, Width out, bool adapted, bool gathers_input = false, bool scatters_output = false) {
    const BlockId y = store(out_name, module, out_bytes);
    Operation& o = op(Kernel::linear, name, {x}, {y});
    o.trainable = !options_.frozen;
    o.flops = 2.0 * tokens_ * in.value * out.value / tp_;
    if (gathers_input && dims_.sequence_parallel) {
      // Sequence parallelism gathers the input of a column-parallel linear for forward and again for backward, where
      // the whole gradient of the input stands beside it until it is reduced and scattered.
      const BlockId whole = store("gathered input", "communication", T_ * e() * in.symbol, false);
      const BlockId gradient = store("gradient before scattering", "communication", T_ * e() * in.symbol, false);
      o.scratch_forward.push_back(whole);
      o.scratch_backward = {whole, gradient};
    }
    if (scatters_output && dims_.sequence_parallel) {
      // A row-parallel linear makes a whole partial sum, and gathers the gradient of its output.
      const BlockId whole = store("output before scattering", "communication", T_ * e() * out.symbol, false);
      o.scratch_forward.push_back(whole);
      o.scratch_backward.push_back(whole);
    }
    if (options_.dequantize) {
      const BlockId expanded =
          store("dequantized weight", "workspace", ceil_div(N(2) * in.symbol * out.symbol, t_), false);
      o.scratch_forward.push_back(expanded);
      o.scratch_backward.push_back(expanded);
    }
    const int64_t rank = options_.adapters.rank;
    if (rank > 0 && adapted) {
      const N r = N::symbol("r", rank);
      const double r_value = static_cast<double>(rank);
      BlockId source = x;
      const N q(options_.adapters.bytes);
      if (options_.adapters.bytes != dims_.element_bytes) {
        // fp32 adapters cast their own copy of the input.
        source = store("adapter input, cast", "adapters", T_ * q * in.symbol);
        op(Kernel::free_form, "adapter cast", {x}, {source});
      }
      const BlockId low = store("adapter hidden", "adapters", T_ * q * r);
      Operation& down = op(Kernel::linear, "adapter A", {source}, {low});
      down.flops = 2.0 * tokens_ * in.value * r_value / tp_;
      const BlockId high = store("adapter output", "adapters", out_bytes);
      Operation& up = op(Kernel::linear, "adapter B", {low}, {high});
      up.flops = 2.0 * tokens_ * r_value * out.value / tp_;
      const BlockId sum = store(out_name, module, out_bytes);
      op(Kernel::free_form, "add adapter", {y, high}, {sum});
      return sum;
    }
    return y;
  }

  BlockId dropout(BlockId x, std::string_view name, double p) {
    if (p <= 0) return x;
    const BlockId y = store("dropout output", "residual", stream(e() * h_));
    const BlockId mask = store("dropout mask", "residual", stream(h_), false);
    Operation& o = op(Kernel::dropout, name, {x}, {y});
    o.aux = {mask};
    return y;
  }

  BlockId residual(BlockId stream_in, BlockId branch) {
    const BlockId y = store("hidden state", "residual", stream(e() * h_));
    op(Kernel::free_form, "residual add", {stream_in, branch}, {y});
    return y;
  }

  const LayerOptions& options() const { return options_; }
  const KernelChoice& kernels() const { return kernels_; }
  const Dims<N>& dims() const { return dims_; }

 private:
  const Dims<N>& dims_;
  const LayerOptions& options_;
  const KernelChoice& kernels_;
  int64_t e_;
  N t_, T_, h_;
  double hidden_, tokens_ = 0, tp_ = 1;
  Block<N> block_;
};

int64_t local_kv_heads(int64_t kv_heads, int64_t tp) { return std::max<int64_t>(1, ceil_div(kv_heads, tp)); }

// Scores and softmax where attention is not fused: the 5·a·s² of the textbook, or 6·a·s² with an fp32 softmax.
template <Number N>
BlockId eager_attention(Builder<N>& b, BlockId q, BlockId k, BlockId v, const Attention& a, double dropout) {
  const N heads = N::symbol("a", a.heads);
  const N rows = heads * b.dims().sequence;  // scores of one token against the whole sequence
  const double flops = 2.0 * b.tokens_value() * static_cast<double>(b.dims().sequence.value()) *
                       static_cast<double>(a.heads * a.head_dim) / b.tp_value();
  const auto score_store = [&](std::string_view name, int64_t bytes, bool grad) {
    return b.store(name, "attention", b.cut(N(bytes) * rows), grad);
  };
  BlockId keys = k, values = v;
  const N out_bytes = b.cut(b.e() * heads * N::symbol("d_v", a.value_head_dim));
  if (b.kernels().repeat_kv && a.kv_heads < a.heads) {
    const N wide = b.cut(b.e() * heads * N::symbol("d", a.head_dim));
    keys = b.store("repeated keys", "attention", wide);
    b.op(Kernel::free_form, "repeat k", {k}, {keys});
    values = b.store("repeated values", "attention", out_bytes);
    b.op(Kernel::free_form, "repeat v", {v}, {values});
  }
  const BlockId scores = score_store("attention scores", b.dims().element_bytes, true);
  Operation& qk = b.op(Kernel::batched_matmul, "q k^T", {q, keys}, {scores});
  qk.flops = flops;
  qk.selective = true;
  BlockId probabilities;
  if (b.kernels().softmax_fp32) {
    const BlockId wide = score_store("softmax output, fp32", 4, true);
    b.op(Kernel::softmax, "softmax", {scores}, {wide}).selective = true;
    probabilities = score_store("attention probabilities", b.dims().element_bytes, true);
    b.op(Kernel::free_form, "cast", {wide}, {probabilities}).selective = true;
  } else {
    probabilities = score_store("softmax output", b.dims().element_bytes, true);
    b.op(Kernel::softmax, "softmax", {scores}, {probabilities}).selective = true;
  }
  if (dropout > 0) {
    const BlockId dropped = score_store("attention probabilities, dropped", b.dims().element_bytes, true);
    const BlockId mask = score_store("attention dropout mask", 1, false);
    Operation& o = b.op(Kernel::dropout, "attention dropout", {probabilities}, {dropped});
    o.aux = {mask};
    o.selective = true;
    probabilities = dropped;
  }
  const BlockId out = b.store("attention output", "attention", out_bytes);
  Operation& pv = b.op(Kernel::batched_matmul, "p v", {probabilities, values}, {out});
  pv.flops = flops;
  pv.selective = true;
  return out;
}

template <Number N>
BlockId attend(Builder<N>& b, BlockId q, BlockId k, BlockId v, const Attention& a) {
  const double dropout = b.options().attention_dropout;
  if (!b.kernels().attention_fused) return eager_attention(b, q, k, v, a, dropout);
  const N heads = N::symbol("a", a.heads);
  const BlockId out =
      b.store("attention output", "attention", b.cut(b.e() * heads * N::symbol("d_v", a.value_head_dim)));
  const BlockId lse = b.store("log-sum-exp, fp32", "attention", b.cut(N(4) * heads), false);
  Operation& o = b.op(Kernel::attention_fused, "attention", {q, k, v}, {out});
  o.aux = {lse};
  o.selective = true;
  const double reach =
      a.window > 0 ? std::min<double>(static_cast<double>(a.window), static_cast<double>(b.dims().sequence.value()))
                   : static_cast<double>(b.dims().sequence.value());
  o.flops =
      2.0 * b.tokens_value() * reach * static_cast<double>(a.heads * (a.head_dim + a.value_head_dim)) / b.tp_value();
  return out;
}

template <Number N>
BlockId grouped_query_attention(Builder<N>& b, BlockId x, const Attention& a) {
  using Width = typename Builder<N>::Width;
  const Adapters& adapt = b.options().adapters;
  const N d = N::symbol("d", a.head_dim), dv = N::symbol("d_v", a.value_head_dim);
  const N heads = N::symbol("a", a.heads);
  const int64_t tp = b.dims().tensor_parallel_value;
  const N kv_local = N::symbol(tp > 1 ? "k/t" : "k", local_kv_heads(a.kv_heads, tp));
  const double kv_all = static_cast<double>(local_kv_heads(a.kv_heads, tp) * tp);
  const Width h{b.h(), b.hidden_value()};
  const Width q_width{heads * d, static_cast<double>(a.heads * a.head_dim)};
  const Width k_width{kv_local * b.t() * d, kv_all * static_cast<double>(a.head_dim)};
  const Width v_width{kv_local * b.t() * dv, kv_all * static_cast<double>(a.value_head_dim)};
  const N kv_bytes = b.tokens() * b.e() * kv_local;
  BlockId q = b.linear(x, "q projection", "queries", "attention", b.cut(b.e() * heads * d), h, q_width, adapt.q, true);
  BlockId k = b.linear(x, "k projection", "keys", "attention", kv_bytes * d, h, k_width, adapt.k);
  const BlockId v = b.linear(x, "v projection", "values", "attention", kv_bytes * dv, h, v_width, adapt.v);
  const bool trainable = !b.options().frozen;
  if (a.qk_norm != Attention::QkNorm::none) {
    q = b.norm(q, "q norm", heads * d, trainable, true, heads);
    k = b.norm(k, "k norm", kv_local * b.t() * d, trainable, true, kv_local * b.t());
  }
  const BlockId qr = b.store("queries, rotated", "attention", b.cut(b.e() * heads * d));
  b.op(Kernel::free_form, "rotary embedding q", {q}, {qr});
  const BlockId kr = b.store("keys, rotated", "attention", kv_bytes * d);
  b.op(Kernel::free_form, "rotary embedding k", {k}, {kr});
  BlockId out = attend(b, qr, kr, v, a);
  if (a.output_gate) {
    const BlockId gate =
        b.linear(x, "output gate", "output gate", "attention", b.cut(b.e() * heads * dv), h, q_width, false);
    const BlockId gated = b.store("gated attention output", "attention", b.cut(b.e() * heads * dv));
    b.op(Kernel::mul, "apply gate", {out, gate}, {gated});
    out = gated;
  }
  return b.linear(out, "output projection", "attention branch", "attention", b.stream(b.e() * b.h()), q_width, h,
                  adapt.o, false, true);
}

// A decoder's attention to the encoder's output. That output is one tensor for all layers, which is why no layer counts
// it as an input that it keeps; keys and values are made from it anew in every layer.
template <Number N>
BlockId cross_attention(Builder<N>& b, BlockId x, const Attention& a) {
  using Width = typename Builder<N>::Width;
  const N d = N::symbol("d", a.head_dim), dv = N::symbol("d_v", a.value_head_dim), heads = N::symbol("a", a.heads);
  const int64_t local = local_kv_heads(a.kv_heads, b.dims().tensor_parallel_value);
  const N kv_local = N::symbol(b.dims().tensor_parallel_value > 1 ? "k/t" : "k", local);
  const Width h{b.h(), b.hidden_value()}, q_width{heads * d, static_cast<double>(a.heads * a.head_dim)};
  const BlockId q = b.linear(x, "cross q projection", "queries", "cross attention", b.cut(b.e() * heads * d), h,
                             q_width, b.options().adapters.q, true);
  const auto projected = [&](std::string_view name, std::string_view out, N width, int64_t numbers) {
    const BlockId y = b.store(out, "cross attention", b.tokens() * b.e() * kv_local * width);
    Operation& o = b.op(Kernel::linear, name, {}, {y});
    o.trainable = !b.options().frozen;
    o.flops = 2.0 * b.tokens_value() * b.hidden_value() * static_cast<double>(local * numbers);
    return y;
  };
  const BlockId k = projected("cross k projection", "keys", d, a.head_dim);
  const BlockId v = projected("cross v projection", "values", dv, a.value_head_dim);
  return b.linear(attend(b, q, k, v, a), "cross output projection", "attention branch", "cross attention",
                  b.stream(b.e() * b.h()), q_width, h, b.options().adapters.o, false, true);
}

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) as frameworks train it: queries and keys are
// expanded to all heads.
template <Number N>
BlockId latent_attention(Builder<N>& b, BlockId x, const Attention& a) {
  using Width = typename Builder<N>::Width;
  const Adapters& adapt = b.options().adapters;
  const bool trainable = !b.options().frozen;
  const N heads = N::symbol("a", a.heads);
  const N qk = N::symbol("d_qk", a.nope_head_dim + a.rope_head_dim), dv = N::symbol("d_v", a.value_head_dim);
  const Width h{b.h(), b.hidden_value()};
  const Width q_width{heads * qk, static_cast<double>(a.heads * (a.nope_head_dim + a.rope_head_dim))};
  BlockId q_source = x;
  Width q_in = h;
  if (a.q_lora_rank > 0) {
    const N rq = N::symbol("r_q", a.q_lora_rank);
    const Width latent{rq, static_cast<double>(a.q_lora_rank)};
    const BlockId low = b.linear(x, "q down", "query latent", "attention", b.stream(b.e() * rq), h, latent, adapt.q);
    q_source = b.norm(low, "q latent norm", rq, trainable, false, N(1));
    q_in = latent;
  }
  const BlockId q =
      b.linear(q_source, "q up", "queries", "attention", b.cut(b.e() * heads * qk), q_in, q_width, adapt.q, true);
  const N rkv = N::symbol("r_kv", a.kv_lora_rank), dr = N::symbol("d_r", a.rope_head_dim);
  const Width kv_low{rkv + dr, static_cast<double>(a.kv_lora_rank + a.rope_head_dim)};
  const BlockId low =
      b.linear(x, "kv down", "KV latent", "attention", b.stream(b.e() * (rkv + dr)), h, kv_low, adapt.k);
  const BlockId normed = b.norm(low, "kv latent norm", rkv, trainable, false, N(1));
  const N up_width = heads * (N::symbol("d_n", a.nope_head_dim) + dv);
  const BlockId kv =
      b.linear(normed, "kv up", "keys and values, expanded", "attention", b.cut(b.e() * up_width),
               {rkv, static_cast<double>(a.kv_lora_rank)},
               {up_width, static_cast<double>(a.heads * (a.nope_head_dim + a.value_head_dim))}, adapt.v, true);
  const BlockId qr = b.store("queries, rotated", "attention", b.cut(b.e() * heads * qk));
  b.op(Kernel::free_form, "rotary embedding q", {q}, {qr});
  const BlockId k = b.store("keys, rotated", "attention", b.cut(b.e() * heads * qk));
  b.op(Kernel::free_form, "assemble keys", {kv, low}, {k});
  const BlockId v = b.store("values", "attention", b.cut(b.e() * heads * dv));
  b.op(Kernel::free_form, "split values", {kv}, {v});
  Attention wide = a;
  wide.head_dim = a.nope_head_dim + a.rope_head_dim;
  wide.kv_heads = a.heads;
  const BlockId out = attend(b, qr, k, v, wide);
  return b.linear(out, "output projection", "attention branch", "attention", b.stream(b.e() * b.h()),
                  {heads * dv, static_cast<double>(a.heads * a.value_head_dim)}, h, adapt.o, false, true);
}

// Recurrent and convolutional mixers: one wide input projection, a scan or convolution that keeps its inputs, a gate,
// an output projection.
template <Number N>
BlockId recurrent_mixer(Builder<N>& b, BlockId x, const Attention& a) {
  using Width = typename Builder<N>::Width;
  const int64_t inner_value = a.inner > 0 ? a.inner : std::max<int64_t>(1, a.heads * a.head_dim);
  const N inner = N::symbol("inner", inner_value);
  const Width h{b.h(), b.hidden_value()}, wide{inner, static_cast<double>(inner_value)};
  const BlockId gate =
      b.linear(x, "gate projection", "mixer gate", "attention", b.cut(b.e() * inner), h, wide, false, true);
  const BlockId in = b.linear(x, "input projection", "mixer input", "attention", b.cut(b.e() * inner), h, wide, false);
  const N small = N::symbol("state inputs", std::max<int64_t>(1, 2 * std::max<int64_t>(1, a.groups) * a.state_dim));
  const BlockId params = b.linear(x, "state projection", "state inputs", "attention", b.tokens() * b.e() * small, h,
                                  {small, static_cast<double>(small.value())}, false);
  const BlockId mixed = b.store("convolution output", "attention", b.cut(b.e() * inner));
  b.op(Kernel::scan, "convolution", {in}, {mixed});
  const BlockId out = b.store("mixer output", "attention", b.cut(b.e() * inner));
  Operation& scan = b.op(Kernel::scan, "scan", {mixed, params}, {out});
  scan.flops = 6.0 * b.tokens_value() * static_cast<double>(inner_value) *
               static_cast<double>(std::max<int64_t>(1, a.state_dim)) / b.tp_value();
  const BlockId gated = b.store("gated mixer output", "attention", b.cut(b.e() * inner));
  b.op(Kernel::mul, "apply gate", {out, gate}, {gated});
  return b.linear(gated, "output projection", "attention branch", "attention", b.stream(b.e() * b.h()), wide, h, false,
                  false, true);
}

// Adapters are put on linears that every token passes; experts have none.
Adapters no_adapters() {
  Adapters none;
  none.rank = 0;
  none.set_attention(false);
  none.set_mlp(false);
  return none;
}

// gate/up/down or up/down over `rows` tokens. `weights`: what multiplies the activation of routed experts, if anything.
// `outer`: the width that the experts read and write where it is not the model's.
template <Number N>
BlockId feed_forward(Builder<N>& b, BlockId x, std::string_view module, bool gated, const std::string& activation,
                     N rows, double rows_value, int64_t width, N divide, double divide_value, N out_bytes,
                     const Adapters& adapt, bool gather, std::optional<BlockId> weights = std::nullopt,
                     int64_t outer = 0) {
  using Width = typename Builder<N>::Width;
  const N f = N::symbol(module == "experts" ? "f_e" : module == "shared expert" ? "f_s" : "f", width);
  const double scale = rows_value / b.tokens_value();
  const Width h{outer > 0 ? N::symbol("h_e", outer) : b.h(),
                (outer > 0 ? static_cast<double>(outer) : b.hidden_value()) * scale};
  const Width wide{f, static_cast<double>(width)};
  const auto sized = [&](N bytes) { return ceil_div(rows * bytes, divide); };
  const double back = b.tp_value() / divide_value;  // Builder::linear divides by tp; experts divide by their own group
  const auto fix = [&](size_t first) {
    auto& ops = b.block().operations;
    for (size_t i = first; i < ops.size(); ++i) ops[i].flops *= back;
  };
  const size_t first = b.block().operations.size();
  BlockId product;
  if (gated) {
    if (b.kernels().swiglu_fused) {
      const BlockId gate_up = b.linear(x, "gate and up projection", "gate and up", module, sized(N(2) * b.e() * f), h,
                                       {N(2) * f, 2.0 * static_cast<double>(width)}, adapt.gate || adapt.up, gather);
      product = b.store("gated product", module, sized(b.e() * f));
      // One kernel multiplies by the weights too (Megatron-Core fusions/fused_bias_swiglu.py,
      // weighted_bias_swiglu_impl).
      auto& inputs = b.op(Kernel::swiglu_fused, "gated activation", {gate_up}, {product}).in;
      if (weights) inputs.push_back(*weights), weights.reset();
    } else {
      const BlockId gate =
          b.linear(x, "gate projection", "gate", module, sized(b.e() * f), h, wide, adapt.gate, gather);
      const BlockId up = b.linear(x, "up projection", "up", module, sized(b.e() * f), h, wide, adapt.up);
      const BlockId active = b.store("activated gate", module, sized(b.e() * f));
      b.op(Kernel::silu, "activation", {gate}, {active});
      product = b.store("gated product", module, sized(b.e() * f));
      b.op(Kernel::mul, "gate times up", {active, up}, {product});
    }
  } else {
    const BlockId up = b.linear(x, "up projection", "up", module, sized(b.e() * f), h, wide, adapt.up, gather);
    product = b.store("activated", module, sized(b.e() * f));
    if (activation == "relu2" || activation == "squared_relu") {
      auto& inputs = b.op(Kernel::relu2, "activation", {up}, {product}).in;
      if (weights) inputs.push_back(*weights), weights.reset();
    } else if (b.kernels().gelu_fused || activation == "relu" || activation == "silu") {
      b.op(Kernel::gelu, "activation", {up}, {product});
    } else {
      // 0.5·x·(1 + tanh(c·(x + 0.044715·x³))) in Python: the power keeps x, tanh its output, the product both factors.
      const auto piece = [&](std::string_view name) { return b.store(name, module, sized(b.e() * f)); };
      const BlockId cube = piece("gelu: cube"), inner = piece("gelu: inner"), tanh = piece("gelu: tanh"),
                    plus = piece("gelu: 1 + tanh"), half = piece("gelu: x/2");
      b.op(Kernel::gelu, "gelu: power", {up}, {cube});
      b.op(Kernel::free_form, "gelu: inner", {up, cube}, {inner});
      b.op(Kernel::tanh, "gelu: tanh", {inner}, {tanh});
      b.op(Kernel::free_form, "gelu: 1 + tanh", {tanh}, {plus});
      b.op(Kernel::free_form, "gelu: x/2", {up}, {half});
      b.op(Kernel::mul, "activation", {half, plus}, {product});
    }
  }
  if (weights) {
    // Other activations are multiplied afterwards and kept for it (Megatron-Core transformer/moe/experts.py).
    const BlockId weighted = b.store("weighted activation", module, sized(b.e() * f));
    b.op(Kernel::mul, "weight activation", {product, *weights}, {weighted});
    product = weighted;
  }
  const BlockId out =
      b.linear(product, "down projection", "mlp branch", module, out_bytes, wide, h, adapt.down, false, gather);
  fix(first);
  return out;
}

template <Number N>
BlockId mixture_of_experts(Builder<N>& b, BlockId x, const Mlp& mlp) {
  const N topk = N::symbol("topk", mlp.experts_per_token);
  const N local = b.dims().sequence_parallel ? ceil_div(b.tokens(), b.t()) : b.tokens();
  const N et = b.dims().expert_tensor_parallel;
  const double et_value = static_cast<double>(et.value());
  // Expert parallelism cancels: a rank holds 1/ep of the experts and receives the tokens of ep ranks.
  const N copies = topk * local * et;
  const double copies_value = static_cast<double>(copies.value());
  const N experts = N::symbol("E", mlp.experts);

  const BlockId logits = b.store("router logits, fp32", "router", local * N(4) * experts);
  Operation& router = b.op(Kernel::linear, "router", {x}, {logits});
  router.trainable = !b.options().frozen;
  router.flops = 2.0 * static_cast<double>(local.value()) * b.hidden_value() * static_cast<double>(mlp.experts);
  const BlockId probabilities = b.store("router probabilities, fp32", "router", local * N(4) * experts);
  b.op(Kernel::softmax, "routing", {logits}, {probabilities});

  using Width = typename Builder<N>::Width;
  const N outer = mlp.latent > 0 ? N::symbol("h_e", mlp.latent) : b.h();
  const Width h{b.h(), b.hidden_value()}, low{outer, static_cast<double>(mlp.latent)};
  const auto own_tokens = [&](BlockId from, std::string_view name, std::string_view out, N width, Width in, Width to) {
    // Replicated over tensor parallelism: every rank projects the tokens it has.
    const BlockId y = b.linear(from, name, out, "experts", local * b.e() * width, in, to, false);
    b.block().operations.back().flops *= b.tp_value() * static_cast<double>(local.value()) / b.tokens_value();
    return y;
  };
  const BlockId source = mlp.latent > 0 ? own_tokens(x, "latent down projection", "latent tokens", outer, h, low) : x;
  const BlockId routed = b.store("routed tokens", "experts", copies * b.e() * outer);
  const BlockId map = b.store("routing map", "experts", copies * N(8), false);
  std::optional<BlockId> weights;
  if (b.kernels().moe_grouped && b.kernels().moe_weighted_activation) {
    weights = b.store("routing weights, fp32", "experts", copies * N(4));
  }
  Operation& dispatch = b.op(Kernel::gather_rows, "dispatch", {source, probabilities}, {routed});
  if (weights) dispatch.out.push_back(*weights);
  dispatch.aux = {map};
  const N out_bytes = copies * b.e() * outer;
  BlockId out = feed_forward(b, routed, "experts", mlp.expert_gated, mlp.activation, copies, copies_value,
                             mlp.expert_ffn, et, et_value, out_bytes, no_adapters(), false, weights, mlp.latent);
  BlockId combined = b.store("mlp branch", "experts", b.stream(b.e() * outer));
  if (b.kernels().moe_grouped) {
    b.op(Kernel::free_form, "combine", {out}, {combined});
  } else {
    const BlockId weighted = b.store("weighted expert output", "experts", out_bytes);
    const BlockId scale = b.store("routing weights", "experts", copies * b.e());
    b.op(Kernel::free_form, "routing weights", {probabilities}, {scale});
    b.op(Kernel::mul, "weight experts", {out, scale}, {weighted});
    b.op(Kernel::free_form, "combine", {weighted}, {combined});
  }
  if (mlp.latent > 0) combined = own_tokens(combined, "latent up projection", "mlp branch", b.h(), low, h);
  // The shared expert, and a dense MLP where the layer has one beside its experts (gemma4).
  for (const auto& [name, width] :
       {std::pair<std::string_view, int64_t>{"shared expert", mlp.shared_ffn}, {"mlp", mlp.dense_ffn}}) {
    if (width <= 0) continue;
    const BlockId other =
        feed_forward(b, x, name, mlp.expert_gated, mlp.activation, b.tokens(), b.tokens_value(), width, b.t(),
                     b.tp_value(), b.stream(b.e() * b.h()), b.options().adapters, false);
    const BlockId sum = b.store("mlp branch", "experts", b.stream(b.e() * b.h()));
    b.op(Kernel::free_form, "add branch", {combined, other}, {sum});
    combined = sum;
  }
  return combined;
}

template <Number N>
BlockId mixer(Builder<N>& b, BlockId x, const Attention& a) {
  switch (a.kind) {
    case AttentionKind::mla:
      return latent_attention(b, x, a);
    case AttentionKind::linear:
    case AttentionKind::mamba1:
    case AttentionKind::mamba2:
    case AttentionKind::convolution:
    case AttentionKind::rwkv:
      return recurrent_mixer(b, x, a);
    default:
      return grouped_query_attention(b, x, a);
  }
}

template <Number N>
BlockId mlp_branch(Builder<N>& b, BlockId x, const Mlp& mlp) {
  if (mlp.kind == MlpKind::moe) return mixture_of_experts(b, x, mlp);
  return feed_forward(b, x, "mlp", mlp.kind == MlpKind::gated, mlp.activation, b.tokens(), b.tokens_value(), mlp.ffn,
                      b.t(), b.tp_value(), b.stream(b.e() * b.h()), b.options().adapters, true);
}

}  // namespace

template <Number N>
Block<N> layer_block(const Model& model, const LayerKind& kind, const Dims<N>& dims, const LayerOptions& options) {
  Builder<N> b(model, dims, options);
  b.start();
  const bool trainable = !options.frozen;
  const bool has_mixer = kind.attention.kind != AttentionKind::none;
  const bool has_mlp = kind.mlp.kind != MlpKind::none;
  const auto normed = [&](BlockId x, std::string_view name) {
    if (kind.norm == NormKind::none || kind.norms == 0) return x;
    return b.norm(x, name, b.h(), trainable, false, kind.norm == NormKind::layernorm ? N(2) : N(1), kind.norm);
  };
  BlockId x = b.block().input;
  if (kind.parallel && has_mixer && has_mlp) {
    const BlockId n = normed(x, "input norm");
    const BlockId m = kind.norms >= 2 ? normed(x, "mlp norm") : n;
    const BlockId attention = mixer(b, n, kind.attention);
    const BlockId mlp = mlp_branch(b, m, kind.mlp);
    const BlockId both = b.store("branches", "residual", b.stream(b.e() * b.h()));
    b.op(Kernel::free_form, "add branches", {attention, mlp}, {both});
    x = b.residual(x, b.dropout(both, "hidden dropout", options.hidden_dropout));
  } else {
    const bool post = kind.norms >= 4;
    if (has_mixer) {
      BlockId branch = mixer(b, normed(x, "input norm"), kind.attention);
      if (post) branch = normed(branch, "post-attention norm");
      x = b.residual(x, b.dropout(branch, "hidden dropout", options.hidden_dropout));
      if (kind.attention.cross) {
        const BlockId crossed = cross_attention(b, normed(x, "cross attention norm"), kind.attention);
        x = b.residual(x, b.dropout(crossed, "hidden dropout", options.hidden_dropout));
      }
    }
    if (has_mlp) {
      BlockId branch = mlp_branch(b, normed(x, "mlp norm"), kind.mlp);
      if (post) branch = normed(branch, "post-mlp norm");
      x = b.residual(x, b.dropout(branch, "hidden dropout", options.hidden_dropout));
    }
  }
  b.block().output = x;
  return b.take();
}

namespace {

int64_t padded_vocabulary(const Model& model, int64_t tp, const LayerOptions& options) {
  const int64_t multiple = options.vocabulary_multiple == 1 ? 1 : options.vocabulary_multiple * tp;
  return ceil_div(model.vocab, multiple) * multiple;
}

}  // namespace

template <Number N>
Block<N> embedding_block(const Model& model, const Dims<N>& dims, const LayerOptions& options) {
  Builder<N> b(model, dims, options);
  // Token ids are int64, and the embedding keeps them for its backward.
  b.block().input = b.store("token ids", "embedding", dims.tokens() * N(8), false);
  b.block().input_needs_gradient = false;
  const BlockId x = b.store("hidden state", "residual", b.stream(b.e() * b.h()));
  Operation& o = b.op(Kernel::gather_rows, "embedding", {b.block().input}, {x});
  o.aux = {b.block().input};
  if (options.placeholder_bytes > 0) {
    // The look-up's gradient is a whole table before it is added to the buffer.
    const N vocabulary = N::symbol("V", padded_vocabulary(model, dims.tensor_parallel_value, options));
    o.scratch_backward = {b.store("gradient of the table", "embedding",
                                  ceil_div(N(options.placeholder_bytes) * vocabulary * b.h(), b.t()), false)};
  }
  b.block().output = b.dropout(x, "embedding dropout", options.hidden_dropout);
  return b.take();
}

template <Number N>
Block<N> head_block(const Model& model, const Dims<N>& dims, const LayerOptions& options) {
  Builder<N> b(model, dims, options);
  b.start();
  const N vocabulary = N::symbol("V", padded_vocabulary(model, dims.tensor_parallel_value, options));
  const NormKind kind = model.kinds.empty() ? NormKind::rmsnorm : model.kinds.back().norm;
  const BlockId x = b.norm(b.block().input, "final norm", b.h(), !options.frozen, false,
                           kind == NormKind::layernorm ? N(2) : N(1), kind);
  const BlockId logits = b.store("logits", "loss", b.cut(b.e() * vocabulary));
  auto& storages = b.block().storages;
  storages[logits].category = Category::logits;
  storages[logits].kept_by_caller = options.kernels.logits_kept;
  Operation& head = b.op(Kernel::linear, "output head", {x}, {logits});
  head.trainable = !options.frozen;
  head.flops = 2.0 * b.tokens_value() * b.hidden_value() * static_cast<double>(model.vocab) / b.tp_value();
  if (dims.sequence_parallel) {
    const BlockId whole = b.store("gathered input", "communication", dims.tokens() * b.e() * b.h(), false);
    const BlockId gradient =
        b.store("gradient before scattering", "communication", dims.tokens() * b.e() * b.h(), false);
    head.scratch_forward = {whole};
    head.scratch_backward = {whole, gradient};
  }
  if (options.placeholder_bytes > 0) {
    const BlockId placeholder = b.store("placeholder of the head's gradient", "loss",
                                        ceil_div(N(options.placeholder_bytes) * vocabulary * b.h(), b.t()), false);
    b.block().operations.back().scratch_backward.push_back(placeholder);
  }
  const BlockId loss = b.store("loss", "loss", dims.tokens() * N(4), false);
  const auto wide = [&](std::string_view name) {
    const BlockId id = b.store(name, "loss", b.cut(N(4) * vocabulary));
    storages[id].category = Category::logits;
    return id;
  };
  switch (options.kernels.loss) {
    case KernelChoice::Loss::upcast: {
      const BlockId upcast = dims.element_bytes == 4 ? logits : wide("logits, fp32");
      if (upcast != logits) b.op(Kernel::free_form, "upcast", {logits}, {upcast});
      const BlockId logp = wide("log-probabilities, fp32");
      b.op(Kernel::log_softmax, "log-softmax", {upcast}, {logp});
      b.op(Kernel::nll, "negative log-likelihood", {logp}, {loss});
      break;
    }
    case KernelChoice::Loss::plain: {
      const BlockId logp = b.store("log-probabilities", "loss", b.cut(b.e() * vocabulary));
      storages[logp].category = Category::logits;
      b.op(Kernel::log_softmax, "log-softmax", {logits}, {logp});
      b.op(Kernel::nll, "negative log-likelihood", {logp}, {loss});
      break;
    }
    case KernelChoice::Loss::vocab_parallel:
    case KernelChoice::Loss::vocab_parallel_compiled: {
      const BlockId probabilities = wide("probabilities, fp32");
      storages[probabilities].differentiable = false;
      Operation& o = b.op(Kernel::cross_entropy_in_place, "cross entropy", {logits}, {loss});
      o.aux = {probabilities};
      if (options.kernels.loss == KernelChoice::Loss::vocab_parallel_compiled) {
        // A compiled function writes its result beside its input instead of over it
        // (core/fusions/fused_cross_entropy.py).
        const BlockId upcast = wide("logits, fp32");
        storages[upcast].differentiable = false;
        b.block().operations.back().scratch_forward = {upcast};
      }
      break;
    }
    case KernelChoice::Loss::fused:
      b.op(Kernel::cross_entropy_fused, "cross entropy", {logits}, {loss});
      break;
  }
  b.block().output = loss;
  return b.take();
}

template <Number N>
N textbook_gpt_layer(N s, N b, N h, N a, Recompute recompute, bool flash) {
  if (recompute == Recompute::full) return N(2) * s * b * h;
  if (recompute == Recompute::selective || flash) return N(34) * s * b * h;
  return s * b * (N(34) * h + N(5) * a * s);
}

template <Number N>
N textbook_llama_layer(N s, N b, N h, N a, N k, N f, Recompute recompute, bool flash) {
  if (recompute == Recompute::full) return N(2) * s * b * h;
  const N linear = N(10) * b * s * h + ceil_div(N(4) * k * b * s * h, a) + N(8) * b * s * f;
  if (recompute == Recompute::selective || flash) return linear;
  return linear + N(5) * b * a * s * s;
}

template <Number N>
N textbook_llama_rest(N s, N b, N h) {
  return N(4) * b * s * h;
}

#define VRAM_INSTANTIATE(N)                                                                              \
  template Block<N> layer_block<N>(const Model&, const LayerKind&, const Dims<N>&, const LayerOptions&); \
  template Block<N> embedding_block<N>(const Model&, const Dims<N>&, const LayerOptions&);               \
  template Block<N> head_block<N>(const Model&, const Dims<N>&, const LayerOptions&);                    \
  template N textbook_gpt_layer<N>(N, N, N, N, Recompute, bool);                                         \
  template N textbook_llama_layer<N>(N, N, N, N, N, N, Recompute, bool);                                 \
  template N textbook_llama_rest<N>(N, N, N);
VRAM_INSTANTIATE(Fast)
VRAM_INSTANTIATE(Traced)

}  // namespace vram
