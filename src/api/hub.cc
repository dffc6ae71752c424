#include "api/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "formats/formats.h"
#include "model/model.h"

namespace vram {
namespace {

constexpr size_t kConfigLimit = size_t{16} << 20;
constexpr size_t kListingLimit = size_t{32} << 20;
// Most safetensors headers fit into this, so that one request suffices; what is larger is read in doubling steps.
constexpr size_t kFirstRead = size_t{128} << 10;
constexpr size_t kLongestStep = size_t{64} << 20;
constexpr size_t kHeadLimit = size_t{512} << 20;
constexpr size_t kMostNames = 200'000;

bool ends_in(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

bool is_true(const Environment& environment, const char* name) {
  std::string value = environment.variable(name).value_or(std::string());
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// Names of the files of a listing; nothing where this is no listing.
std::optional<std::vector<std::string>> names_in(const std::string& json, std::string& commit) {
  Document listing;
  try {
    listing = parse_json(json, "the list of files", {.bytes = kListingLimit, .depth = 64, .values = 4'000'000});
  } catch (const InputError&) {
    return std::nullopt;
  }
  const Document* sha = listing.find("sha");
  const Document* siblings = listing.find("siblings");
  if (!sha || !sha->is_string() || !is_commit(sha->string()) || !siblings || !siblings->is_array()) return std::nullopt;
  commit = sha->string();
  std::vector<std::string> names;
  for (const Document& sibling : siblings->array()) {
    const Document* name = sibling.find("rfilename");
    if (name && name->is_string() && is_inside_repository(name->string()) && names.size() < kMostNames) {
      names.push_back(name->string());
    }
  }
  return names;
}

std::optional<int64_t> number_in(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  int64_t n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + (c - '0');
  }
  return n;
}

// Whether a body is what its name promises. Nothing else is kept: a proxy's page or half a config would answer for the
// hub ever after.
bool is_config(const std::string& body) {
  try {
    const Limits limits{.bytes = kConfigLimit, .depth = 64, .values = 1'000'000, .infinity_is_null = true};
    return parse_json(body, "the hub's answer", limits).is_object();
  } catch (const InputError&) {
    return false;
  }
}

// The same at a glance, for indices of many megabytes; whoever reads them says what is wrong with them.
bool looks_like_object(const std::string& body) {
  const size_t first = body.find_first_not_of(" \t\r\n"), last = body.find_last_not_of(" \t\r\n");
  return first != std::string::npos && body[first] == '{' && body[last] == '}';
}

bool is_weights(std::string_view name) {
  return ends_in(name, ".safetensors") || ends_in(name, ".safetensors.index.json") || ends_in(name, ".gguf");
}

// "model-00001-of-00030.safetensors": what stands before the number, and how many there are; 0 for other names.
std::pair<std::string, int64_t> set_of(const std::string& name) {
  const size_t dot = name.rfind('.'), of = name.rfind("-of-");
  if (dot == std::string::npos || of == std::string::npos || of > dot) return {name, 0};
  const size_t dash = of == 0 ? std::string::npos : name.rfind('-', of - 1);
  const auto count = number_in(std::string_view(name).substr(of + 4, dot - of - 4));
  if (dash == std::string::npos || !count || !number_in(std::string_view(name).substr(dash + 1, of - dash - 1))) {
    return {name, 0};
  }
  return {name.substr(0, dash), *count};
}

std::string joined(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += name + "\n";
  return out;
}

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (is_inside_repository(std::string_view(text).substr(begin, end - begin)))
      out.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// "bytes 0-131071/4976698672"
struct ContentRange {
  int64_t first = 0, last = 0, size = 0;
};
std::optional<ContentRange> content_range(std::string_view text) {
  if (text.substr(0, 6) != "bytes ") return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) return std::nullopt;
  const auto first = number_in(text.substr(0, dash));
  const auto last = number_in(text.substr(dash + 1, slash - dash - 1));
  const auto size = number_in(text.substr(slash + 1));
  if (!first || !last || !size || *first > *last || *last >= *size) return std::nullopt;
  return ContentRange{*first, *last, *size};
}

// Of a safetensors file only the header is worth keeping: 8 bytes of length, then that many.
std::string_view worth_keeping(std::string_view name, std::string_view bytes) {
  if (!ends_in(name, ".safetensors") || bytes.size() < 8) return bytes;
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (length > bytes.size() - 8) return bytes;
  return bytes.substr(0, 8 + static_cast<size_t>(length));
}

std::string catalogue_neighbour(const std::string& name) {
  std::vector<std::string_view> known;
  for (const CatalogueEntry& e : Catalogue::builtin().entries()) known.push_back(e.id);
  return near_miss(name, known);
}

}  // namespace

HubFiles::HubFiles(HubId id, const Job& job, const Environment& system) : system_(system), id_(std::move(id)) {
  const bool forbidden = is_true(system, "HF_HUB_OFFLINE") || is_true(system, "TRANSFORMERS_OFFLINE");
  offline_ = job.offline || forbidden;
  refresh_ = job.refresh;
  if (refresh_ && offline_) {
    throw InputError({.field = "--refresh",
                      .problem = std::string("contradicts ") + (job.offline ? "--offline" : "HF_HUB_OFFLINE")});
  }
  if (!refresh_) {
    if (auto snapshot = find_snapshot(system, id_.repository, id_.revision);
        snapshot && (id_.file.empty() || system.is_file(snapshot->directory + "/" + id_.file))) {
      local_ = true;
      directory_ = std::move(snapshot->directory);
      place_ = std::move(snapshot->commit);
      for (const std::string& name : system.list(directory_)) names_.insert(name);
      const bool whole = !id_.file.empty() || weights_are_whole();
      hidden_ = !whole && system.is_file(directory_ + "/config.json");
      client_.emplace(system);
      // A download that was interrupted: the hub has the rest.
      if (whole || (offline_ && hidden_)) return;
      local_ = hidden_ = false;
      place_.clear();
      names_.clear();
    }
  }
  directory_ = std::string(kHubPrefix) + id_.repository;
  if (!client_) client_.emplace(system);
  cache_ = std::make_unique<HubCache>(system, client_->server(), id_.repository);
  if (!refresh_ && from_own_cache()) {
    hidden_ = offline_ && id_.file.empty() && !weights_are_whole();
    if (!hidden_ || names_.count("config.json") != 0) return;
  }
  if (offline_) {
    const std::string cache = hugging_face_cache(system);
    fail(
        fmt::format("is not on this machine at revision '{}' (looked in {}{}), and {} forbids the network: run once "
                    "without it, or give a config.json",
                    printable(id_.revision), printable(cache, 120),
                    cache_->directory().empty() ? "" : " and " + printable(cache_->directory(), 160),
                    job.offline ? "--offline" : "HF_HUB_OFFLINE"));
  }
  from_network();
}

const HubClient& HubFiles::client() const { return *client_; }

void HubFiles::fail(const std::string& why) const {
  std::string line = printable(id_.repository, 200) + ": " + why;
  const std::string near = catalogue_neighbour(id_.repository);
  if (!near.empty() && near != id_.repository) line += ". Or did you mean " + near + " of the catalogue?";
  throw UnavailableError(line);
}

std::string HubFiles::origin() const {
  return is_commit(place_) ? "hub " + place_.substr(0, 8) : "hub " + printable(id_.revision);
}

std::string HubFiles::source() const {
  return client().page(id_.repository) + "/tree/" + (is_commit(place_) ? place_ : id_.revision);
}

std::vector<Note> HubFiles::notes() const {
  std::vector<Note> out;
  if (cache_ && !cache_->problem().empty())
    out.push_back({"hub.not_kept", {{"problem", printable(cache_->problem(), 200)}}});
  if (hidden_) out.push_back({"hub.part_of_weights", {}});
  if (!local_ && !listed_) out.push_back({"hub.no_list", {{"host", client().server()}}});
  return out;
}

std::string HubFiles::path_on_hub(const std::string& name) const {
  const std::string revision = is_commit(place_) ? place_ : id_.revision;
  return "/" + id_.repository + "/resolve/" + percent_encoded(revision, false) + "/" + percent_encoded(name, true);
}

// Whether the weights that a reader would choose can be read without the network: those of the index, else
// model.safetensors, else the only set (files.h).
bool HubFiles::weights_are_whole() const {
  const auto here = [&](const std::string& name) {
    if (local_) return system_.is_file(directory_ + "/" + name);
    return ends_in(name, ".json") ? cache_->load(place_, name, kListingLimit).has_value() : load_head(name);
  };
  std::map<std::string, std::vector<std::string>> tensors, ggufs;  // "model/30" -> the parts that are listed
  std::vector<std::string> indices;
  for (const std::string& name : names_) {
    if (!is_weights(name) || name.find('/') != std::string::npos) continue;
    const auto [prefix, count] = set_of(name);
    const std::string set = prefix + "/" + std::to_string(count);
    if (ends_in(name, ".json")) {
      indices.push_back(name);
    } else if (ends_in(name, ".gguf")) {
      ggufs[set].push_back(name);
    } else {
      tensors[set].push_back(name);
    }
  }
  const auto whole = [&](const std::string& set, const std::vector<std::string>& parts) {
    const auto count = std::max<int64_t>(1, std::atoll(set.c_str() + set.rfind('/') + 1));
    return count == static_cast<int64_t>(parts.size()) && std::all_of(parts.begin(), parts.end(), here);
  };
  if (!indices.empty()) {
    if (!std::all_of(indices.begin(), indices.end(), here)) return false;
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& set) { return whole(set.first, set.second); });
  }
  if (names_.count("model.safetensors") != 0) return here("model.safetensors");
  // Several sets: the reader refuses or passes over them, whether they are here or not.
  const auto& sets = tensors.empty() ? ggufs : tensors;
  return sets.size() != 1 || whole(sets.begin()->first, sets.begin()->second);
}

// What readers see.
bool HubFiles::shown(const std::string& name) const { return !hidden_ || !is_weights(name); }

bool HubFiles::from_own_cache() {
  std::string commit = id_.revision;
  if (!is_commit(commit)) {
    const auto kept = cache_->load("refs", id_.revision, 1000);
    if (!kept || !is_commit(*kept)) return false;
    commit = *kept;
  }
  const auto names = cache_->load(commit, "files", kListingLimit);
  if (!names) return false;
  names_ = lines_of(*names);
  // Half of a model is no answer where the rest can't be fetched; where it can, it will be when it is asked for.
  if (id_.file.empty() && names_.count("config.json") != 0) {
    auto config = cache_->load(commit, "config.json", kConfigLimit);
    if (!config) return false;
    files_.emplace("config.json", std::move(*config));
  }
  if (!id_.file.empty() && names_.count(id_.file) == 0) return false;
  place_ = commit;
  listed_ = true;
  return true;
}

void HubFiles::from_network() {
  const std::string wanted = "config.json";
  std::vector<HubRequest> requests = {
      {.path = "/api/models/" + id_.repository + "/revision/" + percent_encoded(id_.revision, false),
       .limit = kListingLimit}};
  if (id_.file.empty()) requests.push_back({.path = path_on_hub(wanted), .limit = kConfigLimit});
  std::vector<HubReply> replies = client().get(requests);
  const HubReply& listing = replies.front();
  std::string commit;
  if (listing.ok()) {
    if (auto names = names_in(listing.http.body, commit)) {
      names_.insert(names->begin(), names->end());
      listed_ = true;
      place_ = commit;
    }
  }
  if (!id_.file.empty()) {
    if (!listed_) fail(client().explain(listing, id_.repository, id_.revision, "a list of files"));
    if (names_.count(id_.file) == 0) {
      fail(fmt::format("holds no {} at revision '{}': see {}", printable(id_.file, 200), printable(id_.revision),
                       source()));
    }
  } else if (!listed_ || names_.count(wanted) != 0) {
    HubReply config = std::move(replies[1]);
    if (listed_ && config.ok() && !config.commit.empty() && config.commit != place_) {
      // The branch moved between the two answers; the list's commit counts.
      config = client().get({{.path = path_on_hub(wanted), .limit = kConfigLimit}}).front();
    }
    if (!config.ok() || !is_config(config.http.body)) {
      // What the endpoint says about the repository tells more than that a file of it is missing.
      const bool about_it = !listing.ok() && listing.http.status != 0 && !listing.http.header("x-error-code").empty() &&
                            config.http.header("x-error-code") != "GatedRepo";
      fail(client().explain(about_it ? listing : config, id_.repository, id_.revision, wanted));
    }
    if (!listed_) {
      names_.insert(wanted);
      if (!config.commit.empty()) {
        place_ = config.commit;
      } else if (!config.etag.empty()) {
        place_ = "etag-" + percent_encoded(config.etag, false).substr(0, 100);
      }
    }
    files_.emplace(wanted, std::move(config.http.body));
  }
  // The list goes last: it says that the rest is there.
  if (!listed_ || !is_commit(place_)) return;
  if (const auto config = files_.find(wanted); config != files_.end()) cache_->store(place_, wanted, config->second);
  cache_->store(place_, "files", joined(names_));
  if (!is_commit(id_.revision)) cache_->store("refs", id_.revision, place_);
}

std::optional<std::string> HubFiles::name_of(const std::string& path) const {
  if (path.compare(0, directory_.size(), directory_) != 0) return std::nullopt;
  if (path.size() == directory_.size()) return std::string();
  if (path[directory_.size()] != '/') return std::nullopt;
  std::string name = path.substr(directory_.size() + 1);
  while (!name.empty() && name.back() == '/') name.pop_back();
  return name;
}

const std::string& HubFiles::whole(const std::string& name, size_t limit) const {
  if (const auto found = files_.find(name); found != files_.end()) return found->second;
  if (names_.count(name) == 0) fail("holds no " + printable(name, 200));
  if (is_commit(place_) && !refresh_) {
    if (auto kept = cache_->load(place_, name, limit)) return files_.emplace(name, std::move(*kept)).first->second;
  }
  if (offline_)
    fail(printable(name, 200) + " is not on this machine, and the network is forbidden: run once without that");
  HubReply reply = client().get({{.path = path_on_hub(name), .limit = limit}}).front();
  if (!reply.ok() || (ends_in(name, ".json") && !looks_like_object(reply.http.body))) {
    fail(client().explain(reply, id_.repository, id_.revision, printable(name, 200)));
  }
  if (is_commit(place_)) cache_->store(place_, name, reply.http.body);
  return files_.emplace(name, std::move(reply.http.body)).first->second;
}

bool HubFiles::load_head(const std::string& name) const {
  if (!is_commit(place_) || refresh_) return false;
  const auto kept = cache_->load(place_, "head-" + name, kHeadLimit);
  if (!kept) return false;
  const size_t line = kept->find('\n');
  const auto size = number_in(std::string_view(*kept).substr(0, line));
  if (line == std::string::npos || !size || *size < static_cast<int64_t>(kept->size() - line - 1)) return false;
  heads_[name] = {*size, kept->substr(line + 1)};
  return true;
}

// Adds what a range request brought to the beginning that is known.
void HubFiles::take(const std::string& name, const HubReply& reply, size_t asked, Head& head) const {
  const std::string shown = printable(name, 200);
  const int64_t offset = static_cast<int64_t>(head.bytes.size());
  if (reply.refused.empty() && reply.http.problem == HttpReply::Problem::none && reply.http.status == 416 &&
      offset == 0 && reply.http.header("content-range") == "bytes */0") {
    return;  // an empty file
  }
  if (!reply.ok() || is_web_page(reply)) fail(client().explain(reply, id_.repository, id_.revision, shown));
  const std::string& body = reply.http.body;
  if (reply.http.status == 206) {
    const auto range = content_range(reply.http.header("content-range"));
    if (!range || range->first != offset || range->last - range->first + 1 != static_cast<int64_t>(body.size())) {
      fail(fmt::format("{} answers for {} with other bytes than asked for ('{}'): try again, or download the file",
                       reply.host, shown, printable(reply.http.header("content-range"))));
    }
    if (head.size != 0 && head.size != range->size) {
      fail(fmt::format("{} tells two sizes of {}: {} and {} bytes", reply.host, shown, with_commas(head.size),
                       with_commas(range->size)));
    }
    head.size = range->size;
  } else {
    // A server that knows no ranges sends the whole file from its beginning; we stopped where we had enough.
    const auto length = number_in(reply.http.header("content-length"));
    if (offset != 0) fail(fmt::format("{} sends no parts of files: download {}", reply.host, shown));
    if (!length && body.size() >= asked) {
      fail(fmt::format("{} does not tell the size of {}: download it", reply.host, shown));
    }
    head.size = length ? *length : static_cast<int64_t>(body.size());
  }
  const bool complete = offset + static_cast<int64_t>(body.size()) >= head.size;
  if (body.empty() || (body.size() < asked && !complete)) {
    if (head.size == 0) return;
    fail(fmt::format("{} sends {} bytes of {} where {} were asked for: try again", reply.host,
                     with_commas(static_cast<int64_t>(body.size())), shown, with_commas(static_cast<int64_t>(asked))));
  }
  head.bytes += body;
}

// "model-00001-of-00030.safetensors" -> all thirty: whoever reads one reads the others.
std::vector<std::string> HubFiles::shards_like(const std::string& name) const {
  std::vector<std::string> out = {name};
  const size_t of = name.rfind("-of-");
  if (of == std::string::npos || of < 6 || !ends_in(name, ".safetensors")) return out;
  const size_t dash = name.rfind('-', of - 1);
  if (dash == std::string::npos || !number_in(std::string_view(name).substr(dash + 1, of - dash - 1))) return out;
  const std::string before = name.substr(0, dash + 1), after = name.substr(of);
  for (auto it = names_.lower_bound(before); it != names_.end() && it->compare(0, before.size(), before) == 0; ++it) {
    if (*it != name && it->size() == name.size() && ends_in(*it, after)) out.push_back(*it);
  }
  return out;
}

const HubFiles::Head& HubFiles::head(const std::string& name, int64_t wanted) const {
  if (names_.count(name) == 0) fail("holds no " + printable(name, 200));
  const auto enough = [&](const std::string& file) {
    const auto found = heads_.find(file);
    return found != heads_.end() &&
           static_cast<int64_t>(found->second.bytes.size()) >= std::min(wanted, found->second.size);
  };
  if (enough(name) || (heads_.count(name) == 0 && load_head(name) && enough(name))) return heads_.at(name);
  if (static_cast<uint64_t>(wanted) > kHeadLimit) {
    throw InputError({.file = directory_ + "/" + name,
                      .problem = "has a header that is too large to fetch",
                      .accepted = "at most " + format_gib(static_cast<Bytes>(kHeadLimit))});
  }
  if (offline_) {
    fail(fmt::format("the header of {} is not on this machine, and the network is forbidden: run once without that",
                     printable(name, 200)));
  }
  std::vector<std::string> files = {name};
  if (heads_.count(name) == 0) {
    files.clear();
    for (const std::string& file : shards_like(name)) {
      if (file == name || (heads_.count(file) == 0 && !load_head(file))) files.push_back(file);
    }
  }
  std::vector<HubRequest> requests;
  for (const std::string& file : files) {
    const auto found = heads_.find(file);
    const size_t have = found == heads_.end() ? 0 : found->second.bytes.size();
    size_t step = std::clamp(have, kFirstRead, kLongestStep);
    if (file == name) step = std::max(step, static_cast<size_t>(wanted) - have);
    // Beyond its end there is nothing to ask for.
    if (found != heads_.end()) step = std::min(step, static_cast<size_t>(found->second.size) - have);
    requests.push_back({.path = path_on_hub(file), .offset = static_cast<int64_t>(have), .limit = step});
  }
  const std::vector<HubReply> replies = client().get(requests);
  for (size_t i = 0; i < files.size(); ++i) {
    Head& h = heads_[files[i]];
    take(files[i], replies[i], requests[i].limit, h);
    if (is_commit(place_)) {
      cache_->store(place_, "head-" + files[i],
                    std::to_string(h.size) + "\n" + std::string(worth_keeping(files[i], h.bytes)));
    }
  }
  return heads_.at(name);
}

std::string HubFiles::read_file(const std::string& path, size_t limit) const {
  const auto name = name_of(path);
  if (!name || local_) return system_.read_file(path, limit);
  const std::string& bytes = whole(*name, limit);
  if (bytes.size() > limit) {
    throw InputError(
        {.file = path, .problem = "is too large", .accepted = "at most " + format_gib(static_cast<Bytes>(limit))});
  }
  return bytes;
}

bool HubFiles::is_file(const std::string& path) const {
  const auto name = name_of(path);
  if (!name || local_) return (!name || shown(*name)) && system_.is_file(path);
  return names_.count(*name) != 0 && shown(*name);
}

bool HubFiles::is_directory(const std::string& path) const {
  const auto name = name_of(path);
  if (!name || local_) return system_.is_directory(path);
  if (name->empty()) return true;
  const auto below = names_.lower_bound(*name + "/");
  return below != names_.end() && below->compare(0, name->size() + 1, *name + "/") == 0;
}

int64_t HubFiles::file_size(const std::string& path) const {
  const auto name = name_of(path);
  if (!name || local_) return system_.file_size(path);
  if (const auto found = files_.find(*name); found != files_.end()) return static_cast<int64_t>(found->second.size());
  return head(*name, 1).size;
}

std::string HubFiles::read_range(const std::string& path, int64_t offset, size_t length) const {
  const auto name = name_of(path);
  if (!name || local_) return system_.read_range(path, offset, length);
  if (offset < 0 || length == 0) return {};
  const size_t begin = static_cast<size_t>(offset);
  if (const auto found = files_.find(*name); found != files_.end()) {
    return begin >= found->second.size() ? std::string() : found->second.substr(begin, length);
  }
  int64_t end = 0;
  if (length > static_cast<size_t>(std::numeric_limits<int64_t>::max()) ||
      __builtin_add_overflow(offset, static_cast<int64_t>(length), &end)) {
    end = std::numeric_limits<int64_t>::max();
  }
  // First the size, so that nothing beyond the end is asked for.
  const int64_t size = head(*name, 1).size;
  const Head& h = head(*name, std::min(end, size));
  return begin >= h.bytes.size() ? std::string() : h.bytes.substr(begin, length);
}

std::vector<std::string> HubFiles::list(const std::string& path) const {
  const auto name = name_of(path);
  if (!name || local_) {
    std::vector<std::string> names = system_.list(path);
    if (name)
      names.erase(std::remove_if(names.begin(), names.end(), [&](const auto& n) { return !shown(n); }), names.end());
    return names;
  }
  const std::string before = name->empty() ? std::string() : *name + "/";
  std::set<std::string> out;
  for (auto it = names_.lower_bound(before); it != names_.end() && it->compare(0, before.size(), before) == 0; ++it) {
    const std::string rest = it->substr(before.size());
    if (!shown(rest)) continue;
    out.insert(rest.substr(0, rest.find('/')));
  }
  return {out.begin(), out.end()};
}

void HubFiles::write_file(const std::string& path, const std::string& bytes) const {
  if (name_of(path)) throw UnavailableError(printable(path, 200) + ": cannot write: a model of the hub");
  system_.write_file(path, bytes);
}

}  // namespace vram
