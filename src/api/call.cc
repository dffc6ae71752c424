#include "api/call.h"

#include <fmt/format.h>

#include "api/check.h"
#include "api/diff.h"
#include "api/fit.h"
#include "api/gpus.h"
#include "api/models.h"
#include "api/serve.h"
#include "api/sheet.h"
#include "api/tiers.h"
#include "api/train.h"

namespace vram {
namespace {

struct Question {
  Job job, other;
  bool has_other = false;
  std::string of;
  std::vector<std::string> words, compare;
  bool tensors = false, list = false;
  std::string claim;
};

Exit exit_of(bool yes) { return yes ? Exit::yes : Exit::no; }

Reply fit(const Question& q, const Knowledge& k) {
  if (!has_model(q.job)) return {Exit::yes, to_json(answer_largest(q.job, k))};
  const FitAnswer a = answer_fit(q.job, k);
  return {exit_of(a.any()), to_json(a)};
}

Reply train(const Question& q, const Knowledge& k) {
  const TrainAnswer a = answer_train(q.job, k);
  return {exit_of(a.fits()), to_json(a)};
}

Reply serve(const Question& q, const Knowledge& k) {
  const ServeAnswer a = answer_serve(q.job, k);
  return {a.exit(), to_json(a)};
}

Reply sheet(const Question& q, const Knowledge& k) {
  const SheetAnswer a = answer_sheet(q.job, k);
  return {a.exit(), to_json(a)};
}

Reply diff(const Question& q, const Knowledge& k) {
  if (!q.has_other)
    throw InputError({.file = "request", .field = "other", .problem = "is missing", .accepted = "a second job"});
  DiffRequest request{.a = q.job, .b = q.other, .name_a = "job", .name_b = "other", .of = std::nullopt};
  if (q.of == "train" || q.of == "serve") {
    request.of = q.of == "train" ? DiffOf::train : DiffOf::serve;
  } else if (!q.of.empty()) {
    throw InputError(
        {.file = "request", .field = "of", .value = q.of, .problem = "is not known", .accepted = "train or serve"});
  }
  const DiffAnswer a = answer_diff(request, k);
  return {a.exit(), to_json(a)};
}

Reply tiers(const Question& q, const Knowledge& k) {
  const TiersAnswer a = answer_tiers(q.job, k);
  return {a.exit(), to_json(a)};
}

Reply models(const Question& q, const Knowledge& k) {
  if (has_model(q.job)) return {Exit::yes, to_json(answer_model(q.job, k), q.tensors)};
  return {Exit::yes, to_json(answer_models(q.words))};
}

Reply list_gpus(const Question& q, const Knowledge& k) {
  return {Exit::yes,
          to_json(gpus({.words = q.words, .compare = q.compare}, k.environment(), k.devices(), k.constants()))};
}

Reply check(const Question& q, const Knowledge& k) {
  if (q.list) return {Exit::yes, to_json(ClaimBook::builtin())};
  const CheckAnswer a = answer_check(q.claim, k);
  return {a.exit(), to_json(a)};
}

struct Row {
  std::string_view name;
  Reply (*answer)(const Question&, const Knowledge&);
};
constexpr Row kVerbs[] = {{"fit", fit},     {"train", train}, {"serve", serve},   {"sheet", sheet},   {"diff", diff},
                          {"tiers", tiers}, {"check", check}, {"models", models}, {"gpus", list_gpus}};

}  // namespace

Reply call(const Document& request, const Knowledge& knowledge) {
  const Fields fields(request, "request");
  const std::string verb = fields.required_string({"verb"});
  Question q;
  if (const Document* job = fields.find({"job"})) {
    read_job(q.job, *job, "request");
    check_job(q.job);
  }
  if (const Document* other = fields.find({"other"})) {
    read_job(q.other, *other, "request");
    check_job(q.other);
    q.has_other = true;
  }
  q.of = fields.string_or({"of"}, "");
  q.words = fields.strings({"words"}).value_or(std::vector<std::string>{});
  q.compare = fields.strings({"compare"}).value_or(std::vector<std::string>{});
  q.tensors = fields.boolean_or({"tensors"}, false);
  q.claim = fields.string_or({"claim"}, {});
  q.list = fields.boolean_or({"list"}, false);
  const auto unknown = fields.unused();
  if (!unknown.empty()) {
    fields.refuse(unknown.front(), "is not known", "verb, job, other, of, words, compare, tensors, claim, list");
  }
  std::vector<std::string_view> names;
  for (const Row& row : kVerbs) {
    if (row.name == verb) return row.answer(q, knowledge);
    names.push_back(row.name);
  }
  std::string accepted;
  for (std::string_view name : names) accepted += (accepted.empty() ? "" : ", ") + std::string(name);
  throw InputError({.file = "request",
                    .field = "verb",
                    .value = verb,
                    .problem = "is not known",
                    .accepted = accepted,
                    .near_miss = near_miss(verb, names)});
}

}  // namespace vram
