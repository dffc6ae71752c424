#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "host/host.h"

namespace vram {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  /// Closes now and says whether that worked: a delayed write error shows here.
  bool close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void unavailable(const std::string& path, std::string_view doing, int error) {
  throw UnavailableError(fmt::format("{}: cannot {}: {}", printable(path, 200), doing, std::strerror(error)));
}

// A NUL would silently cut the path.
void check_path(const std::string& path) {
  if (path.empty()) throw InputError({.field = "file", .problem = "has no name"});
  if (path.find('\0') != std::string::npos) {
    throw InputError({.field = "file", .value = path, .problem = "has a zero byte in its name"});
  }
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a directory";
  if (S_ISFIFO(mode)) return "is a pipe";
  if (S_ISSOCK(mode)) return "is a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "is a device";
  return "is no regular file";
}

void write_all(int fd, const std::string& bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) unavailable(path, "write", n == 0 ? ENOSPC : errno);
    done += static_cast<size_t>(n);
  }
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Follows symbolic links by hand, so that a link whose target doesn't exist yet is written through as well.
std::string link_target(const std::string& path) {
  std::string at = path;
  for (int hops = 0; hops < 40; ++hops) {
    struct stat info {};
    if (::lstat(at.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return at;
    std::string to(4096, '\0');
    const ssize_t n = ::readlink(at.c_str(), to.data(), to.size());
    if (n <= 0 || static_cast<size_t>(n) == to.size()) unavailable(path, "follow the link", errno);
    to.resize(static_cast<size_t>(n));
    at = to[0] == '/' ? to : parent_of(at) + "/" + to;
  }
  unavailable(path, "follow the link", ELOOP);
}

// A name that no other process and no other thread of this one uses.
std::string temporary_name(const std::string& target) {
  static std::atomic<unsigned> counter{0};
  const size_t slash = target.find_last_of('/');
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  return fmt::format("{}/.{}.{}.{}.tmp", parent_of(target), name.substr(0, 100), ::getpid(), counter++);
}

class Unlinker {
 public:
  explicit Unlinker(std::string path) : path_(std::move(path)) {}
  ~Unlinker() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Unlinker(const Unlinker&) = delete;
  Unlinker& operator=(const Unlinker&) = delete;
  void release() { path_.clear(); }

 private:
  std::string path_;
};

Descriptor open_regular(const std::string& path, struct stat& info) {
  check_path(path);
  // Without O_NONBLOCK opening a pipe would wait for a writer before its kind could be seen.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) unavailable(path, "open", errno);
  if (::fstat(file.get(), &info) != 0) unavailable(path, "read", errno);
  if (!S_ISREG(info.st_mode)) {
    throw InputError({.file = path, .problem = std::string(kind_of(info.st_mode)), .accepted = "a regular file"});
  }
  return file;
}

}  // namespace

std::string HostEnvironment::read_file(const std::string& path, size_t limit) const {
  struct stat info {};
  const Descriptor file = open_regular(path, info);
  const auto too_large = [&] {
    throw InputError(
        {.file = path, .problem = "is too large", .accepted = "at most " + format_gib(static_cast<Bytes>(limit))});
  };
  if (info.st_size > 0 && static_cast<uintmax_t>(info.st_size) > limit) too_large();
  // The size is only a hint: files of /proc state none, and others may grow meanwhile.
  std::string bytes;
  bytes.reserve(static_cast<size_t>(info.st_size) + 1);
  char chunk[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) unavailable(path, "read", errno);
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<size_t>(n) > limit) too_large();
    bytes.append(chunk, static_cast<size_t>(n));
  }
}

int64_t HostEnvironment::file_size(const std::string& path) const {
  struct stat info {};
  open_regular(path, info);
  return info.st_size;
}

std::string HostEnvironment::read_range(const std::string& path, int64_t offset, size_t length) const {
  struct stat info {};
  const Descriptor file = open_regular(path, info);
  if (offset < 0 || offset >= info.st_size) return {};
  std::string bytes(std::min(length, static_cast<size_t>(info.st_size - offset)), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pread(file.get(), bytes.data() + done, bytes.size() - done, offset + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) unavailable(path, "read", errno);
    if (n == 0) break;  // it was cut meanwhile
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

bool HostEnvironment::is_file(const std::string& path) const {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool HostEnvironment::is_directory(const std::string& path) const {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::vector<std::string> HostEnvironment::list(const std::string& path) const {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

void HostEnvironment::write_file(const std::string& path, const std::string& bytes) const {
  check_path(path);
  const std::string target = link_target(path);
  struct stat info {};
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) throw UnavailableError(printable(path, 200) + ": cannot write: is a directory");
  if (exists && !S_ISREG(info.st_mode)) {
    // /dev/stdout and pipes can't be replaced by a renamed file.
    Descriptor file(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.ok()) unavailable(path, "open", errno);
    write_all(file.get(), bytes, path);
    return;
  }
  // Renaming would replace a file that its owner has protected.
  if (exists && ::access(target.c_str(), W_OK) != 0) unavailable(path, "write", errno);
  const std::string temporary = temporary_name(target);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.ok()) unavailable(path, "write", errno);
  Unlinker unlinker(temporary);
  if (exists && ::fchmod(file.get(), info.st_mode & 07777) != 0) unavailable(path, "keep the permissions", errno);
  write_all(file.get(), bytes, path);
  if (::fsync(file.get()) != 0) unavailable(path, "write", errno);
  if (!file.close()) unavailable(path, "write", errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) unavailable(path, "write", errno);
  unlinker.release();
  // Best effort: some file systems can't sync a directory, and the bytes themselves are safe.
  Descriptor directory(::open(parent_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.ok()) ::fsync(directory.get());
}

void HostEnvironment::make_directories(const std::string& path) const {
  check_path(path);
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      // A parent that may not be written, or a file system mounted read-only, matters only where the directory lacks.
      const int error = errno;
      if (!is_directory(part)) unavailable(part, "make the directory", error);
    }
    if (end == std::string::npos) break;
  }
  if (!is_directory(path)) unavailable(path, "make the directory", ENOTDIR);
}

std::optional<std::string> HostEnvironment::variable(const std::string& name) const {
  const char* value = std::getenv(name.c_str());
  if (!value) return std::nullopt;
  return std::string(value);
}

}  // namespace vram
