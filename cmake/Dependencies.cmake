# System packages first; a pinned FetchContent for people whose system lacks them.
include(FetchContent)

macro(vram_dependency name)  # name GIT_REPOSITORY GIT_TAG
  if(NOT ${name}_FOUND)
    message(STATUS "${name}: no system package, fetching a pinned version")
    FetchContent_Declare(${name} ${ARGN} GIT_SHALLOW ON)
    FetchContent_MakeAvailable(${name})
  endif()
endmacro()

find_package(fmt 9 QUIET)
vram_dependency(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt GIT_TAG 9.1.0)

find_package(nlohmann_json 3.11 QUIET)
vram_dependency(nlohmann_json GIT_REPOSITORY https://github.com/nlohmann/json GIT_TAG v3.11.2)

find_package(yaml-cpp QUIET)
vram_dependency(yaml-cpp GIT_REPOSITORY https://github.com/jbeder/yaml-cpp GIT_TAG yaml-cpp-0.7.0)
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

find_package(tomlplusplus QUIET)
vram_dependency(tomlplusplus GIT_REPOSITORY https://github.com/marzer/tomlplusplus GIT_TAG v3.3.0)

find_package(CLI11 QUIET)
vram_dependency(CLI11 GIT_REPOSITORY https://github.com/CLIUtils/CLI11 GIT_TAG v2.1.2)

find_library(UTF8PROC_LIBRARY utf8proc)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
if(UTF8PROC_LIBRARY AND UTF8PROC_INCLUDE_DIR)
  add_library(vram_utf8proc INTERFACE)
  target_link_libraries(vram_utf8proc INTERFACE ${UTF8PROC_LIBRARY})
  target_include_directories(vram_utf8proc INTERFACE ${UTF8PROC_INCLUDE_DIR})
else()
  FetchContent_Declare(utf8proc GIT_REPOSITORY https://github.com/JuliaStrings/utf8proc GIT_TAG v2.8.0 GIT_SHALLOW ON)
  FetchContent_MakeAvailable(utf8proc)
  add_library(vram_utf8proc ALIAS utf8proc)
endif()

if(VRAM_TESTS)
  find_package(GTest QUIET)
  vram_dependency(GTest GIT_REPOSITORY https://github.com/google/googletest GIT_TAG release-1.12.1)
  find_library(RAPIDCHECK_LIBRARY rapidcheck)
  find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h)
  if(RAPIDCHECK_LIBRARY AND RAPIDCHECK_INCLUDE_DIR)
    add_library(vram_rapidcheck INTERFACE)
    target_link_libraries(vram_rapidcheck INTERFACE ${RAPIDCHECK_LIBRARY})
    target_include_directories(vram_rapidcheck SYSTEM INTERFACE ${RAPIDCHECK_INCLUDE_DIR})
  else()
    FetchContent_Declare(rapidcheck GIT_REPOSITORY https://github.com/emil-e/rapidcheck
                         GIT_TAG a5724ea5b0b00147109b0605c377f1e54c353ba2)
    FetchContent_MakeAvailable(rapidcheck)
    add_library(vram_rapidcheck ALIAS rapidcheck)
  endif()
endif()

if(VRAM_BENCH)
  find_package(benchmark QUIET)
  vram_dependency(benchmark GIT_REPOSITORY https://github.com/google/benchmark GIT_TAG v1.7.1)
endif()
