/* SPDX-License-Identifier: MIT */
/*
 * leaking.c: proves that leaks.c finds leaks. `leaking lost` loses a block and must be reported;
 * `leaking kept` ends with a block that is still reachable and must not be; both leave what libc
 * and the dynamic linker keep (environment, a thread's stack), which hides nothing.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *kept;

static void *allocate(void *unused) {
    (void)unused;
    return malloc(33);
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *block = NULL;

    if (argc != 2 || setenv("IRON_TEST_LEAKING", argv[1], 1) != 0 ||
        pthread_create(&thread, NULL, allocate, NULL) != 0 || pthread_join(thread, &block) != 0)
        return 2;
    if (strcmp(argv[1], "kept") == 0)
        kept = block;
    else if (strcmp(argv[1], "lost") != 0)
        free(block);
    block = NULL;
    printf("%s\n", kept ? "kept" : "not kept");
    return 0;
}
