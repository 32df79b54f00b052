/* A function that does nothing, in a library of its own: what any call through the loader's names costs. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
void reprise_bench_empty(void* block);
#ifdef __cplusplus
}
#endif
