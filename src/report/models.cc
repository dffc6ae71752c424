#include "report/models.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace vram {
namespace {

constexpr size_t kListRows = 24;  // a screen with the lines around it

std::string bytes_text(Bytes b) { return with_commas(b) + " B"; }

// "128k" for 131,072: as people name context lengths.
std::string tokens_text(int64_t n) { return n % 1024 == 0 ? fmt::format("{}k", n / 1024) : with_commas(n); }

std::string join(const std::vector<std::string>& items, std::string_view between) {
  std::string out;
  for (const std::string& i : items) {
    if (!out.empty()) out += between;
    out += i;
  }
  return out;
}

std::string attention_text(const Attention& a) {
  std::string out(attention_kind_name(a.kind));
  if (a.window > 0) out += " " + with_commas(a.window);
  return out;
}

std::string heads_text(const Attention& a) {
  if (a.heads == 0) return {};
  if (a.kind == AttentionKind::mla) return fmt::format("{} x {}+{}", a.heads, a.nope_head_dim, a.rope_head_dim);
  return fmt::format("{}/{} x {}", a.heads, a.kv_heads, a.head_dim);
}

std::string mlp_text(const Mlp& m, Lang lang) {
  switch (m.kind) {
    case MlpKind::none:
      return {};
    case MlpKind::plain:
    case MlpKind::gated:
      return with_commas(m.ffn) + " " + m.activation;
    case MlpKind::moe:
      break;
  }
  std::string out = say(lang, "models.moe", fmt::arg("active", m.experts_per_token), fmt::arg("experts", m.experts),
                        fmt::arg("width", with_commas(m.expert_ffn)));
  if (m.shared_ffn > 0) out += " + " + say(lang, "models.shared", fmt::arg("width", with_commas(m.shared_ffn)));
  return out;
}

std::string headline(const Model& m, const Style& style) {
  std::vector<std::string> parts;
  parts.push_back(
      say(style.lang, "models.parameters", fmt::arg("count", format_count(static_cast<double>(m.counts.parameters)))));
  if (m.layers() > 0) parts.push_back(say(style.lang, "models.layers", fmt::arg("count", m.layers())));
  if (m.layers() > 0) {
    const Attention& a = m.layer(m.layers() - 1).attention;
    if (a.kind == AttentionKind::mla) {
      parts.push_back(say(style.lang, "models.mla", fmt::arg("heads", a.heads)));
    } else if (a.heads > 0) {
      parts.push_back(say(style.lang, "models.heads", fmt::arg("heads", a.heads), fmt::arg("kv_heads", a.kv_heads)));
    }
  }
  parts.push_back(m.origin == "catalogue" ? std::string(text(style.lang, "models.from_catalogue"))
                  : m.origin == "by hand" ? std::string(text(style.lang, "models.by_hand"))
                                          : m.origin);
  if (m.hypothetical) parts.emplace_back(text(style.lang, "models.hypothetical"));
  return m.name + "   " + join(parts, separator(style));
}

std::string counts_table(const ModelAnswer& answer, const Style& style) {
  const Model& m = answer.model;
  const Counts& c = m.counts;
  const Lang lang = style.lang;
  Table table({{}, {{}, Align::right}, {}});
  const auto row = [&](std::string_view id, int64_t n, std::string note = {}) {
    if (n != 0) table.row({text(lang, id), with_commas(n), std::move(note)});
  };
  row("models.count.parameters", c.parameters);
  if (c.active != c.parameters) row("models.count.active", c.active, std::string(text(lang, "models.note.active")));
  row("models.count.embedding", c.embedding,
      m.tied_embeddings ? std::string(text(lang, "models.note.tied")) : std::string());
  row("models.count.head", c.head);
  row("models.count.expert", c.expert);
  row("models.count.encoder", c.encoder);
  row("models.count.vision", c.vision);
  row("models.count.audio", c.audio);
  row("models.count.mtp", c.mtp, std::string(text(lang, "models.note.mtp")));
  std::string stored = format_gib(c.stored_bytes) + " = " + format_gb(static_cast<double>(c.stored_bytes)) + ", " +
                       std::string(dtype_name(m.dtype));
  if (m.quantization) stored += ", " + m.quantization->method + " (" + m.quantization->detail + ")";
  row("models.count.stored", c.stored_elements, stored);
  const int64_t kv = answer.kv_elements_per_token;
  if (kv > 0) {
    std::string note;
    if (answer.kv_elements_past_window != kv) {
      note = say(lang, "models.note.window",
                 fmt::arg("bytes", bytes_text(kv_bytes_16bit(answer.kv_elements_past_window))));
    }
    table.row({text(lang, "models.count.kv"), bytes_text(kv_bytes_16bit(kv)), note});
  }
  row("models.count.state", answer.state_elements_per_sequence, std::string(text(lang, "models.note.state")));
  if (m.max_positions > 0) row("models.count.positions", m.max_positions);
  return table.render(style);
}

std::string layers_table(const ModelAnswer& answer, const Style& style) {
  const Lang lang = style.lang;
  Table table({{std::string(text(lang, "models.col.layers")), Align::right},
               {std::string(text(lang, "models.col.attention"))},
               {std::string(text(lang, "models.col.heads"))},
               {std::string(text(lang, "models.col.kv")), Align::right},
               {std::string(text(lang, "models.col.layer_parameters")), Align::right},
               {std::string(text(lang, "models.col.mlp"))}});
  for (const LayerGroup& g : answer.layers) {
    table.row({with_commas(g.count), attention_text(g.kind.attention), heads_text(g.kind.attention),
               bytes_text(kv_bytes_16bit(g.kv_elements_per_token)), with_commas(g.parameters),
               mlp_text(g.kind.mlp, lang)});
  }
  return table.render(style);
}

std::string groups_table(const std::vector<ParameterGroup>& groups, std::string_view title, int64_t total,
                         const Style& style) {
  const Lang lang = style.lang;
  Table table({{std::string(title)},
               {std::string(text(lang, "models.col.tensors")), Align::right},
               {std::string(text(lang, "models.col.parameters")), Align::right},
               {std::string(text(lang, "models.col.share")), Align::right},
               {std::string(text(lang, "models.col.stored")), Align::right}});
  for (const ParameterGroup& g : groups) {
    const double share = total > 0 ? 100.0 * static_cast<double>(g.parameters) / static_cast<double>(total) : 0;
    table.row({g.name, with_commas(g.tensors), with_commas(g.parameters), fmt::format("{:.2f}%", share),
               format_gib(g.stored_bytes)});
  }
  return table.render(style);
}

std::string tensors_table(const Model& m, const Style& style) {
  const Lang lang = style.lang;
  Table table({{std::string(text(lang, "models.col.tensor"))},
               {std::string(text(lang, "models.col.copies")), Align::right},
               {std::string(text(lang, "models.col.dtype"))},
               {std::string(text(lang, "models.col.elements")), Align::right},
               {std::string(text(lang, "models.col.shape"))}});
  for (const TensorGroup& g : m.tensors) {
    for (const Tensor& t : g.tensors) {
      std::string shape;
      for (int64_t n : t.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(n);
      table.row({t.name, with_commas(checked_mul(g.times(), t.experts)), dtype_name(t.dtype), with_commas(t.elements()),
                 shape});
    }
  }
  return table.render(style);
}

}  // namespace

std::string render(const ModelsAnswer& answer, const Style& style) {
  const Lang lang = style.lang;
  const auto found = static_cast<int64_t>(answer.models.size());
  std::string out;
  if (answer.words.empty()) {
    out = answer_line(style, Tone::plain, say(lang, "models.known", fmt::arg("count", answer.known)));
  } else {
    out = answer_line(style, Tone::plain,
                      say(lang, "models.found", fmt::arg("count", found), fmt::arg("known", answer.known),
                          fmt::arg("words", printable(join(answer.words, " ")))));
  }
  if (found == 0) return out + '\n' + next_line(style, {"vram models", "vram models show ./config.json"});
  out += '\n';
  // Ids are never broken, and the longest take half a line: everything else is short.
  Table table({{std::string(text(lang, "models.col.id"))},
               {std::string(text(lang, "models.col.size")), Align::right},
               {std::string(text(lang, "models.col.active")), Align::right},
               {std::string(text(lang, "models.col.layers")), Align::right},
               {std::string(text(lang, "models.col.kv")), Align::right},
               {std::string(text(lang, "models.col.positions")), Align::right}});
  const size_t shown = style.all ? answer.models.size() : std::min(answer.models.size(), kListRows);
  for (size_t i = 0; i < shown; ++i) {
    const ModelSummary& m = answer.models[i];
    const double kib = static_cast<double>(kv_bytes_16bit(m.kv_elements_per_token)) / kKiB;
    table.row({m.id, format_count(static_cast<double>(m.parameters)),
               m.active == m.parameters ? std::string() : format_count(static_cast<double>(m.active)),
               with_commas(m.layers), kib > 0 ? format_number(kib, 1) + " KiB" : std::string(),
               m.max_positions > 0 ? tokens_text(m.max_positions) : std::string()});
  }
  out += table.render(style);
  if (shown < answer.models.size()) {
    out += paragraph(style, say(lang, "models.more", fmt::arg("count", answer.models.size() - shown)));
  }
  return out + '\n' + next_line(style, {"vram models show " + answer.models.front().id, "vram models llama 70b"});
}

std::string render(const ModelAnswer& answer, bool tensors, const Style& style) {
  const Model& m = answer.model;
  const Lang lang = style.lang;
  std::string out = answer_line(style, Tone::plain, headline(m, style));
  std::vector<std::string> facts;
  if (!m.family.empty()) facts.push_back(say(lang, "models.family", fmt::arg("name", m.family)));
  if (m.hidden > 0) facts.push_back(say(lang, "models.hidden", fmt::arg("count", with_commas(m.hidden))));
  if (m.vocab > 0) facts.push_back(say(lang, "models.vocab", fmt::arg("count", with_commas(m.vocab))));
  out += fact_line(style, facts);
  if (!m.family_known) out += paint(style, Tone::warn, wrap(text(lang, "models.unknown_family"), style.width));
  out += '\n' + counts_table(answer, style);
  if (!answer.layers.empty()) out += '\n' + layers_table(answer, style);
  if (!answer.by_role.empty() && !tensors) {
    out += '\n' + groups_table(answer.by_role, text(lang, "models.col.role"), m.counts.parameters, style);
  }
  if (!answer.by_module.empty() && style.all) {
    out += '\n' + groups_table(answer.by_module, text(lang, "models.col.module"), m.counts.parameters, style);
  }
  if (tensors && !m.tensors.empty()) out += '\n' + tensors_table(m, style);
  out += '\n' + item_line(style, text(lang, "models.fields"), m.fields_used);
  out += item_line(style, text(lang, "models.assumed"), m.assumed(lang));
  if (!m.source.empty()) out += item_line(style, text(lang, "models.source"), {m.source});
  const std::string& name = m.name;
  if (m.origin == "catalogue" && !m.hypothetical) {
    out +=
        next_line(style, {"vram models show " + name + " --tensors", "vram models show " + name + " --set kv_heads=1"});
  }
  return out;
}

}  // namespace vram
