/* SPDX-License-Identifier: MIT */
/*
 * outside_child.c: the process in which a contender from outside runs; see outside.h. It loads what
 * the parent compiled, and answers requests until the parent ends it.
 *
 * A contender on the CPU is a function of a shared library, which runs in this process: what this
 * process reports is believed no more than the contender is. It has no capabilities, so it cannot
 * read the parent's memory, and its memory is limited.
 *
 * A contender on a GPU is a text with kernels. The text says how they are launched:
 *
 *   iron: scratch BYTES                    one more argument: memory of this size
 *   iron: launch KERNEL THREADS GROUPS     in this order, once each pass
 *
 * with expressions (outside_op.c). Every kernel gets the inputs, the output, the
 * scratch memory if there is some, rows and cols. The code that launches and times is iron's own.
 */
#include "arena/outside.h"
#include "core/clock.h"
#include "core/fail.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#if IRON_WITH_PEERS
#include <dlfcn.h>
#endif
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

typedef struct kernel_launch {
    iron__gpu_kernel *kernel;
    uint32_t threads, groups;
} kernel_launch;

typedef struct child {
    iron__outside_setup setup;
    char *inputs; /* only an op may write them */
    char *outputs;
    int (*run)(const iron_peer_case *c);
    struct { /* an op's */
        int (*generate)(const iron_peer_case *c, void *const *inputs, uint64_t seed);
        int (*reference)(const iron_peer_case *c, void *reference);
        int (*check)(const iron_peer_case *c, const void *reference, const void *output, char *why,
                     size_t why_size); /* NULL: the reference in every bit */
    } op;
    /* GPU */
    iron__gpu_device *device;
    iron__gpu_program *program;
    iron__gpu_queue *queue;
    iron__gpu_event *begin, *end;
    iron__gpu_buffer *sets[IRON_OUTSIDE_INPUT_SETS][IRON_OP_INPUTS];
    iron__gpu_buffer *slots[IRON_OUTSIDE_SLOTS];
    iron__gpu_buffer *scratch, *cold;
    uint32_t generation[IRON_OUTSIDE_INPUT_SETS];
    kernel_launch launches[IRON_OUTSIDE_LAUNCHES];
    size_t launch_count;
} child;

static char *input_at(const child *c, size_t set, size_t index) {
    char *at = c->inputs + set * iron__outside_set_bytes(&c->setup);

    for (size_t k = 0; k < index; k++)
        at += iron__outside_round(c->setup.input_bytes[k]);
    return at;
}

static char *slot_at(const child *c, size_t slot) {
    return c->outputs + slot * iron__outside_slot_bytes(&c->setup);
}

/* Removes memory from all caches, also those of other cores. */
static void flush_lines(const char *at, size_t bytes) {
    for (size_t k = 0; k < bytes; k += 64) {
#if defined(__x86_64__)
        _mm_clflush(at + k);
#elif defined(__aarch64__)
        __asm__ volatile("dc civac, %0" ::"r"(at + k) : "memory");
#endif
    }
#if defined(__x86_64__)
    _mm_mfence();
#elif defined(__aarch64__)
    __asm__ volatile("dsb sy" ::: "memory");
#endif
}

#define MAPPING_MAX ((size_t)256 << 20)

/* What a contender can have in a cache: the inputs, its output, and the memory and code of this
 * process. Emptying caches of hundreds of megabytes by using as much memory would take longer than
 * the race. */
static void flush_cpu(const child *c, uint8_t set) {
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t begin, end;
    char line[400], *rest;

    flush_lines(input_at(c, set, 0), iron__outside_set_bytes(&c->setup));
    flush_lines(slot_at(c, 0), c->setup.output_bytes);
    while (maps && fgets(line, sizeof line, maps)) { /* "begin-end r-xp ..." */
        begin = strtoul(line, &rest, 16);
        end = strtoul(rest + (*rest == '-'), &rest, 16);
        if (strncmp(rest, " r", 2) == 0 && rest[4] == 'p' && !strstr(line, "[v") &&
            end - begin <= MAPPING_MAX)
            flush_lines((const char *)begin, end - begin);
    }
    if (maps)
        fclose(maps);
}

#if IRON_WITH_PEERS
/* *function, of any type, becomes the library's function of that name. */
static iron_status find_function(void *library, const char *name, const char *parameters,
                                 void *function, iron_error *err) {
    void *symbol = dlsym(library, name);

    IRON_FAIL_IF(!symbol && parameters, err, IRON_E_FORMAT, "it has no function %s(%s)", name,
                 parameters);
    memcpy(function, &symbol, sizeof symbol); /* ISO C has no cast to a function pointer */
    return IRON_OK;
}
#endif

/* Loads the library, and limits what it may do. */
static iron_status load_library(child *c, iron_error *err) {
#if IRON_WITH_PEERS
    struct {
        uint32_t version;
        int pid;
    } header = {0x20080522, 0}; /* version 3: two sets of 32 bits */
    struct {
        uint32_t effective, permitted, inheritable;
    } none[2] = {{0, 0, 0}, {0, 0, 0}};
    const struct rlimit no_core = {0, 0};
    char path[64];
    void *library;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const struct rlimit memory = {c->setup.memory_limit, c->setup.memory_limit};

    setrlimit(RLIMIT_AS, &memory);
#endif
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_capset, &header, none);
    if (c->setup.is_op) /* contenders must not read the reference in its memory */
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", IRON_OUTSIDE_MODULE);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    IRON_FAIL_IF(!library, err, IRON_E_FORMAT, "it cannot be loaded: %.150s", dlerror());
    if (!c->setup.is_op)
        return find_function(library, "iron_run", "const iron_peer_case *", &c->run, err);
    IRON_TRY(find_function(library, "iron_op_generate",
                           "const iron_peer_case *, void *const *, uint64_t", &c->op.generate,
                           err));
    IRON_TRY(find_function(library, "iron_op_reference", "const iron_peer_case *, void *",
                           &c->op.reference, err));
    IRON_TRY(find_function(library, "iron_op_check", NULL, &c->op.check, err));
    IRON_FAIL_IF(
        !c->op.check && c->setup.reference_bytes != c->setup.output_bytes, err, IRON_E_FORMAT,
        "it has no function iron_op_check, and its reference is not as long as the output");
    return IRON_OK;
#else
    (void)c;
    IRON_FAIL(err, IRON_E_UNSUPPORTED, "this build of iron loads no shared libraries");
#endif
}

static iron_peer_case case_of(const child *c, uint8_t set, uint32_t slot) {
    const iron__outside_setup *s = &c->setup;
    iron_peer_case pc = {.struct_size = sizeof pc,
                         .threads = s->threads,
                         .dtype = s->dtype,
                         .rows = s->rows,
                         .cols = s->cols,
                         .vocab = s->vocab,
                         .input_count = s->input_count,
                         .output = slot_at(c, slot),
                         .output_bytes = s->output_bytes};

    memcpy(pc.params, s->params, sizeof pc.params);
    for (uint32_t k = 0; k < s->input_count; k++) {
        pc.inputs[k] = input_at(c, set, k);
        pc.input_bytes[k] = s->input_bytes[k];
    }
    return pc;
}

/* The op's data, or its check. */
static iron_status run_op(child *c, const iron__outside_request *q, iron_error *err) {
    const iron_peer_case pc = case_of(c, 0, 0);
    char *reference = c->inputs + iron__outside_set_bytes(&c->setup), why[160] = "";
    void *inputs[IRON_OP_INPUTS] = {NULL};
    int fault;

    if (q->task == IRON_OUTSIDE_GENERATE) {
        for (uint32_t k = 0; k < c->setup.input_count; k++)
            inputs[k] = input_at(c, 0, k);
        fault = c->op.generate(&pc, inputs, q->seed);
        IRON_FAIL_IF(fault != 0, err, IRON_E_STATE, "iron_op_generate returned %d", fault);
        fault = c->op.reference(&pc, reference);
        IRON_FAIL_IF(fault != 0, err, IRON_E_STATE, "iron_op_reference returned %d", fault);
        return IRON_OK;
    }
    if (c->op.check) {
        fault = c->op.check(&pc, reference, pc.output, why, sizeof why);
        IRON_FAIL_IF(fault != 0, err, IRON_E_MISMATCH, "%.159s",
                     why[0] ? why : "the answer is wrong");
        return IRON_OK;
    }
    for (size_t k = 0; k < pc.output_bytes && k < c->setup.reference_bytes; k++)
        IRON_FAIL_IF(((const char *)pc.output)[k] != reference[k], err, IRON_E_MISMATCH,
                     "byte %zu of the output is 0x%02x instead of 0x%02x", k,
                     ((const unsigned char *)pc.output)[k], (unsigned char)reference[k]);
    return IRON_OK;
}

static iron_status run_cpu(child *c, const iron__outside_request *q, double *ms, iron_error *err) {
    iron_peer_case cases[IRON_OUTSIDE_SLOTS];
    uint64_t start;
    int fault = 0;

    for (uint32_t pass = 0; pass < q->passes; pass++)
        cases[pass] = case_of(c, q->order[pass], pass);
    start = iron__clock_ns();
    for (uint32_t pass = 0; pass < q->passes && fault == 0; pass++)
        fault = c->run(&cases[pass]);
    *ms = (double)(iron__clock_ns() - start) * 1e-6;
    fflush(stdout); /* the parent looks at it */
    IRON_FAIL_IF(fault != 0, err, IRON_E_STATE, "iron_run returned %d", fault);
    return IRON_OK;
}

static iron_status find_launches(child *c, const char *text, iron_error *err) {
    const iron__outside_setup *s = &c->setup;
    const iron__outside_names names = {
        s->rows, s->cols, iron__element_bytes(iron__element_find(s->dtype)), &s->defines};
    char line[200], name[80], threads[60], groups[120];
    uint64_t value;

    if (iron__outside_directive(text, "scratch", line, sizeof line)) {
        IRON_TRY(iron__outside_evaluate(line, &names, 1, UINT64_C(1) << 40, &value, err));
        IRON_TRY(
            iron__gpu_buffer_create(c->device, IRON_GPU_MEMORY_DEVICE, value, &c->scratch, err));
    }
    for (; (text = iron__outside_directive(text, "launch", line, sizeof line)); c->launch_count++) {
        kernel_launch *l = &c->launches[c->launch_count];

        IRON_FAIL_IF(c->launch_count == IRON_OUTSIDE_LAUNCHES, err, IRON_E_FORMAT,
                     "more than %u launches", IRON_OUTSIDE_LAUNCHES);
        IRON_FAIL_IF(sscanf(line, "%79s %59s %119[^\n]", name, threads, groups) != 3, err,
                     IRON_E_FORMAT, "'iron: launch %.80s' is not KERNEL THREADS GROUPS", line);
        IRON_TRY(iron__gpu_kernel_find(c->device, c->program, name, &l->kernel, err));
        IRON_TRY(iron__outside_evaluate(threads, &names, 1, c->device->info.group_threads_max,
                                        &value, err));
        l->threads = (uint32_t)value;
        IRON_TRY(iron__outside_evaluate(groups, &names, 1, INT32_MAX, &value, err));
        l->groups = (uint32_t)value;
    }
    IRON_FAIL_IF(c->launch_count == 0, err, IRON_E_FORMAT,
                 "its text has no line 'iron: launch KERNEL THREADS GROUPS'");
    return IRON_OK;
}

static iron_status load_kernels(child *c, iron_error *err) {
    const iron__outside_setup *s = &c->setup;
    size_t bytes = s->module_bytes + s->text_bytes;
    char *module = calloc(1, bytes + 1); /* zero-terminated */
    iron__gpu_image image = {.name = "contender", .source = module, .is_users = true};
    iron_status status = IRON_OK;

    for (size_t done = 0; module && done < bytes && status == IRON_OK;) {
        ssize_t got = pread(IRON_OUTSIDE_MODULE, module + done, bytes - done, (off_t)done);

        if (got <= 0)
            status = iron__no_memory(err, "a module");
        done += got > 0 ? (size_t)got : 0;
    }
    if (!module)
        return iron__no_memory(err, "a module");
    if (s->is_compiled) {
        image.machine_code = module;
        image.machine_code_end = module + s->module_bytes;
    }
    if (status == IRON_OK)
        status =
            iron__gpu_device_open(iron__gpu_backend_find(s->backend), s->device, &c->device, err);
    if (status == IRON_OK)
        status = iron__gpu_program_load(c->device, &image, &c->program, err);
    if (status == IRON_OK)
        status = find_launches(c, module + s->module_bytes, err);
    free(module);
    IRON_TRY(status);
    IRON_TRY(iron__gpu_queue_create(c->device, &c->queue, err));
    IRON_TRY(iron__gpu_event_create(c->device, &c->begin, err));
    IRON_TRY(iron__gpu_event_create(c->device, &c->end, err));
    for (size_t set = 0; set < IRON_OUTSIDE_INPUT_SETS; set++)
        for (uint32_t k = 0; k < s->input_count; k++)
            IRON_TRY(iron__gpu_buffer_create(c->device, IRON_GPU_MEMORY_DEVICE, s->input_bytes[k],
                                             &c->sets[set][k], err));
    for (uint32_t k = 0; k < s->slots; k++)
        IRON_TRY(iron__gpu_buffer_create(c->device, IRON_GPU_MEMORY_DEVICE, s->output_bytes,
                                         &c->slots[k], err));
    return IRON_OK;
}

static iron_status upload(child *c, const iron__gpu_buffer *to, const void *from, iron_error *err) {
    iron__gpu_copy copy = {.to = to, .from_host = from, .bytes = to->bytes};

    return iron__gpu_copy_bytes(c->queue, &copy, err);
}

static iron_status download(child *c, const iron__gpu_buffer *from, void *to, iron_error *err) {
    iron__gpu_copy copy = {.from = from, .to_host = to, .bytes = from->bytes};

    return iron__gpu_copy_bytes(c->queue, &copy, err);
}

/* Also makes lines that a kernel left as persisting ordinary ones. */
static iron_status prepare_gpu(child *c, const iron__outside_request *q, iron_error *err) {
    const iron__outside_setup *s = &c->setup;

    for (size_t set = 0; set < IRON_OUTSIDE_INPUT_SETS; set++) {
        for (uint32_t k = 0; k < s->input_count && c->generation[set] != q->generation[set]; k++)
            IRON_TRY(upload(c, c->sets[set][k], input_at(c, set, k), err));
        c->generation[set] = q->generation[set];
    }
    for (uint32_t k = 0; k < q->passes; k++)
        IRON_TRY(upload(c, c->slots[k], slot_at(c, k), err));
    if (c->device->info.persisting_bytes_max > 0) {
        c->device->has_persisting_lines = true;
        IRON_TRY(iron__gpu_cache_reserve(c->device, 0, err));
    }
    if (q->is_cold && c->device->info.cache_bytes > 0) {
        size_t bytes = 2 * (size_t)c->device->info.cache_bytes / 4 * 4;

        if (!c->cold)
            IRON_TRY(
                iron__gpu_buffer_create(c->device, IRON_GPU_MEMORY_DEVICE, bytes, &c->cold, err));
        IRON_TRY(iron__gpu_clear(c->queue, c->cold, 0, bytes, err));
    }
    return iron__gpu_queue_wait(c->queue, err);
}

static iron_status run_gpu(child *c, const iron__outside_request *q, double *ms, iron_error *err) {
    IRON_TRY(iron__gpu_event_record(c->queue, c->begin, err));
    for (uint32_t pass = 0; pass < q->passes; pass++) {
        const iron__outside_setup *s = &c->setup;
        iron__gpu_arg args[IRON_OP_INPUTS + 4];
        size_t count = 0;

        for (uint32_t k = 0; k < s->input_count; k++)
            args[count++] = IRON_GPU_BUFFER(c->sets[q->order[pass]][k]);
        args[count++] = IRON_GPU_BUFFER(c->slots[pass]);
        if (c->scratch)
            args[count++] = IRON_GPU_BUFFER(c->scratch);
        args[count++] = IRON_GPU_VALUE(s->rows);
        args[count++] = IRON_GPU_VALUE(s->cols);
        for (const kernel_launch *l = c->launches; l < c->launches + c->launch_count; l++) {
            const iron__gpu_launch launch = {.kernel = l->kernel,
                                             .groups = {l->groups},
                                             .threads = {l->threads},
                                             .args = args,
                                             .arg_count = count};

            IRON_TRY(iron__gpu_run(c->queue, &launch, err));
        }
    }
    IRON_TRY(iron__gpu_event_record(c->queue, c->end, err));
    IRON_TRY(iron__gpu_queue_wait(c->queue, err));
    return iron__gpu_event_elapsed(c->device, c->begin, c->end, ms, err);
}

static iron_status fetch_gpu(child *c, const iron__outside_request *q, iron_error *err) {
    char *to = slot_at(c, c->setup.slots);

    if (q->task == IRON_OUTSIDE_FETCH)
        for (uint32_t k = 0; k < q->passes; k++)
            IRON_TRY(download(c, c->slots[k], slot_at(c, k), err));
    else
        for (uint32_t k = 0; k < c->setup.input_count; k++) {
            IRON_TRY(download(c, c->sets[q->order[0]][k], to, err));
            to += iron__outside_round(c->setup.input_bytes[k]);
        }
    return iron__gpu_queue_wait(c->queue, err);
}

static iron_status obey(child *c, const iron__outside_request *q, double *ms, iron_error *err) {
    if (c->setup.is_op)
        return run_op(c, q, err);
    if (q->task == IRON_OUTSIDE_PREPARE) {
        if (!c->setup.is_cpu)
            return prepare_gpu(c, q, err);
        if (q->is_cold)
            flush_cpu(c, q->order[0]);
        return IRON_OK;
    }
    if (q->task == IRON_OUTSIDE_RUN)
        return c->setup.is_cpu ? run_cpu(c, q, ms, err) : run_gpu(c, q, ms, err);
    return c->setup.is_cpu ? IRON_OK : fetch_gpu(c, q, err);
}

static bool set_up(child *c) {
    size_t inputs, outputs;
    void *in, *out;

    if (recv(IRON_OUTSIDE_SOCKET, &c->setup, sizeof c->setup, 0) != (ssize_t)sizeof c->setup)
        return false;
    inputs = iron__outside_input_bytes(&c->setup);
    outputs = iron__outside_output_bytes(&c->setup);
    in = mmap(NULL, inputs, PROT_READ | (c->setup.is_op ? PROT_WRITE : 0), MAP_SHARED,
              IRON_OUTSIDE_INPUTS, 0);
    out = mmap(NULL, outputs, PROT_READ | PROT_WRITE, MAP_SHARED, IRON_OUTSIDE_OUTPUTS, 0);
    madvise(in, inputs, MADV_HUGEPAGE); /* a wish: where the system grants it to shared memory */
    c->inputs = in;
    c->outputs = out;
    return in != MAP_FAILED && out != MAP_FAILED;
}

/* Replies once when the contender is loaded, then to each request. */
int iron_arena_contender_main(void) {
    child c = {.launch_count = 0};
    iron__outside_request q = {.number = 0};
    iron_error err = {IRON_OK, 0, ""};
    iron__outside_reply reply = {.number = 0};

    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    syscall(SYS_close_range, IRON_OUTSIDE_MODULE + 1, ~0u, 0); /* what the parent has open */
    if (!set_up(&c))
        return 2;
    reply.status = c.setup.is_cpu ? load_library(&c, &err) : load_kernels(&c, &err);
    for (;;) {
        snprintf(reply.text, sizeof reply.text, "%.199s", err.text);
        if (send(IRON_OUTSIDE_SOCKET, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply ||
            recv(IRON_OUTSIDE_SOCKET, &q, sizeof q, 0) != (ssize_t)sizeof q)
            return 2;
        err = (iron_error){IRON_OK, 0, ""};
        reply = (iron__outside_reply){.number = q.number};
        reply.status = obey(&c, &q, &reply.ms, &err);
    }
}
