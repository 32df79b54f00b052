/* Calls another library: through slots that the loader fills before anything runs, or at the first call of
 * each, as it is linked; and through an address that it has taken. */
int called_answer(void);
int called_answer_2(void);

__attribute__((visibility("default"))) int ask(void) { return called_answer(); }
__attribute__((visibility("default"))) int ask_2(void) { return called_answer_2(); }
__attribute__((visibility("default"))) int ask_by_address(void) {
  int (*volatile address)(void) = called_answer;
  return address();
}
