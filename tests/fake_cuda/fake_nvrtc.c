/* SPDX-License-Identifier: MIT */
/* A stand-in for NVRTC: the compiled program is its text, so that the fake driver can load it; a
 * text with the word `error` does not compile, and the log is the options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

typedef struct fake_program {
    char *text, log[200];
} fake_program;

VISIBLE int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers,
                               const char *const *texts, const char *const *names) {
    fake_program *p = calloc(1, sizeof *p);

    (void)texts;
    (void)names;
    if (!p || !name || headers != 0)
        abort();
    p->text = strdup(source);
    *program = p;
    return 0;
}

VISIBLE int nvrtcCompileProgram(void *program, int count, const char *const *options) {
    fake_program *p = program;

    for (int k = 0; k < count; k++)
        snprintf(p->log + strlen(p->log), sizeof p->log - strlen(p->log), "%s ", options[k]);
    return strstr(p->text, "error") ? 6 : 0;
}

VISIBLE int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
    *bytes = strlen(((fake_program *)program)->log) + 1;
    return 0;
}

VISIBLE int nvrtcGetProgramLog(void *program, char *log) {
    strcpy(log, ((fake_program *)program)->log);
    return 0;
}

VISIBLE int nvrtcGetCUBINSize(void *program, size_t *bytes) {
    *bytes = strlen(((fake_program *)program)->text) + 1;
    return 0;
}

VISIBLE int nvrtcGetCUBIN(void *program, char *code) {
    strcpy(code, ((fake_program *)program)->text);
    return 0;
}

VISIBLE int nvrtcDestroyProgram(void **program) {
    free(((fake_program *)*program)->text);
    free(*program);
    *program = NULL;
    return 0;
}

VISIBLE const char *nvrtcGetErrorString(int code) {
    return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS";
}
