/* What call_slots_calling.c calls, in a library of its own. */
int called_answer(void) { return 1; }
int called_answer_2(void) { return 2; }
