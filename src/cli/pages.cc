#include "cli/pages.h"

#include <fmt/format.h>

#include "api/diff.h"
#include "api/sheet.h"
#include "api/tiers.h"
#include "cli/sides.h"
#include "formats/formats.h"
#include "report/diff.h"
#include "report/page.h"
#include "report/sheet.h"
#include "report/tiers.h"

namespace vram::cli {
namespace {

enum class Form : uint8_t { text, markdown, html };

std::string option_or(const Request& request, std::string_view name) {
  const auto found = request.options.find(name);
  return found == request.options.end() ? std::string() : found->second;
}

Form form_of(const Request& request, const std::string& file) {
  const std::string word = option_or(request, "--format");
  if (word == "text" || word == "txt") return Form::text;
  if (word == "markdown" || word == "md") return Form::markdown;
  if (word == "html") return Form::html;
  if (!word.empty() || request.has("--format")) {
    throw InputError({.field = "--format",
                      .value = word,
                      .problem = "is not known here",
                      .accepted = "text, markdown or html",
                      .near_miss = near_miss(word, {"text", "markdown", "html"})});
  }
  const size_t dot = file.find_last_of('.');
  const std::string ending = dot == std::string::npos ? "" : file.substr(dot + 1);
  if (ending == "html" || ending == "htm") return Form::html;
  if (ending == "md" || ending == "markdown") return Form::markdown;
  return Form::text;
}

std::string written(const Page& page, Form form, Style style, bool to_file) {
  if (to_file) style.color = false;
  switch (form) {
    case Form::markdown:
      return render_markdown(page, style.lang);
    case Form::html:
      return render_html(page, style.lang);
    case Form::text:
      break;
  }
  return render_text(page, style);
}

/// The reply of a page: JSON, the page itself, or a line that says where it was written.
template <class Answer, class MakePage>
Reply deliver(Request& request, const Knowledge& knowledge, const Answer& answer, Exit exit, MakePage make_page) {
  const std::string file = option_or(request, "--output");
  if (request.has("--output") && file.empty()) {
    throw InputError({.field = "--output", .problem = "is empty", .accepted = "a file name"});
  }
  const Form form = form_of(request, file);
  if (request.json) {
    if (request.has("--output") || request.has("--format")) {
      throw InputError({.field = request.has("--output") ? "--output" : "--format",
                        .problem = "has no meaning with --json, which goes to standard output"});
    }
    return {write_json(to_json(answer)), exit};
  }
  const Page page = make_page();
  const std::string text = written(page, form, request.style, !file.empty());
  if (file.empty()) return {text, exit};
  knowledge.environment().write_file(file, text);
  std::string said;
  for (const Page::Verdict& v : page.verdicts) said += answer_line(request.style, v.tone, v.text);
  said += paragraph(request.style, say(request.style.lang, "page.written", fmt::arg("file", file),
                                       fmt::arg("bytes", with_commas(static_cast<int64_t>(text.size())))));
  return {said, exit};
}

}  // namespace

std::vector<Option> page_options() {
  return {{"--format", "text|markdown|html", "cli.opt.format"}, {"--output", "FILE", "cli.opt.output"}};
}

Reply run_sheet(Request& request, const Knowledge& knowledge) {
  const SheetAnswer answer = answer_sheet(request.job, knowledge);
  return deliver(request, knowledge, answer, answer.exit(),
                 [&] { return sheet_page(answer, request.style.lang, request.style.all); });
}

Reply run_tiers(Request& request, const Knowledge& knowledge) {
  const TiersAnswer answer = answer_tiers(request.job, knowledge);
  return deliver(request, knowledge, answer, answer.exit(),
                 [&] { return tiers_page(answer, request.style.lang, request.style.all); });
}

Reply run_diff(Request& request, const Knowledge& knowledge) {
  std::vector<std::string> words = request.words;
  DiffRequest question;
  if (words.size() == 3 && (words.front() == "train" || words.front() == "serve")) {
    question.of = words.front() == "train" ? DiffOf::train : DiffOf::serve;
    words.erase(words.begin());
  }
  if (words.size() != 2) {
    throw InputError({.field = "vram diff",
                      .problem = fmt::format("compares two jobs, not {}", words.size()),
                      .accepted = "job files, or options in quotes: vram diff A.yaml '7B --on 8xH100 --zero 3'"});
  }
  const auto side = [&](const std::string& word, const char* name) {
    Side read = read_side(word, name, request.job, knowledge.environment());
    if (read.of && question.of && *read.of != *question.of) {
      throw InputError({.field = name,
                        .value = word,
                        .problem = "trains where the other serves",
                        .accepted = "two jobs of one kind"});
    }
    if (read.of) question.of = read.of;
    return std::move(read.job);
  };
  question.name_a = words[0];
  question.name_b = words[1];
  question.a = side(words[0], "A");
  question.b = side(words[1], "B");
  const DiffAnswer answer = answer_diff(question, knowledge);
  return deliver(request, knowledge, answer, answer.exit(),
                 [&] { return diff_page(answer, request.style.lang, request.style.all); });
}

}  // namespace vram::cli
