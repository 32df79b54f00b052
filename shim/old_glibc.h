/* The loader's functions, bound to the oldest version of the C library that has them.
 *
 * They are weak: before glibc 2.34 they live in libdl, which a process need not have loaded, and a strong
 * reference that nobody answers would end it before main. Ask whether one is there before calling it.
 */
#ifndef REPRISE_SHIM_OLD_GLIBC_H
#define REPRISE_SHIM_OLD_GLIBC_H

#include <dlfcn.h>

#if defined(__x86_64__)
#define REPRISE_OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define REPRISE_OLDEST "GLIBC_2.17"
#else
#error "the oldest symbol version of this architecture is not known here"
#endif

__asm__(".symver dlsym, dlsym@" REPRISE_OLDEST);
__asm__(".symver dlvsym, dlvsym@" REPRISE_OLDEST);
__asm__(".symver dlopen, dlopen@" REPRISE_OLDEST);
__asm__(".symver dlclose, dlclose@" REPRISE_OLDEST);
__asm__(".symver dlerror, dlerror@" REPRISE_OLDEST);
__asm__(".symver dladdr, dladdr@" REPRISE_OLDEST);
#pragma weak dlsym
#pragma weak dlvsym
#pragma weak dlopen
#pragma weak dlclose
#pragma weak dlerror
#pragma weak dladdr

#endif
