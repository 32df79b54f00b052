#include "tests/bench/empty_call.h"

void reprise_bench_empty(void* block) {}
