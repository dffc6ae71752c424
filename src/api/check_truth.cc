#include "api/check_truth.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "api/call.h"
#include "api/check_amount.h"

namespace vram {
namespace {

// "a.b[0].c" in a document.
const Document& at_path(const Document& document, const std::string& path) {
  const Document* d = &document;
  for (size_t at = 0; at < path.size();) {
    if (path[at] == '[') {
      const size_t close = path.find(']', at);
      const auto index = static_cast<size_t>(std::stoul(path.substr(at + 1, close - at - 1)));
      if (!d->is_array() || index >= d->array().size()) throw std::logic_error("no " + path + " in the answer");
      d = &d->array()[index];
      at = close + 1;
    } else {
      if (path[at] == '.') ++at;
      const size_t end = std::min(path.find_first_of(".[", at), path.size());
      d = d->find(path.substr(at, end - at));
      if (!d) throw std::logic_error("no " + path + " in the answer");
      at = end;
    }
  }
  return *d;
}

std::string figure_text(const Document& value, const std::string& unit) {
  if (!value.is_number()) throw std::logic_error("a figure that is no number");
  if (unit == "GiB") return format_gib(static_cast<Bytes>(value.number()));
  if (unit == "GB") return format_gb(value.number(), value.number() < 10e9 ? 2 : 1);
  if (unit == "number") return fmt::format("{:.10g}", value.number());
  throw std::logic_error("a figure in the unknown unit " + unit);
}

struct Asked {
  const Knowledge& knowledge;
  std::map<std::string, Document> answers;  // by command
  std::vector<std::string> commands;

  const Document& operator()(const ConceptClaim::Figure& f) {
    Job job;
    if (!f.job.is_null()) read_job(job, f.job, "data/claims.toml");
    std::string command = command_of(f.verb, job);
    for (const std::string& word : f.words) command += " " + word;
    const auto found = answers.find(command);
    if (found != answers.end()) return found->second;
    Document request{Document::Object{{"verb", f.verb}}};
    if (!f.job.is_null()) request.set("job", f.job);
    if (!f.words.empty()) request.set("words", Document::Array(f.words.begin(), f.words.end()));
    commands.push_back(command);
    return answers.emplace(command, call(request, knowledge).answer).first->second;
  }
};

}  // namespace

void answer_truth(CheckAnswer& a, const Knowledge& knowledge) {
  const ConceptClaim& row = ClaimBook::builtin().concepts[a.claim.row];
  a.verdict = a.claim.right ? Verdict::is_true : row.verdict == "false" ? Verdict::is_false : Verdict::doubtful;
  Asked asked{knowledge, {}, {}};
  fmt::dynamic_format_arg_store<fmt::format_context> figures;
  for (const ConceptClaim::Figure& f : row.figures) {
    figures.push_back(fmt::arg(f.name.c_str(), figure_text(at_path(asked(f), f.path), f.unit)));
  }
  a.truth_en = fmt::vformat(row.truth_en, figures);
  a.truth_zh = fmt::vformat(row.truth_zh, figures);
  a.commands = std::move(asked.commands);
}

}  // namespace vram
