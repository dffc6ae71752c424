#include "host/host.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/units.h"

namespace vram {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "vram_host_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Files() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  HostEnvironment host_;
};

template <class Error, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST_F(Files, WhatIsWrittenIsRead) {
  const std::string bytes("a\0b\nc", 5);
  host_.write_file(path("a"), bytes);
  EXPECT_EQ(host_.read_file(path("a"), 5), bytes);
  EXPECT_TRUE(host_.is_file(path("a")));
  EXPECT_FALSE(host_.is_directory(path("a")));
  EXPECT_TRUE(host_.is_directory(folder_));
  host_.write_file(path("a"), "new");
  EXPECT_EQ(host_.read_file(path("a"), 100), "new");
  host_.write_file(path("empty"), "");
  EXPECT_EQ(host_.read_file(path("empty"), 0), "");
  EXPECT_EQ(host_.list(folder_), (std::vector<std::string>{"a", "empty"}));
  EXPECT_TRUE(host_.list(path("absent")).empty());
}

TEST_F(Files, LimitsAndKindsAreRefusedInOneLine) {
  host_.write_file(path("a"), "123456");
  EXPECT_NE(message_of<InputError>([&] { host_.read_file(path("a"), 5); }).find("too large"), std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { host_.read_file(folder_, 5); }).find("is a directory"), std::string::npos);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(message_of<InputError>([&] { host_.read_file(path("pipe"), 5); }).find("is a pipe"), std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { host_.read_file("/dev/zero", 5); }).find("is a device"), std::string::npos);
  EXPECT_NE(message_of<UnavailableError>([&] { host_.read_file(path("absent"), 5); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { host_.read_file("", 5); }).find("no name"), std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { host_.read_file(std::string("a\0b", 3), 5); }).find("zero byte"),
            std::string::npos);
  // A size that the system doesn't state is still limited.
  EXPECT_NE(message_of<InputError>([&] { host_.read_file("/proc/meminfo", 10); }).find("too large"), std::string::npos);
}

TEST_F(Files, PartsAreReadAtTheirPlace) {
  host_.write_file(path("a"), "0123456789");
  EXPECT_EQ(host_.file_size(path("a")), 10);
  EXPECT_EQ(host_.read_range(path("a"), 3, 4), "3456");
  EXPECT_EQ(host_.read_range(path("a"), 8, 100), "89");
  EXPECT_EQ(host_.read_range(path("a"), 10, 1), "");
  EXPECT_EQ(host_.read_range(path("a"), -1, 1), "");
  EXPECT_THROW(host_.file_size(path("absent")), UnavailableError);
  EXPECT_THROW(host_.read_range(folder_, 0, 1), InputError);
  // A sparse file of a terabyte: only the part asked for is touched.
  fs::resize_file(path("a"), uintmax_t{1} << 40);
  EXPECT_EQ(host_.file_size(path("a")), int64_t{1} << 40);
  EXPECT_EQ(host_.read_range(path("a"), (int64_t{1} << 40) - 2, 100), std::string(2, '\0'));
}

TEST_F(Files, FailedWritesLeaveNothingBehind) {
  EXPECT_THROW(host_.write_file(path("absent/a"), "x"), UnavailableError);
  ASSERT_TRUE(fs::create_directory(path("d")));
  EXPECT_THROW(host_.write_file(path("d"), "x"), UnavailableError);
  EXPECT_EQ(host_.list(folder_), (std::vector<std::string>{"d"}));
  // A full device: the error comes at the write.
  if (fs::exists("/dev/full")) {
    EXPECT_THROW(host_.write_file("/dev/full", "x"), UnavailableError);
  }
}

TEST_F(Files, LinksStayLinksAndPermissionsStay) {
  host_.write_file(path("a"), "1");
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  fs::create_symlink("a", path("link"));
  host_.write_file(path("link"), "2");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(host_.read_file(path("a"), 10), "2");
  EXPECT_EQ(static_cast<int>(fs::status(path("a")).permissions()), 0640);
  fs::create_symlink("later", path("dangling"));
  host_.write_file(path("dangling"), "3");
  EXPECT_EQ(host_.read_file(path("later"), 10), "3");
  fs::create_symlink("loop", path("loop"));
  EXPECT_THROW(host_.write_file(path("loop"), "4"), UnavailableError);
}

TEST_F(Files, ProtectedFilesAreNotReplaced) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anything";
  host_.write_file(path("a"), "1");
  ASSERT_EQ(::chmod(path("a").c_str(), 0444), 0);
  EXPECT_THROW(host_.write_file(path("a"), "2"), UnavailableError);
  EXPECT_EQ(host_.read_file(path("a"), 10), "1");
}

TEST(Variables, AreReadAsTheyAre) {
  ::setenv("VRAM_TEST_VARIABLE", "x y", 1);
  EXPECT_EQ(HostEnvironment().variable("VRAM_TEST_VARIABLE"), "x y");
  ::unsetenv("VRAM_TEST_VARIABLE");
  EXPECT_FALSE(HostEnvironment().variable("VRAM_TEST_VARIABLE"));
}

LocalGpus asked(const char* behaviour) {
  ::setenv("FAKE_NVML", behaviour, 1);
  const LocalGpus found = HostEnvironment(VRAM_FAKE_NVML).local_gpus();
  ::unsetenv("FAKE_NVML");
  return found;
}

TEST(Gpus, AreListedWithNameMemoryAndDriver) {
  const LocalGpus found = asked("gpus=2");
  ASSERT_EQ(found.gpus.size(), 2u);
  EXPECT_TRUE(found.absent_because.empty());
  EXPECT_EQ(found.gpus[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(found.gpus[1].total_bytes, 81559 * kMiB);
  EXPECT_EQ(found.gpus[1].used_bytes, kGiB);
  EXPECT_EQ(found.gpus[1].free_bytes, 81559 * kMiB - kGiB);
  EXPECT_EQ(found.gpus[1].driver, "550.54.15");
}

TEST(Gpus, TheVariableNamesTheLibrary) {
  ::setenv("FAKE_NVML", "gpus=1", 1);
  ::setenv("VRAM_NVML_LIBRARY", VRAM_FAKE_NVML, 1);
  EXPECT_EQ(HostEnvironment().local_gpus().gpus.size(), 1u);
  ::unsetenv("VRAM_NVML_LIBRARY");
  ::unsetenv("FAKE_NVML");
}

TEST(Gpus, ThereIsAlwaysAReasonForNone) {
  const std::pair<const char*, const char*> cases[] = {{"gpus=0", "no GPU"},
                                                       {"init=9", "not loaded"},
                                                       {"init=18", "different versions"},
                                                       {"init=4", "refuses"},
                                                       {"init=999", "code 999"},
                                                       {"gpus=1 count=15", "code 15"},
                                                       {"gpus=2 memory=7", "GPU 1: NVML failed with code 7"}};
  for (const auto& [behaviour, says] : cases) {
    const LocalGpus found = asked(behaviour);
    EXPECT_TRUE(found.gpus.empty()) << behaviour;
    EXPECT_NE(found.absent_because.find(says), std::string::npos) << behaviour << ": " << found.absent_because;
  }
  EXPECT_NE(HostEnvironment("libnowhere.so.9").local_gpus().absent_because.find("libnowhere.so.9 not found"),
            std::string::npos);
  // A library of another kind.
  EXPECT_NE(HostEnvironment("libc.so.6").local_gpus().absent_because.find("lacks functions"), std::string::npos);
}

TEST(Gpus, PartsThatShareTheHostsMemoryReportIt) {
  const LocalGpus found = asked("gpus=1 memory=3");
  ASSERT_EQ(found.gpus.size(), 1u);
  EXPECT_GT(found.gpus[0].total_bytes, 64 * kMiB);
  EXPECT_LE(found.gpus[0].free_bytes, found.gpus[0].total_bytes);
}

TEST(Gpus, MoreThanItGivesOutAndOverlongNamesDoNoHarm) {
  EXPECT_EQ(asked("gpus=9").gpus.size(), 8u);
  EXPECT_EQ(asked("gpus=1 overlong").gpus.at(0).name, std::string(127, 'x'));
}

}  // namespace
}  // namespace vram
