/* SPDX-License-Identifier: MIT */
/*
 * outside.c: contenders from the user's files, and the referee; see outside.h. In reading order:
 * files and what they say, compiling, the inputs, the process, judging, ops of the user's own.
 *
 * The referee believes nothing that the contender's process says about itself:
 *
 *   1. Inputs are made from seeds that are drawn after all contenders were loaded. There are three
 *      sets, passes use them in random order, and now and then one is replaced by a new one. In
 *      the end new inputs must not take longer than the same again.
 *   2. Every pass of a sample has an output of its own, which is poisoned before the sample.
 *   3. After half of the samples, drawn at random when the sample is over, the process is stopped
 *      and all outputs are checked: a thread that is still writing is too late.
 *   4. A sample takes as long as the parent's clock says. On a GPU it is the device's time, which
 *      must agree with the parent's clock.
 *   5. Inputs must be unchanged. On the CPU they are sealed: the process cannot write them.
 *   6. The process must not print, leave processes behind, or grow. It has limits of time and
 *      memory, and no right to read the parent's memory.
 *
 * Whether a rate is possible at all is decided at the end of the race, when the ceilings are known
 * (run.c).
 */
#include "arena/outside.h"
#include "core/clock.h"
#include "core/fail.h"
#include "core/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern const char iron__peer_header[];

/* Files. */

const char *iron__outside_directive(const char *text, const char *word, char *line, size_t size) {
    size_t length = strlen(word);

    while ((text = strstr(text, "iron: "))) {
        size_t end;

        text += strlen("iron: ");
        if (strncmp(text, word, length) != 0 || text[length] != ' ')
            continue;
        text += length + 1;
        end = strcspn(text, "\r\n\"\\"); /* also of a string in C: "...\n" */
        snprintf(line, size, "%.*s", (int)end, text);
        if (strstr(line, "*/"))
            *strstr(line, "*/") = '\0';
        for (end = strlen(line); end > 0 && line[end - 1] == ' ';)
            line[--end] = '\0';
        return text;
    }
    return NULL;
}

static const struct kind {
    const char *ending;
    uint32_t on;
} kinds[] = {
    {".c", IRON_ON_CPU}, {".so", IRON_ON_CPU}, {".cl", IRON_ON_OPENCL}, {".cu", IRON_ON_CUDA}};

static iron_status read_file(const char *path, char **text, size_t *bytes, iron_error *err) {
    FILE *file = fopen(path, "rbe");
    size_t room = 0, got = 1;

    *text = NULL;
    *bytes = 0;
    if (!file)
        return iron__fail_path(err, "read", path, errno);
    while (got > 0) {
        char *grown = realloc(*text, (room = room ? 2 * room : 65536) + 1);

        if (!grown) {
            fclose(file);
            return iron__no_memory(err, path);
        }
        *text = grown;
        got = fread(*text + *bytes, 1, room - *bytes, file);
        *bytes += got;
        (*text)[*bytes] = '\0';
    }
    got = (size_t)ferror(file);
    fclose(file);
    return got ? iron__fail_path(err, "read", path, EIO) : IRON_OK;
}

/* Where the file names its op, "iron: op histogram", or brings it, "iron: new op smooth"; in a
 * shared library that is a string. NULL: nowhere. */
static const char *find_name(const iron__outside *o, const char *mark, char *word, size_t size) {
    char line[40];
    const char *at;

    snprintf(line, sizeof line, "iron: %s ", mark);
    at = o->text ? memmem(o->text, o->bytes, line, strlen(line)) : NULL;
    word[0] = '\0';
    if (!at || !iron__outside_directive(at, mark, word, size))
        return NULL;
    word[strcspn(word, " \t")] = '\0';
    return at;
}

static bool has_text(const iron__outside *o, const char *text) {
    return memmem(o->text, o->bytes, text, strlen(text)) != NULL;
}

iron_status iron__outside_read(const char *path, iron__outside *o, iron_error *err) {
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    const char *dot = strrchr(path, '.');
    const struct kind *kind = NULL;

    for (size_t k = 0; dot && k < COUNT(kinds); k++)
        if (strcmp(dot, kinds[k].ending) == 0)
            kind = &kinds[k];
    *o = (iron__outside){.module = -1};
    IRON_FAIL_IF(!kind, err, IRON_E_ARG,
                 "--contender %.120s: the name must end in .c, .so, .cl or .cu", path);
    o->on = kind->on;
    o->is_library = strcmp(kind->ending, ".so") == 0;
    o->path = strdup(path);
    if (!o->path)
        return iron__no_memory(err, "a contender");
    IRON_TRY(read_file(path, &o->text, &o->bytes, err));
    o->has_contender = !has_text(o, "iron: new op ") ||
                       has_text(o, o->on == IRON_ON_CPU ? "iron_run" : "iron: launch ");
    snprintf(o->name, sizeof o->name, "%.*s", (int)(strlen(stem) - strlen(kind->ending)), stem);
    IRON_FAIL_IF(!o->name[0] || o->name[strspn(o->name, IRON_OUTSIDE_NAME)], err, IRON_E_ARG,
                 "--contender %.120s: a name has letters, digits, - and _ only", path);
    return IRON_OK;
}

iron_status iron__outside_resolve(iron__outside *o, const iron__op *const *own, size_t count,
                                  iron_error *err) {
    bool is_new;
    char word[24];
    iron__contender row;

    is_new = find_name(o, "new op", word, sizeof word);
    if (!is_new)
        find_name(o, "op", word, sizeof word);
    o->op = iron__op_find(word);
    for (size_t k = 0; k < count && !o->op; k++)
        o->op = strcmp(own[k]->name, word) == 0 ? own[k] : NULL;
    IRON_FAIL_IF(!o->op, err, IRON_E_ARG,
                 "%.120s: %s%s%s; write the line 'iron: op NAME', see iron arena --template%s",
                 o->path, word[0] ? "there is no op '" : "it does not say which op it is for", word,
                 word[0] ? "'" : "",
                 word[0] ? ", and name the file that brings an op of your own, too" : "");
    if (is_new && !o->op->baselines[0][0]) {
        iron__outside_op *op = (iron__outside_op *)(uintptr_t)o->op;

        snprintf(op->baseline, sizeof op->baseline, "%s", o->name);
    }
    for (size_t k = 0; iron__op_contender(o->op, k, &row); k++)
        IRON_FAIL_IF((row.backends & o->on) && strcmp(row.name, o->name) == 0, err, IRON_E_ARG,
                     "--contender %.120s: %s has a contender of that name; rename the file",
                     o->path, o->op->name);
    return IRON_OK;
}

void iron__outside_deinit(iron__outside *o) {
    if (o->module >= 0)
        close(o->module);
    free(o->path);
    free(o->text);
    free(o->key);
    *o = (iron__outside){.module = -1};
}

/* Compiling. */

static void define(iron__defines *d, const char *name, const char *value) {
    iron__define *to = &d->list[d->count];

    if (d->count == IRON_OUTSIDE_DEFINES)
        return;
    d->count++;
    snprintf(to->name, sizeof to->name, "%s", name);
    snprintf(to->value, sizeof to->value, "%s", value);
}

/* What a contender is compiled with: ELEMENT, VOCAB, the case's parameters in capitals (a word as
 * its index), and the user's own. */
iron__defines iron__outside_defines(const iron__outside *o, const iron__case *c) {
    static const char *const types[][3] = {/* of the CPU, OpenCL, CUDA */
                                           [IRON_F32] = {"float", "float", "float"},
                                           [IRON_F64] = {"double", "double", "double"},
                                           [IRON_U8] = {"uint8_t", "uchar", "unsigned char"},
                                           [IRON_U16] = {"uint16_t", "ushort", "unsigned short"},
                                           [IRON_U32] = {"uint32_t", "uint", "unsigned int"}};
    const iron__params params = iron__params_of(c);
    iron__defines d = {.count = 0};
    size_t words = 0;

    define(&d, "ELEMENT",
           types[c->element][o->on == IRON_ON_CPU      ? 0
                             : o->on == IRON_ON_OPENCL ? 1
                                                       : 2]);
    if (c->vocab)
        define(&d, "VOCAB", iron__param_number(c->vocab).text);
    for (const iron__param *p = params.list; p < params.list + params.count; p++) {
        char name[sizeof p->name];

        for (size_t at = 0; at < sizeof name; at++)
            name[at] = (char)(p->name[at] >= 'a' && p->name[at] <= 'z' ? p->name[at] - 'a' + 'A'
                                                                       : p->name[at]);
        define(&d, name,
               p->word[0] ? iron__param_number(c->at[words]).text : iron__param_text(p).text);
        words += p->is_axis;
    }
    for (size_t k = 0; k < o->defines.count; k++)
        define(&d, o->defines.list[k].name, o->defines.list[k].value);
    return d;
}

#define WORDS_MAX 64u

/* Runs a compiler, whose messages go to standard error as they are. */
static iron_status run_compiler(const char *const *words, iron_error *err) {
    posix_spawn_file_actions_t actions;
    int code, state = 0;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    code = posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    IRON_FAIL_IF(code != 0, err, code == ENOENT ? IRON_E_UNSUPPORTED : IRON_E_STATE,
                 "cannot run the compiler %s: %s", words[0], strerror(code));
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    IRON_FAIL_IF(!WIFEXITED(state) || WEXITSTATUS(state) != 0, err, IRON_E_FORMAT,
                 "it does not compile: %s says why on standard error", words[0]);
    return IRON_OK;
}

/* The variable's value, else the usual program. */
static const char *program(const char *variable, const char *usual) {
    const char *named = getenv(variable);

    return named && named[0] ? named : usual;
}

/* The command line that makes `output` of the file; `room` holds its words. */
static size_t compiler_words(const iron__outside *o, const iron__defines *d, const char *folder,
                             const char *output, uint32_t version, char room[WORDS_MAX][256],
                             const char *words[WORDS_MAX]) {
    static const char *const for_c[] = {
        "-std=gnu17",
        "-O3",
        "-ffp-contract=off",
        "-fPIC",
        "-shared",
        "-pthread",
#if defined(__aarch64__)
        "-mcpu=native",
#else
        "-march=native",
#endif
        "-I"
    };
    static const char beside[] = "/usr/local/cuda/bin/nvcc";
    static const char *const for_cuda[] = {"-cubin", "-std=c++17", "-O3", "-fmad=false"};
    bool is_nvcc = o->on == IRON_ON_CUDA;
    size_t count = 0, printed = 0;
    char flags[200] = "", *rest = NULL;

    words[count++] = is_nvcc ? program("NVCC", access(beside, X_OK) == 0 ? beside : "nvcc")
                             : program("CC", "cc");
    for (size_t k = 0; !is_nvcc && k < COUNT(for_c); k++)
        words[count++] = for_c[k];
    if (is_nvcc) {
        for (size_t k = 0; k < COUNT(for_cuda); k++)
            words[count++] = for_cuda[k];
        snprintf(room[printed], 256, "-arch=sm_%u", version / 10);
        words[count++] = room[printed++];
    } else {
        words[count++] = folder;
    }
    for (size_t k = 0; k < d->count; k++) {
        snprintf(room[printed], 256, "-D%s=%s", d->list[k].name, d->list[k].value);
        words[count++] = room[printed++];
    }
    if (o->is_op) { /* flags are for the contender, and the file may be of another language */
        words[count++] = "-DIRON_OP";
        words[count++] = "-xc";
    } else {
        iron__outside_directive(o->text, "flags", flags, sizeof flags);
    }
    for (char *word = strtok_r(flags, " ", &rest); word && count + 6 < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        snprintf(room[printed], 256, "%s", word);
        words[count++] = room[printed++];
    }
    words[count++] = "-o";
    words[count++] = output;
    words[count++] = o->path;
    if (!is_nvcc)
        words[count++] = "-lm";
    words[count] = NULL;
    return count;
}

static iron_status write_all(int file, const void *data, size_t bytes, iron_error *err) {
    const char *at = data;

    while (bytes > 0) {
        ssize_t put = write(file, at, bytes);

        IRON_FAIL_IF(put <= 0, err, IRON_E_IO, "cannot keep a compiled contender: %s",
                     strerror(errno));
        at += put;
        bytes -= (size_t)put;
    }
    return IRON_OK;
}

/* Compiles in a folder that is removed at once; *module is what came of it. */
static iron_status compile(const iron__outside *o, const iron__defines *d, uint32_t version,
                           char **module, size_t *bytes, iron_error *err) {
    char folder[] = "/tmp/iron-contender-XXXXXX", header[80], sub[60], output[60];
    char room[WORDS_MAX][256];
    const char *words[WORDS_MAX];
    iron_status status = IRON_OK;
    FILE *file;

    IRON_FAIL_IF(!mkdtemp(folder), err, IRON_E_IO, "cannot make a folder in /tmp: %s",
                 strerror(errno));
    snprintf(sub, sizeof sub, "%s/iron", folder);
    snprintf(header, sizeof header, "%s/iron_peer.h", sub);
    snprintf(output, sizeof output, "%s/module", folder);
    mkdir(sub, 0700);
    file = fopen(header, "wbe");
    if (!file || fputs(iron__peer_header, file) < 0)
        status = iron__fail_path(err, "write", header, errno);
    if (file && fclose(file) != 0 && status == IRON_OK)
        status = iron__fail_path(err, "write", header, errno);
    if (status == IRON_OK) {
        compiler_words(o, d, folder, output, version, room, words);
        status = run_compiler(words, err);
    }
    if (status == IRON_OK)
        status = read_file(output, module, bytes, err);
    unlink(output);
    unlink(header);
    rmdir(sub);
    rmdir(folder);
    return status;
}

/* OpenCL's compiler is the driver's, and CUDA has one besides nvcc, NVRTC; both run in the child:
 * the text gets its definitions. */
static iron_status define_in_text(const iron__outside *o, const iron__defines *d, char **module,
                                  size_t *bytes, iron_error *err) {
    FILE *to = open_memstream(module, bytes);

    if (!to)
        return iron__no_memory(err, "a contender");
    if (o->on == IRON_ON_OPENCL)
        fputs("#pragma OPENCL FP_CONTRACT OFF\n#ifdef cl_khr_fp64\n"
              "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n",
              to);
    for (size_t k = 0; k < d->count; k++)
        fprintf(to, "#define %s %s\n", d->list[k].name, d->list[k].value);
    fprintf(to, "#line 1 \"%s\"\n%s", o->path, o->text);
    fputc('\0', to); /* the text follows */
    return fclose(to) == 0 ? IRON_OK : iron__no_memory(err, "a contender");
}

/* Makes o->module what the child loads in this case; the last one is kept. */
static iron_status build(iron__outside *o, const iron__defines *d, uint32_t version,
                         iron_error *err) {
    char *key = NULL, *module = NULL;
    size_t key_bytes = 0, bytes = 0;
    FILE *to = open_memstream(&key, &key_bytes);
    iron_status status = IRON_OK;

    if (!to)
        return iron__no_memory(err, "a contender");
    fprintf(to, "%u", version);
    for (size_t k = 0; k < d->count; k++)
        fprintf(to, " %s=%s", d->list[k].name, d->list[k].value);
    if (fclose(to) != 0) {
        free(key);
        return iron__no_memory(err, "a contender");
    }
    if (o->key && (o->is_library || strcmp(o->key, key) == 0))
        goto done;
    o->is_compiled = o->on != IRON_ON_OPENCL;
    if (o->is_library) {
        module = o->text;
        bytes = o->bytes;
    } else if (o->is_compiled) {
        status = compile(o, d, version, &module, &bytes, err);
        /* there is no nvcc */
        o->is_compiled = o->on == IRON_ON_CPU || status != IRON_E_UNSUPPORTED;
    }
    if (!o->is_compiled)
        status = define_in_text(o, d, &module, &bytes, err);
    if (status != IRON_OK)
        goto done;
    if (o->module >= 0)
        close(o->module);
    o->module = memfd_create("iron-contender", MFD_CLOEXEC);
    if (o->module < 0)
        status = iron__fail(err, IRON_E_IO, errno, "no file in memory: %s", strerror(errno));
    if (status == IRON_OK)
        status = write_all(o->module, module, bytes, err);
    if (status == IRON_OK && o->on != IRON_ON_CPU)
        status = write_all(o->module, o->text, o->bytes, err);
    o->module_bytes = bytes;
    if (status == IRON_OK) {
        free(o->key);
        o->key = key;
        key = NULL;
    }
done:
    free(key);
    if (module != o->text)
        free(module);
    return status;
}

/* Inputs. */

struct iron__referee {
    iron__op_problem problems[IRON_OUTSIDE_INPUT_SETS];
    uint32_t generation[IRON_OUTSIDE_INPUT_SETS]; /* 0: not made yet */
    const iron__op_problem *model;                /* sizes; another seed */
    int inputs;                                   /* the shared memory, sealed for others */
    char *shared;
    size_t set_bytes;
    uint64_t seed, draws;
    double make_seconds; /* of the last set */
    int was_dumpable;
};

static uint64_t draw(iron__referee *r) {
    return iron__mix64(r->seed + ++r->draws * IRON_GOLDEN_GAMMA);
}

void iron__referee_destroy(iron__referee *r) {
    if (!r)
        return;
    for (size_t k = 0; k < IRON_OUTSIDE_INPUT_SETS; k++)
        if (r->generation[k] > 0)
            r->problems[k].c.op->unmake(&r->problems[k]);
    if (r->shared)
        munmap(r->shared, IRON_OUTSIDE_INPUT_SETS * r->set_bytes);
    if (r->inputs >= 0)
        close(r->inputs);
    prctl(PR_SET_DUMPABLE, r->was_dumpable, 0, 0, 0);
    free(r);
}

iron_status iron__referee_create(const iron__op_problem *problem, iron__referee **out,
                                 iron_error *err) {
    iron__referee *r = calloc(1, sizeof *r);
    size_t bytes;
    void *shared;

    *out = NULL;
    if (!r)
        return iron__no_memory(err, "a referee");
    r->inputs = -1;
    r->model = problem;
    r->was_dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no other process may read this one's memory */
    for (size_t k = 0; k < problem->input_count; k++)
        r->set_bytes += iron__outside_round(problem->inputs[k].bytes);
    bytes = IRON_OUTSIDE_INPUT_SETS * r->set_bytes;
    r->inputs = memfd_create("iron-inputs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (r->inputs < 0 || ftruncate(r->inputs, (off_t)bytes) != 0)
        goto failed;
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->inputs, 0);
    if (shared == MAP_FAILED)
        goto failed;
    r->shared = shared;
    madvise(shared, bytes, MADV_HUGEPAGE); /* a wish */
    /* from here on nobody can map it for writing */
    if (fcntl(r->inputs, F_ADD_SEALS,
              F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        *out = r;
        return IRON_OK;
    }
failed:
    iron__fail(err, IRON_E_NOMEM, errno, "no shared memory of %zu bytes for inputs: %s", bytes,
               strerror(errno));
    iron__referee_destroy(r);
    return IRON_E_NOMEM;
}

/* Makes input set `set`, or replaces it. */
static iron_status renew(iron__referee *r, size_t set, iron_error *err) {
    iron__op_problem *p = &r->problems[set];
    char *to = r->shared + set * r->set_bytes;
    uint64_t start = iron__clock_ns();

    if (r->seed == 0 && getrandom(&r->seed, sizeof r->seed, 0) != (ssize_t)sizeof r->seed)
        IRON_FAIL(err, IRON_E_IO, "no random seed: %s", strerror(errno));
    if (r->generation[set] > 0)
        p->c.op->unmake(p);
    *p = (iron__op_problem){.c = r->model->c};
    p->c.seed = draw(r);
    if (p->c.op->make(p, r->model->pool, err) != IRON_OK) {
        r->generation[set] = 0;
        return IRON_E_NOMEM;
    }
    r->generation[set]++;
    for (size_t k = 0; k < p->input_count; k++) {
        memcpy(to, p->inputs[k].data, p->inputs[k].bytes);
        to += iron__outside_round(p->inputs[k].bytes);
    }
    r->make_seconds = (double)(iron__clock_ns() - start) * 1e-9;
    return IRON_OK;
}

/* The process. */

typedef struct outside_contender {
    iron__race_contender base;
    iron__referee *referee; /* borrowed */
    iron__outside *outside; /* borrowed */
    iron__outside_setup setup;
    pid_t pid;                                        /* 0: it has ended */
    int socket, inputs, outputs, printed, complaints; /* inputs: borrowed, except of an op */
    char *shared;                                     /* outputs */
    size_t shared_bytes, answer_set;
    uint64_t number;       /* of requests */
    uint64_t anonymous_kb; /* of its memory, after two answers; 0: fewer were given */
    uint32_t answers, runs;
    double seconds;         /* limit of one request */
    double spent, renewed;  /* seconds of samples, and of new inputs */
    double cpu_ms;          /* of the last run, on all processors */
    double least_hidden_ms; /* see run; of all runs */
    uint8_t order[IRON_OUTSIDE_SLOTS];
} outside_contender;

#define LOAD_SECONDS 120.0
#define RUN_SECONDS  10.0

/* Fails with the verdict. */
static iron_status __attribute__((format(printf, 4, 5)))
accuse(outside_contender *c, iron__row_status verdict, iron_error *err, const char *format, ...) {
    char text[200];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    c->base.fault = verdict;
    IRON_FAIL(err, IRON_E_STATE, "%s", text);
}

/* Ends the process and those that it has started. */
static void end_process(outside_contender *c) {
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL);
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    c->pid = 0;
}

/* The first line of a file in memory, in quotes after `lead`; "" if it is empty. */
static void first_line(int file, const char *lead, char *text, size_t size) {
    char line[100];
    ssize_t got = pread(file, line, sizeof line - 1, 0);

    text[0] = '\0';
    if (got <= 0)
        return;
    line[got] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    snprintf(text, size, "%s'%s'", lead, line);
}

static iron_status accuse_dead(outside_contender *c, int state, iron_error *err) {
    char said[140];
    pid_t pid = c->pid;

    kill(-pid, SIGKILL); /* what it has left behind */
    c->pid = 0;
    first_line(c->complaints, ": ", said, sizeof said);
    if (WIFSIGNALED(state))
        return accuse(c, IRON_ROW_FAILED, err, "its process was ended by signal %d (%s)%s",
                      WTERMSIG(state), strsignal(WTERMSIG(state)), said);
    return accuse(c, IRON_ROW_FAILED, err, "its process exited with status %d%s",
                  WEXITSTATUS(state), said);
}

/* Seconds of all processors that the process has used. */
static double cpu_seconds(pid_t pid) {
    struct timespec t = {0, 0};
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Load may keep a process from running for so many times its limit. */
#define STARVED_FACTOR 6.0

/* Waits for the reply to the last request. The limit is for a process that computes, or that does
 * nothing; one that gets a part of a processor only is not to blame for it. */
static iron_status receive(outside_contender *c, double seconds, iron__outside_reply *reply,
                           iron_error *err) {
    uint64_t begin = iron__clock_ns(), look = (uint64_t)((seconds - 1) * 1e9);
    struct pollfd file = {.fd = c->socket, .events = POLLIN};
    double cpu = cpu_seconds(c->pid), used = 0;
    int state;

    for (;;) {
        int ready = poll(&file, 1, 50);

        if (ready > 0 && (file.revents & POLLIN) &&
            recv(c->socket, reply, sizeof *reply, MSG_DONTWAIT) == (ssize_t)sizeof *reply)
            break;
        if (waitpid(c->pid, &state, WNOHANG) == c->pid)
            return accuse_dead(c, state, err);
        if (iron__clock_ns() - begin > look) {
            double wall = (double)(iron__clock_ns() - begin) * 1e-9, before = used;

            used = cpu_seconds(c->pid) - cpu;
            look += UINT64_C(1000000000);
            if (wall < seconds ||
                (used < seconds && used > before + 0.005 && wall < STARVED_FACTOR * seconds))
                continue;
            end_process(c);
            return accuse(c, IRON_ROW_FAILED, err, "no answer within %.0f seconds", seconds);
        }
    }
    reply->text[sizeof reply->text - 1] = '\0';
    if (reply->number != c->number) {
        end_process(c);
        return accuse(c, IRON_ROW_FAILED, err, "its process gave a reply of its own");
    }
    if (reply->status != IRON_OK) {
        bool is_skip = reply->status == IRON_E_UNSUPPORTED || reply->status == IRON_E_NOMEM;

        return accuse(c, is_skip ? IRON_ROW_SKIPPED : IRON_ROW_FAILED, err, "%s", reply->text);
    }
    return IRON_OK;
}

static iron_status ask(outside_contender *c, iron__outside_request *q, iron__outside_reply *reply,
                       iron_error *err) {
    if (c->pid == 0)
        return accuse(c, IRON_ROW_FAILED, err, "its process has ended");
    q->number = ++c->number;
    send(c->socket, q, sizeof *q, MSG_NOSIGNAL); /* receive finds out if the process has ended */
    return receive(c, c->seconds, reply, err);
}

/* A file in memory; -1 with a message. */
static int memory_file(const char *name, size_t bytes, iron_error *err) {
    int file = memfd_create(name, MFD_CLOEXEC);

    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0)
        return file;
    iron__fail(err, IRON_E_NOMEM, errno, "no shared memory of %zu bytes: %s", bytes,
               strerror(errno));
    if (file >= 0)
        close(file);
    return -1;
}

/* dup2 would keep close-on-exec where a descriptor has its number already, so all are first moved
 * above the numbers of the child. */
static iron_status start(outside_contender *c, const char *command, int socket, iron_error *err) {
    char name[] = "iron", task[] = "arena-contender";
    char *const words[] = {name, task, NULL};
    const int files[] = {-1,        c->printed, c->complaints,     socket,
                         c->inputs, c->outputs, c->outside->module};
    int moved[COUNT(files)];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (int k = 1; k < (int)COUNT(files); k++) {
        moved[k] = fcntl(files[k], F_DUPFD_CLOEXEC, 64);
        posix_spawn_file_actions_adddup2(&actions, moved[k], k);
    }
    code = posix_spawn(&c->pid, command, &actions, &attributes, words, environ);
    for (int k = 1; k < (int)COUNT(files); k++)
        close(moved[k]);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (code == 0)
        return IRON_OK;
    c->pid = 0;
    IRON_FAIL(err, IRON_E_STATE, "cannot start %s: %s", command, strerror(code));
}

/* Judging. */

/* An input set for a run; with is_new one that nobody has seen. */
static iron_status choose_set(iron__referee *r, bool is_new, size_t *set, iron_error *err) {
    for (size_t k = 0; k < IRON_OUTSIDE_INPUT_SETS; k++)
        if (r->generation[k] == 0)
            IRON_TRY(renew(r, k, err));
    *set = draw(r) % IRON_OUTSIDE_INPUT_SETS;
    return is_new ? renew(r, *set, err) : IRON_OK;
}

/* Poisons the outputs; the first pass reads `set` if there is only one. */
static iron_status prepare(outside_contender *c, size_t set, bool is_cold, uint32_t passes,
                           iron__outside_request *q, iron_error *err) {
    iron__referee *r = c->referee;
    iron__outside_reply reply;
    size_t slot_bytes = iron__outside_slot_bytes(&c->setup);

    *q =
        (iron__outside_request){.task = IRON_OUTSIDE_PREPARE, .passes = passes, .is_cold = is_cold};
    memcpy(q->generation, r->generation, sizeof q->generation);
    for (uint32_t k = 0; k < passes; k++)
        c->order[k] = (uint8_t)((set + k) % IRON_OUTSIDE_INPUT_SETS);
    for (uint32_t k = passes; k > 1; k--) { /* Fisher and Yates */
        uint32_t other = (uint32_t)(draw(r) % k);
        uint8_t kept = c->order[k - 1];

        c->order[k - 1] = c->order[other];
        c->order[other] = kept;
    }
    memcpy(q->order, c->order, sizeof q->order);
    for (uint32_t k = 0; k < passes; k++)
        memset(c->shared + k * slot_bytes, 0xFF, c->setup.output_bytes);
    return ask(c, q, &reply, err);
}

/* On the CPU the process stops while its outputs are read, so that nothing can be added; the
 * outputs of a GPU come when they are asked for. */
static iron_status hold(outside_contender *c, iron__outside_request *q, iron_error *err) {
    iron__outside_reply reply;
    int state;

    if (!c->setup.is_cpu) {
        q->task = IRON_OUTSIDE_FETCH;
        return ask(c, q, &reply, err);
    }
    kill(-c->pid, SIGSTOP);
    while (waitpid(c->pid, &state, WUNTRACED) < 0 && errno == EINTR)
        ;
    return WIFSTOPPED(state) ? IRON_OK : accuse_dead(c, state, err);
}

static void release(outside_contender *c) {
    if (c->setup.is_cpu && c->pid > 0)
        kill(-c->pid, SIGCONT);
}

static iron_status check_outputs(outside_contender *c, uint32_t passes, iron_error *err) {
    size_t slot_bytes = iron__outside_slot_bytes(&c->setup);
    char text[160] = "";

    for (uint32_t k = 0; k < passes; k++) {
        const iron__op_problem *p = &c->referee->problems[c->order[k]];

        if (!p->c.op->check(p, c->shared + k * slot_bytes, text, sizeof text))
            return accuse(c, IRON_ROW_WRONG, err, "in a timed sample: %.150s", text);
    }
    return IRON_OK;
}

/* KiB of its anonymous memory; 0: unknown. */
static uint64_t anonymous_kb(pid_t pid) {
    char path[40], line[128];
    uint64_t kb = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kb = strtoull(line + 8, NULL, 10);
    if (file)
        fclose(file);
    return kb;
}

/* Has one of its threads started another process that still runs? */
static bool has_children(pid_t pid) {
    char path[64], text[16];
    bool is_any = false;
    struct dirent *thread;
    DIR *threads;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    while (threads && !is_any && (thread = readdir(threads))) {
        FILE *file;

        snprintf(path, sizeof path, "/proc/%d/task/%.12s/children", (int)pid, thread->d_name);
        file = fopen(path, "re");
        is_any = file && fgets(text, sizeof text, file);
        if (file)
            fclose(file);
    }
    if (threads)
        closedir(threads);
    return is_any;
}

#define GROWTH_KB (UINT64_C(64) << 10)

/* What the process has done besides computing. */
static iron_status inspect(outside_contender *c, iron_error *err) {
    char said[140];
    uint64_t now;

    first_line(c->printed, "it wrote to standard output: ", said, sizeof said);
    if (said[0])
        return accuse(c, IRON_ROW_FAILED, err, "%s", said);
    if (!c->setup.is_cpu)
        return IRON_OK;
    if (has_children(c->pid))
        return accuse(c, IRON_ROW_FAILED, err, "it has left a process running");
    now = anonymous_kb(c->pid);
    if (c->answers == 2)
        c->anonymous_kb = now;
    if (c->answers > 2 && c->anonymous_kb > 0 && now > c->anonymous_kb + GROWTH_KB)
        return accuse(c, IRON_ROW_FAILED, err, "its memory grows: by %" PRIu64 " MiB over the race",
                      (now - c->anonymous_kb) >> 10);
    return IRON_OK;
}

/* Are the inputs of the set as they were? On the CPU nobody could write them. */
static iron_status check_inputs(outside_contender *c, iron__outside_request *q, iron_error *err) {
    const iron__op_problem *p = &c->referee->problems[q->order[0]];
    const char *at = c->shared + c->setup.slots * iron__outside_slot_bytes(&c->setup);
    iron__outside_reply reply;

    if (c->setup.is_cpu)
        return IRON_OK;
    q->task = IRON_OUTSIDE_RETURN;
    IRON_TRY(ask(c, q, &reply, err));
    for (size_t k = 0; k < p->input_count; k++) {
        if (memcmp(at, p->inputs[k].data, p->inputs[k].bytes) != 0)
            return accuse(c, IRON_ROW_WRONG, err, "it has changed its input '%s'",
                          p->inputs[k].name);
        at += iron__outside_round(p->inputs[k].bytes);
    }
    return IRON_OK;
}

static iron_status run(outside_contender *c, iron__outside_request *q, double *ms,
                       iron_error *err) {
    iron__outside_reply reply = {.ms = 0};
    double wall_ms, hidden, cpu = cpu_seconds(c->pid);
    uint64_t begin;

    q->task = IRON_OUTSIDE_RUN;
    begin = iron__clock_ns();
    IRON_TRY(ask(c, q, &reply, err));
    wall_ms = (double)(iron__clock_ns() - begin) * 1e-6;
    c->cpu_ms = 1e3 * (cpu_seconds(c->pid) - cpu);
    *ms = c->setup.is_cpu ? wall_ms : reply.ms;
    /* Time that the process says it did not take. On the CPU that is work that its threads did
     * while its clock stood still; time that it waited for a processor does not count. On a GPU it
     * is time by the parent's clock, of which load may add some to every sample. */
    hidden = c->setup.is_cpu
                 ? c->cpu_ms - 1.5 * reply.ms * (double)sysconf(_SC_NPROCESSORS_ONLN) - 1
                 : wall_ms / 2 - reply.ms - 50;
    c->least_hidden_ms =
        c->runs++ == 0 || hidden < c->least_hidden_ms ? hidden : c->least_hidden_ms;
    if (!(reply.ms >= 0 && reply.ms <= 1.01 * wall_ms + 0.1)) /* clocks of devices drift */
        return accuse(c, IRON_ROW_FAILED, err, "its clock says %.3g ms for %.3g ms", reply.ms,
                      wall_ms);
    if (c->answers >= 2 && c->runs >= 5 && c->least_hidden_ms > 0)
        return accuse(c, IRON_ROW_FAILED, err, "its clock says %.3g ms for %.3g ms, every time",
                      reply.ms, wall_ms);
    return IRON_OK;
}

static iron_status time_passes(iron__race_contender *base, iron__scope scope, bool is_cold,
                               uint32_t passes, double *ms, iron_error *err) {
    outside_contender *c = (outside_contender *)base;
    uint64_t begin = iron__clock_ns();
    /* one sample in eight meets a new input, as long as that takes a quarter of the time at most */
    bool is_new =
        draw(c->referee) % 8 == 0 && c->renewed + c->referee->make_seconds <= c->spent / 4;
    iron__outside_request q;
    size_t set = 0;
    iron_status status;

    (void)scope;
    IRON_TRY(choose_set(c->referee, is_new, &set, err));
    c->renewed += is_new ? c->referee->make_seconds : 0;
    IRON_TRY(prepare(c, set, is_cold, passes, &q, err));
    IRON_TRY(run(c, &q, ms, err));
    *ms /= passes;
    c->spent += (double)(iron__clock_ns() - begin) * 1e-9;
    if (draw(c->referee) % 2 == 0)
        return IRON_OK;
    status = hold(c, &q, err);
    if (status == IRON_OK)
        status = check_outputs(c, passes, err);
    release(c);
    return status == IRON_OK ? inspect(c, err) : status;
}

/* Does it remember the answers to inputs that it has seen? The best run with a new input must not
 * take longer than the best with the same input again, all with empty caches. On the CPU the time
 * is that of the processors, which other load does not add to; on a GPU load delays some runs, but
 * not all seven. Shorter runs are not judged: a processor's branch predictor remembers
 * small inputs. */
#define MEMORY_PAIRS_MIN 3
#define MEMORY_PAIRS     7
#define MEMORY_FACTOR    2.0
#define MEMORY_MS        0.5

static iron_status check_memory_of_answers(outside_contender *c, iron_error *err) {
    iron__outside_request q;
    double best[2] = {0, 0};

    for (int pair = 0; pair < MEMORY_PAIRS; pair++) {
        size_t set = 0;

        IRON_TRY(choose_set(c->referee, true, &set, err));
        for (int k = 0; k < 2; k++) {
            double ms = 0;

            IRON_TRY(prepare(c, set, true, 1, &q, err));
            IRON_TRY(run(c, &q, &ms, err));
            ms = c->setup.is_cpu ? c->cpu_ms : ms;
            best[k] = pair == 0 || ms < best[k] ? ms : best[k];
        }
        if (best[0] < MEMORY_MS ||
            (pair + 1 >= MEMORY_PAIRS_MIN && best[0] < MEMORY_FACTOR * best[1]))
            return IRON_OK;
    }
    return accuse(c, IRON_ROW_IMPLAUSIBLE, err,
                  "it remembers answers: a new input takes %.3g ms, the same again %.3g ms",
                  best[0], best[1]);
}

/* The first two answers are before the samples; later ones are to inputs that it has not seen. */
static iron_status answer(iron__race_contender *base, iron__scope scope, void *output,
                          iron_error *err) {
    outside_contender *c = (outside_contender *)base;
    iron__outside_request q;
    size_t set = 0;
    double ms;

    (void)scope;
    if (c->answers >= 2)
        IRON_TRY(check_memory_of_answers(c, err));
    IRON_TRY(choose_set(c->referee, c->answers >= 2, &set, err));
    IRON_TRY(prepare(c, set, false, 1, &q, err));
    IRON_TRY(run(c, &q, &ms, err));
    IRON_TRY(hold(c, &q, err));
    memcpy(output, c->shared, c->setup.output_bytes);
    release(c);
    c->answers++;
    c->answer_set = c->order[0];
    IRON_TRY(check_inputs(c, &q, err));
    return inspect(c, err);
}

bool iron__outside_check(const void *contender, const void *output, char *text, size_t size) {
    const outside_contender *c = contender;
    const iron__op_problem *p = &c->referee->problems[c->answer_set];

    return p->c.op->check(p, output, text, size);
}

/* What open_process has made. */
static void close_process(outside_contender *c) {
    int *const files[] = {&c->socket, &c->outputs, &c->printed, &c->complaints};

    end_process(c);
    if (c->shared)
        munmap(c->shared, c->shared_bytes);
    c->shared = NULL;
    for (size_t k = 0; k < COUNT(files); k++) {
        if (*files[k] >= 0)
            close(*files[k]);
        *files[k] = -1;
    }
}

static void close_contender(iron__race_contender *base) {
    close_process((outside_contender *)base);
    free(base);
}

/* So many outputs of a sample as fit into this many bytes, at least one for each input. */
#define SLOTS_BYTES ((size_t)256 << 20)

static void fill_setup(outside_contender *c, const iron__op_problem *p, const iron__defines *d,
                       uint32_t threads) {
    iron_peer_case pc = iron__peer_case(p, NULL, threads);
    size_t fit = SLOTS_BYTES / iron__outside_round(p->output_bytes ? p->output_bytes : 1);
    iron__outside_setup *s = &c->setup;

    *s = (iron__outside_setup){.is_cpu = true,
                               .is_op = c->outside->is_op,
                               .threads = threads,
                               .vocab = p->c.vocab,
                               .slots = (uint32_t)(c->outside->is_op ? 1
                                                   : fit < IRON_OUTSIDE_INPUT_SETS
                                                       ? IRON_OUTSIDE_INPUT_SETS
                                                   : fit > IRON_OUTSIDE_SLOTS ? IRON_OUTSIDE_SLOTS
                                                                              : fit),
                               .rows = p->c.rows,
                               .cols = p->c.cols,
                               .output_bytes = p->output_bytes,
                               .reference_bytes = p->reference.bytes,
                               .input_count = (uint32_t)p->input_count,
                               .is_compiled = c->outside->is_compiled,
                               .module_bytes = c->outside->module_bytes,
                               .defines = *d};
    snprintf(s->dtype, sizeof s->dtype, "%s", pc.dtype);
    memcpy(s->params, pc.params, sizeof s->params);
    for (size_t k = 0; k < p->input_count; k++)
        s->input_bytes[k] = p->inputs[k].bytes;
    /* what it shares, as much again for itself, and room for libraries and stacks */
    s->memory_limit =
        2 * (iron__outside_input_bytes(s) + iron__outside_output_bytes(s)) + (UINT64_C(8) << 30);
}

static iron_status open_process(outside_contender *c, const char *command, iron_error *err) {
    int pair[2] = {-1, -1};
    iron__outside_reply reply;
    void *shared;
    iron_status status;

    c->number = 0;
    c->shared_bytes = iron__outside_output_bytes(&c->setup);
    c->outputs = memory_file("iron-outputs", c->shared_bytes, err);
    c->printed = c->outputs < 0 ? -1 : memory_file("iron-stdout", 0, err);
    c->complaints = c->printed < 0 ? -1 : memory_file("iron-stderr", 0, err);
    if (c->complaints < 0)
        return IRON_E_NOMEM;
    shared = mmap(NULL, c->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->outputs, 0);
    IRON_FAIL_IF(shared == MAP_FAILED, err, IRON_E_NOMEM, "no shared memory: %s", strerror(errno));
    c->shared = shared;
    IRON_FAIL_IF(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0, err, IRON_E_IO,
                 "no socket: %s", strerror(errno));
    c->socket = pair[0];
    send(c->socket, &c->setup, sizeof c->setup, MSG_NOSIGNAL);
    status = start(c, command, pair[1], err);
    close(pair[1]);
    IRON_TRY(status);
    return receive(c, LOAD_SECONDS, &reply, err);
}

/* Prints what the process has said on standard error: a compiler's messages. */
static void pass_on(int file) {
    char text[4096];
    ssize_t got;

    for (off_t at = 0; (got = pread(file, text, sizeof text, at)) > 0; at += got)
        fwrite(text, 1, (size_t)got, stderr);
}

iron_status iron__outside_open(iron__referee *referee, const iron__race_plan *plan,
                               const iron__race_plan_row *row, const char *command,
                               uint32_t threads, double seconds, iron__race_contender **out,
                               iron_error *err) {
    static const iron__race_contender_ops ops = {time_passes, answer, close_contender};
    const iron__op_problem *model = referee->model;
    const iron__race_plan_device *device = &plan->devices[row->device_index];
    iron__defines d = iron__outside_defines(row->outside, &model->c);
    outside_contender *c;
    iron_status status;
    /* three sets of inputs, here and in shared memory, and their references, beside the problem
     * that the others race over */
    uint64_t each = iron__problem_bytes(model, 0) * 2 + model->reference.bytes;
    uint64_t bytes = each * (IRON_OUTSIDE_INPUT_SETS + 1);

    *out = NULL;
    IRON_FAIL_IF(plan->host_bytes && bytes / 7 > plan->host_bytes / 8, err, IRON_E_NOMEM,
                 "three sets of inputs for the referee need %.1f GiB, and this machine has %.1f; "
                 "use a smaller --size",
                 (double)bytes / 0x1p30, (double)plan->host_bytes / 0x1p30);
    IRON_TRY(build(row->outside, &d, device->info.version, err));
    c = calloc(1, sizeof *c);
    if (!c)
        return iron__no_memory(err, "a contender");
    *c = (outside_contender){.base = {.ops = &ops,
                                      .scopes = IRON_BIT(IRON_SCOPE_KERNEL),
                                      .has_cold = !model->c.op->is_never_cold},
                             .referee = referee,
                             .outside = row->outside,
                             .inputs = referee->inputs,
                             .socket = -1,
                             .outputs = -1,
                             .printed = -1,
                             .complaints = -1,
                             .seconds = seconds > RUN_SECONDS ? seconds : RUN_SECONDS};
    fill_setup(c, model, &d, threads);
    c->setup.is_cpu = device->is_cpu;
    c->setup.device = device->index;
    c->setup.text_bytes = device->is_cpu ? 0 : row->outside->bytes;
    snprintf(c->setup.backend, sizeof c->setup.backend, "%s", device->backend);
    c->base.passes_max = c->setup.slots;
    status = open_process(c, command, err);
    if (status == IRON_OK) {
        *out = &c->base;
        return IRON_OK;
    }
    if (!c->setup.is_cpu && c->complaints >= 0)
        pass_on(c->complaints);
    if (c->base.fault == IRON_ROW_SKIPPED)
        status = IRON_E_UNSUPPORTED;
    close_contender(&c->base);
    return status;
}

/* Ops of the user's own: a process for each problem, which the inputs and the reference are shared
 * with. If it dies from an answer that it checks, another one takes its place. */

typedef struct op_process {
    outside_contender child; /* inputs: one set and the reference */
    const char *command;
    char *data;
    size_t data_bytes;
} op_process;

iron_status iron__outside_op_create(const char *path, const char *command, iron__op **out,
                                    iron_error *err) {
    iron__outside_op *o = calloc(1, sizeof *o);
    iron_status status;

    *out = NULL;
    if (!o)
        return iron__no_memory(err, "an op");
    o->command = command ? command : "/proc/self/exe";
    status = iron__outside_read(path, &o->module, err);
    o->module.is_op = true;
    o->module.on = IRON_ON_CPU;
    if (status == IRON_OK)
        o->lines = find_name(&o->module, "new op", o->name, sizeof o->name);
    if (o->lines) {
        o->lines = o->module.is_library ? o->lines : o->module.text;
        status = iron__outside_op_read(o, err);
        if (status == IRON_OK) {
            *out = &o->base;
            return IRON_OK;
        }
    }
    iron__outside_op_free(&o->base);
    return status;
}

void iron__outside_op_free(iron__op *op) {
    iron__outside_deinit(&((iron__outside_op *)op)->module);
    free(op);
}

static iron_status make_problem(op_process *w, iron__op_problem *p, iron_error *err) {
    iron__outside_request q = {.task = IRON_OUTSIDE_GENERATE, .seed = p->c.seed};
    iron__outside_reply reply;
    iron_error why = {IRON_OK, 0, ""};
    iron_status status;
    char *at;
    void *data;

    w->data_bytes = iron__outside_input_bytes(&w->child.setup);
    w->child.inputs = memory_file("iron-problem", w->data_bytes, err);
    if (w->child.inputs < 0)
        return IRON_E_NOMEM;
    data = mmap(NULL, w->data_bytes, PROT_READ, MAP_SHARED, w->child.inputs, 0);
    IRON_FAIL_IF(data == MAP_FAILED, err, IRON_E_NOMEM, "no shared memory: %s", strerror(errno));
    w->data = at = data;
    for (size_t k = 0; k < p->input_count; k++) {
        p->inputs[k].data = at;
        at += iron__outside_round(p->inputs[k].bytes);
    }
    p->reference.data = at;
    status = open_process(&w->child, w->command, &why);
    if (status == IRON_OK)
        status = ask(&w->child, &q, &reply, &why);
    if (status != IRON_OK && w->child.complaints >= 0)
        pass_on(w->child.complaints);
    IRON_FAIL_IF(status != IRON_OK, err, status, "the op's data: %.200s", why.text);
    return IRON_OK;
}

iron_status iron__outside_op_make(iron__op_problem *p, iron__thread_pool *pool, iron_error *err) {
    iron__outside_op *o = (iron__outside_op *)(uintptr_t)p->c.op;
    iron__defines d = iron__outside_defines(&o->module, &p->c);
    iron__outside_sizes sizes;
    iron_status status;
    op_process *w;

    IRON_TRY(iron__outside_op_sizes(&p->c, &sizes, err));
    IRON_TRY(build(&o->module, &d, 0, err));
    w = calloc(1, sizeof *w);
    if (!w)
        return iron__no_memory(err, "a problem");
    w->command = o->command;
    w->child = (outside_contender){.outside = &o->module,
                                   .socket = -1,
                                   .inputs = -1,
                                   .outputs = -1,
                                   .printed = -1,
                                   .complaints = -1,
                                   .seconds = LOAD_SECONDS};
    for (size_t k = 0; k < o->input_count; k++)
        p->inputs[k] =
            (iron__op_array){.name = o->input_names[k], .bytes = (size_t)sizes.inputs[k]};
    p->input_count = o->input_count;
    p->output_bytes = (size_t)sizes.output;
    p->reference = (iron__op_array){.name = "reference", .bytes = (size_t)sizes.reference};
    p->pool = pool;
    p->own = w;
    fill_setup(&w->child, p, &d, iron__thread_pool_threads(pool));
    status = make_problem(w, p, err);
    if (status != IRON_OK)
        iron__outside_op_unmake(p);
    return status;
}

void iron__outside_op_unmake(iron__op_problem *p) {
    op_process *w = p->own;

    if (!w)
        return;
    close_process(&w->child);
    if (w->data)
        munmap(w->data, w->data_bytes);
    if (w->child.inputs >= 0)
        close(w->child.inputs);
    free(w);
    *p = (iron__op_problem){.c = p->c};
}

bool iron__outside_op_check(const iron__op_problem *p, const void *output, char *text,
                            size_t size) {
    op_process *w = p->own;
    iron__outside_request q = {.task = IRON_OUTSIDE_CHECK};
    iron__outside_reply reply = {.status = IRON_OK};
    iron_error why = {IRON_OK, 0, ""};
    iron_status status = IRON_OK;

    if (w->child.pid == 0) {
        close_process(&w->child);
        status = open_process(&w->child, w->command, &why);
    }
    if (status == IRON_OK) {
        memcpy(w->child.shared, output, p->output_bytes);
        status = ask(&w->child, &q, &reply, &why);
    }
    if (status != IRON_OK)
        snprintf(text, size, "%s%.150s",
                 reply.status == IRON_E_MISMATCH ? "" : "the op's check of it failed: ", why.text);
    return status == IRON_OK;
}
