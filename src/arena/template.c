/* SPDX-License-Identifier: MIT */
/*
 * template.c: contenders to begin with, for `iron arena --template`. Each op's folder has two
 * texts: host.template in C, and gpu.template, whose $WORDS become those of OpenCL or CUDA. The
 * build puts them all into one text; a line "@@ histogram.c" or "@@ histogram.gpu" begins each. A
 * part "@@ new-op.host" comes first in every language.
 */
#include <iron/iron_arena.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char iron__templates[];

static const struct {
    const char *name, *cl, *cu;
} words[] = {
    {"$KERNEL", "__kernel void", "extern \"C\" __global__ void"},
    {"$DEVICE", "", "__device__ "},
    {"$IN", "__global const", "const"},
    {"$OUT", "__global ", ""},
    {"$ID", "get_global_id(0)", "blockIdx.x * (size_t)blockDim.x + threadIdx.x"},
    {"$ALL", "get_global_size(0)", "gridDim.x * (size_t)blockDim.x"},
    {"$U64", "ulong", "unsigned long long"},
    {"$U32", "uint", "unsigned int"},
    {"$ADD", "atomic_inc(&", "atomicAdd(&"},
    {"$ONE", "", ", 1"},
    {"$LOCAL", "__local", "__shared__"},
    {"$GROUP", "get_group_id(0)", "blockIdx.x"},
    {"$THREAD", "get_local_id(0)", "threadIdx.x"},
    {"$SYNC", "barrier(CLK_LOCAL_MEM_FENCE)", "__syncthreads()"},
    {"$cl", "cl", "cu"},
};

/* Writes what follows the line "@@ name.part"; false: there is no such line. */
static bool put_part(FILE *to, const char *name, const char *part, bool is_cu) {
    const char *dot = strrchr(name, '.'), *at, *end;
    char mark[64];

    snprintf(mark, sizeof mark, "@@ %.*s%s\n", (int)(dot - name), name, part);
    at = strstr(iron__templates, mark);
    if (!at)
        return false;
    at += strlen(mark);
    end = strstr(at, "@@ ");
    while (*at && at != end) {
        size_t k = 0, count = sizeof words / sizeof words[0];

        while (k < count && strncmp(at, words[k].name, strlen(words[k].name)) != 0)
            k++;
        if (k < count)
            fputs(is_cu ? words[k].cu : words[k].cl, to);
        else
            fputc(*at, to);
        at += k < count ? strlen(words[k].name) : 1;
    }
    return true;
}

char *iron_arena_template(const char *name) {
    const char *dot = strrchr(name, '.');
    bool is_cu = dot && strcmp(dot, ".cu") == 0, is_gpu = is_cu || (dot && strcmp(dot, ".cl") == 0);
    bool is_there;
    char *text = NULL;
    size_t bytes = 0;
    FILE *to;

    if (!dot || (!is_gpu && strcmp(dot, ".c") != 0))
        return NULL;
    to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    put_part(to, name, ".host", is_cu);
    is_there = put_part(to, name, is_gpu ? ".gpu" : ".c", is_cu);
    if (fclose(to) == 0 && is_there)
        return text;
    free(text);
    return NULL;
}
