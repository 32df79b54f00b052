// Loads a library as Python loads extensions, or with a scope in which the library's own dependencies come
// first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  const int deep = count > 2 && strcmp(arguments[2], "deepbind") == 0;
  if (count > 3) dlopen(arguments[3], RTLD_NOW);
  void* const plugin =
      count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0)) : NULL;
  if (!plugin) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*const plugin_main)(void) = (int (*)(void))dlsym(plugin, "plugin_main");
  return plugin_main ? plugin_main() : 2;
}
