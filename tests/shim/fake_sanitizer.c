/* The name by which a sanitizer that watches for leaks is known. It does nothing. */
void __lsan_do_leak_check(void) {} /* NOLINT(bugprone-reserved-identifier,cert-*) */
