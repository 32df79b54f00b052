/* A program that is linked with AddressSanitizer's library does not start where another library is loaded before that
 * one, as a preloaded library is: unless this function, which it asks for options, says that the order is all right.
 * It is: what comes to our hooks goes on to it. A program that defines the function itself is asked in our place. */
#ifndef REPRISE_SHIM_SANITIZER_H
#define REPRISE_SHIM_SANITIZER_H

__attribute__((visibility("default"))) const char* __asan_default_options(void);

#endif
