// Asks the driver for its functions by name, version and flags, as libcudart does. Prints for each question
// the result, the status, and which function of whom was given; then uses the functions. Its argument is a version: that
// the free in stream order is asked for, in place of the first that has it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/callers/driver_calls.h"

#undef cuGetProcAddress
typedef CUresult (*ask_v1)(const char*, void**, int, cuuint64_t);
typedef CUresult (*ask_v2)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

static void say(const char* how, int result, int status, void* function) {
  Dl_info info;
  printf(" %s %d %d ", how, result, status);
  if (!function || !dladdr(function, &info)) {
    printf("nobody's");
  } else {
    printf("%s %s", strstr(info.dli_fname, "/libreprise") ? "ours" : "driver's", info.dli_sname);
  }
}

static const struct {
  const char* name;
  int version;
  cuuint64_t flags;
} questions[] = {
    {"", 0, 0},
    {"cuInit", 2000, 0},
    {"cuGetProcAddress", 11030, 0},
    {"cuGetProcAddress", 12000, 0},
    {"cuMemAlloc", 2000, 0},
    {"cuMemAlloc", 3020, 0},
    {"cuMemAlloc", 12000, 1},
    {"cuMemAlloc", 12000, 2},
    {"cuMemAlloc_v2", 12000, 0},
    {"cuMemAllocHost", 12000, 0},
    {"cuMemAllocAsync", 11010, 0},
    {"cuMemAllocAsync", 11020, 0},
    {"cuMemAllocAsync", 11020, 1},
    {"cuMemAllocAsync", 11020, 2},
    {"cuMemAllocAsync", 13000, 2},
    {"cuMemAllocAsync_ptsz", 13000, 0},
    {"cuMemAllocAsync", 13080, 0},
    {"cuMemCreate", 12000, 0},
    {"cuStreamBeginCapture", 10010, 2},
    {"cuStreamDestroy", 2000, 0},
    {"cuStreamDestroy", 4000, 0},
    {"cuNoSuchCall", 12000, 0},
    {"cudnnCreate", 12000, 0},
};

int main(int argc, char** argv) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const ask_v1 first = (ask_v1)dlsym(library, "cuGetProcAddress");
  const ask_v2 ask = (ask_v2)dlsym(library, "cuGetProcAddress_v2");
  for (size_t i = 0; i < sizeof questions / sizeof *questions; ++i) {
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
    void *by_v1 = NULL, *by_v2 = NULL;
    const int result_1 = first(questions[i].name, &by_v1, questions[i].version, questions[i].flags);
    const int result_2 = ask(questions[i].name, &by_v2, questions[i].version, questions[i].flags, &status);
    printf("%s %d %d:", questions[i].name, questions[i].version, (int)questions[i].flags);
    say("v1", result_1, 0, by_v1);
    say("v2", result_2, (int)status, by_v2);
    printf("\n");
  }
  void* unchanged = (void*)&main;
  printf("bad arguments: %d %d %d\n", ask(NULL, &unchanged, 12000, 0, NULL),
         ask("cuMemAlloc", NULL, 12000, 0, NULL), ask("cuMemAlloc", &unchanged, 12000, 64, NULL));
  struct driver_calls driver = {0};
#define ASKED(field, name, version) ask(#name, (void**)&driver.field, version, 0, NULL);
  DRIVER_CALLS(ASKED)
  if (argc > 1) ask("cuMemFreeAsync", (void**)&driver.freeAsync, atoi(argv[1]), 0, NULL);
  return use(&driver);
}
