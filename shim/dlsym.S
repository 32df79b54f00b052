/* dlsym, exported. It leaves every lookup but those of hooked names to the real dlsym by a jump, not a call: the real
 * one takes its caller from the return address, and with RTLD_NEXT the caller decides where the search begins.
 * RTLD_NEXT (-1) itself is never touched.
 *
 *   dlsym(handle, name):
 *     if (handle != RTLD_NEXT && reprise_is_hooked(name)) goto reprise_dlsym_hooked;
 *     goto *(reprise_real_dlsym ? reprise_real_dlsym : reprise_find_dlsym());
 */
#if defined(__x86_64__)

    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    cmpq $-1, %rdi
    je .Lreal
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rsi, %rdi
    call reprise_is_hooked
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testl %eax, %eax
    jnz reprise_dlsym_hooked
.Lreal:
    movq reprise_real_dlsym(%rip), %rax
    testq %rax, %rax
    jz .Lfind
    jmp *%rax
.Lfind:
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call reprise_find_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz .Lnone
    jmp *%rax
.Lnone:
    ret
    .cfi_endproc
    .size dlsym, . - dlsym

#elif defined(__aarch64__)

    .text
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    hint #34                      /* bti c */
    cmn x0, #1
    b.eq .Lreal
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    mov x0, x1
    bl reprise_is_hooked
    mov w9, w0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    cbz w9, .Lreal
    b reprise_dlsym_hooked
.Lreal:
    adrp x16, reprise_real_dlsym
    ldr x16, [x16, #:lo12:reprise_real_dlsym]
    cbz x16, .Lfind
    br x16
.Lfind:
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    bl reprise_find_dlsym
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    cbz x16, .Lnone
    br x16
.Lnone:
    mov x0, xzr
    ret
    .cfi_endproc
    .size dlsym, . - dlsym

#else
#error "no dlsym stub for this architecture"
#endif

    .section .note.GNU-stack, "", %progbits
