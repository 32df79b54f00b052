/* Looks names up in every way that the loader knows, and prints what it found as "library+offset", so that
 * the outputs with and without the preload library can be compared. Arguments: the name of one group of
 * lookups, and a library that has some names beginning with cu (cu_names.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* const hooked[] = {"cuGetProcAddress", "cuGetProcAddress_v2", "cuMemAlloc_v2",
                                     "cuMemFreeAsync", "cuMemFree_v2"};
static const char* const others[] = {
    "malloc",     "dlopen",      "pthread_create", "cudnnCreate", "cublasCreate_v2",
    "cuMemAlloc", "cuMemAlloc_", "cuMemcpy",       "cu",          "cuMemFree_v22",
    "",           "no_such_name"};
#define COUNT(names) (sizeof names / sizeof *names)

static void say_error(void) {
  const char* const error = dlerror();
  printf("  error: %s\n", error ? error : "none");
}

static void say(const char* how, const char* name, void* found) {
  Dl_info info;
  if (!found) {
    printf("%s %s: none\n", how, name);
  } else if (dladdr(found, &info) && info.dli_fname) {
    const char* const slash = strrchr(info.dli_fname, '/');
    printf("%s %s: %s+%#lx\n", how, name, slash ? slash + 1 : info.dli_fname,
           (unsigned long)((uintptr_t)found - (uintptr_t)info.dli_fbase));
  } else {
    printf("%s %s: nowhere\n", how, name);
  }
}

static void look(const char* how, void* handle, const char* const* names, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    say(how, names[i], dlsym(handle, names[i]));
    say_error();
  }
}

static void* open_or_exit(const char* path, int flags) {
  void* const library = dlopen(path, flags);
  if (library) return library;
  fprintf(stderr, "%s\n", dlerror());
  exit(2);
}

/* Names that are not hooked, and hooked names where there are none. */
static void unhooked(const char* path) {
  look("default", RTLD_DEFAULT, others, COUNT(others));
  look("next", RTLD_NEXT, others, COUNT(others));
  void* const library = open_or_exit(path, RTLD_NOW | RTLD_LOCAL);
  look("local", library, others, COUNT(others));
  void* const libc = open_or_exit("libc.so.6", RTLD_NOW);
  look("libc", libc, hooked, COUNT(hooked));
  look("libc", libc, others, COUNT(others));
}

/* A process without a driver, where every lookup by the program's own scope would find the preload library's.
 */
static void no_driver(const char* path) {
  void* const self = dlopen(NULL, RTLD_NOW);
  void* (*const find)(const char*) = dlsym(open_or_exit(path, RTLD_NOW | RTLD_LOCAL), "find_default");
  for (size_t i = 0; i < COUNT(hooked); ++i) {
    say("default", hooked[i], dlsym(RTLD_DEFAULT, hooked[i]));
    printf("  said: %d\n", dlerror() != NULL); /* in which words depends on where the search began */
    say("self", hooked[i], dlsym(self, hooked[i]));
    printf("  said: %d\n", dlerror() != NULL);
    printf("default of a plugin %s: %d\n", hooked[i], find(hooked[i]) != NULL);
    printf("  said: %d\n", dlerror() != NULL);
  }
}

/* What is pending stays or goes as without us. */
static void errors(const char* path) {
  void* const library = open_or_exit(path, RTLD_NOW | RTLD_LOCAL);
  static const char* const names[] = {"cuMemFree_v2", "cuMemAlloc_v2", "cuMemAlloc", "no_such_name"};
  for (size_t i = 0; i < COUNT(names); ++i) {
    dlopen("/no/such/library.so", RTLD_NOW); /* leaves an error */
    printf("%s after a failure: %d\n", names[i], dlsym(library, names[i]) != NULL);
    say_error();
    say_error();
    dlsym(library, "no_such_name");
    printf("%s after a failed lookup: %d\n", names[i], dlsym(library, names[i]) != NULL);
    say_error();
  }
}

/* The name is the caller's own, and the caller is what RTLD_NEXT counts from. */
extern int layered(void);
extern int bottom_layer;
static void next(const char* path) {
  printf("layered: %d\n", layered() + bottom_layer);
  void* (*const find)(const char*) = dlsym(open_or_exit(path, RTLD_NOW | RTLD_LOCAL), "find_next");
  for (size_t i = 0; i < COUNT(others); ++i) say("next of a plugin", others[i], find(others[i]));
  for (size_t i = 0; i < COUNT(hooked); ++i) printf("next %s: %d\n", hooked[i], find(hooked[i]) != NULL);
}

/* Hooked names, by each handle that has them. */
static void found(const char* path) {
  void* const library = open_or_exit(path, RTLD_NOW | RTLD_LOCAL);
  say("local", "cuMemFree_v2", dlsym(library, "cuMemFree_v2"));
  say("default", "cuMemFree_v2", dlsym(RTLD_DEFAULT, "cuMemFree_v2")); /* not in the program's scope yet */
  open_or_exit(path, RTLD_NOW | RTLD_GLOBAL);
  say("default", "cuMemFree_v2", dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
  say("self", "cuMemFree_v2", dlsym(dlopen(NULL, RTLD_NOW), "cuMemFree_v2"));
}

/* A driver that is only looked at, and closed. */
static void closed(const char* path) {
  void* const library = open_or_exit(path, RTLD_NOW | RTLD_LOCAL);
  say("local", "cuMemFree_v2", dlsym(library, "cuMemFree_v2"));
  dlclose(library);
  printf("still there: %d\n", dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL);
}

/* What we export and no driver here has: the call is answered, as one that is not found. */
extern int cuMemGetInfo_v2(size_t* free, size_t* total) __attribute__((weak));
static void missing(const char* path) {
  open_or_exit(path, RTLD_NOW | RTLD_GLOBAL);
  for (int i = 0; i < 2; ++i) printf("%d\n", cuMemGetInfo_v2 ? cuMemGetInfo_v2(NULL, NULL) : -1);
}

static pthread_barrier_t together;
static void* many(void* library) {
  pthread_barrier_wait(&together);
  long found = 0;
  for (int i = 0; i < 1000; ++i) {
    found += dlsym(library, "cuMemFree_v2") != NULL;
    found += dlsym(library, "cuMemcpy") != NULL;
    found += dlsym(library, "no_such_name") != NULL;
  }
  return (void*)found;
}

static void threads(const char* path) {
  void* const library = open_or_exit(path, RTLD_NOW | RTLD_LOCAL);
  pthread_t thread[8];
  pthread_barrier_init(&together, NULL, 8);
  for (int i = 0; i < 8; ++i) pthread_create(&thread[i], NULL, many, library);
  long all = 0;
  for (int i = 0; i < 8; ++i) {
    void* found;
    pthread_join(thread[i], &found);
    all += (long)found;
  }
  printf("found %ld\n", all);
}

static int next_library(struct dl_phdr_info* info, size_t bytes, void* unused) { return 0; }
static void* walks_libraries(void* unused) {
  for (;;) dl_iterate_phdr(next_library, NULL);
  return NULL;
}

/* The first lookup of all is a child's, of a process where another thread holds a lock of the loader's most of the
 * time. */
static void children(const char* path) {
  pthread_t thread;
  pthread_create(&thread, NULL, walks_libraries, NULL);
  int found = 0;
  for (int status = 0; status == 0 && found < 100; found += status == 0) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20); /* ends it where it would wait for ever */
      _exit(dlsym(RTLD_DEFAULT, "malloc") == NULL);
    }
    waitpid(child, &status, 0);
  }
  printf("found %d\n", found);
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    void (*look_up)(const char*);
  } groups[] = {{"unhooked", unhooked}, {"no_driver", no_driver}, {"errors", errors},
                {"next", next},         {"found", found},         {"missing", missing},
                {"threads", threads},   {"closed", closed},       {"children", children}};
  for (size_t i = 0; i < COUNT(groups) && count > 2; ++i) {
    if (strcmp(arguments[1], groups[i].name) != 0) continue;
    groups[i].look_up(arguments[2]);
    return 0;
  }
  return 2;
}
