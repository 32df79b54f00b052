/* The name by which a sanitizer that watches for leaks is known, or one that watches threads. It does nothing. */
#ifdef OF_THREADS
void __tsan_init(void) {} /* NOLINT(bugprone-reserved-identifier,cert-*) */
#else
void __lsan_do_leak_check(void) {} /* NOLINT(bugprone-reserved-identifier,cert-*) */
#endif
