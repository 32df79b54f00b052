/* A core as it looks on a machine that lacks what it was built against. */
void reprise_test_nobody_defines_this(void);
void reprise_core_open_host(void) { reprise_test_nobody_defines_this(); }
