/* SPDX-License-Identifier: MIT */
/*
 * replay.c: runs files through a fuzz harness, without libFuzzer. The arguments are folders, whose
 * files (not hidden ones) are run in the order of their names, or single files, for debugging a
 * finding. An empty folder or an unreadable file is an error. A finding ends the process; the name
 * of each file is printed before it runs.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static void fail(const char *path) {
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    exit(2);
}

static void run_file(const char *path) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    uint8_t *data;
    size_t size;

    if (!file || fstat(fileno(file), &info) != 0)
        fail(path);
    data = malloc(info.st_size > 0 ? (size_t)info.st_size : 1);
    FUZZ_REQUIRE(data);
    size = fread(data, 1, (size_t)info.st_size, file);
    if (size != (size_t)info.st_size)
        fail(path);
    fclose(file);
    printf("%s (%zu bytes)\n", path, size);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static size_t run_folder(const char *path) {
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_visible, alphasort);

    if (count < 0)
        fail(path);
    for (int k = 0; k < count; k++) {
        char *file = NULL;

        FUZZ_REQUIRE(asprintf(&file, "%s/%s", path, entries[k]->d_name) > 0);
        run_file(file);
        free(file);
        free(entries[k]);
    }
    free(entries);
    return (size_t)count;
}

int main(int argc, char **argv) {
    size_t files = 0;

    for (int k = 1; k < argc; k++) {
        struct stat info;

        if (stat(argv[k], &info) != 0)
            fail(argv[k]);
        if (S_ISDIR(info.st_mode)) {
            files += run_folder(argv[k]);
        } else {
            run_file(argv[k]);
            files++;
        }
    }
    if (files == 0) {
        fprintf(stderr, "replay: no files to run; name a corpus folder that has some\n");
        return 2;
    }
    printf("%zu files\n", files);
    return 0;
}
