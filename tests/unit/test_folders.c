/* SPDX-License-Identifier: MIT */
/*
 * Folders that a library wrote as one dataset: MDS, and Hugging Face's save_to_disk. Their files
 * come in the order of the library's own list, and nothing else of the folder is read or warned
 * about.
 */
#include "mds_support.h"

#include "io/codec.h"

typedef struct listed {
    char names[1000]; /* relative to the folder, each followed by a blank */
    size_t warnings;
} listed;

static iron_source_options options;

static void count_warning(void *context, const iron_warning *w) {
    assert_int_equal(w->kind, IRON_WARNING_SKIPPED);
    ++*(size_t *)context;
}

static iron_status try_list(const folder *f, const char *name, listed *out, iron_error *err) {
    file_name path = name_in(f, name);
    const char *paths[] = {path.path};
    iron_source_options o = options;
    iron_input_files *files;
    iron_status status;

    *out = (listed){.warnings = 0};
    o.struct_size = sizeof o;
    o.paths = paths;
    o.path_count = 1;
    o.warn = count_warning;
    o.warn_context = &out->warnings;
    status = iron_input_files_list(&o, &files, err);
    for (size_t k = 0; status == IRON_OK && k < iron_input_files_count(files); k++) {
        const char *at = iron_input_files_at(files, k);

        assert_int_equal(strncmp(at, f->path, strlen(f->path)), 0);
        strcat(out->names, at + strlen(f->path) + 1);
        strcat(out->names, " ");
    }
    iron_input_files_destroy(files);
    return status;
}

static void assert_lists(const folder *f, const char *name, const char *names) {
    iron_error err;
    listed l;

    assert_ok(try_list(f, name, &l, &err), &err);
    assert_string_equal(l.names, names);
    assert_int_equal(l.warnings, 0);
}

static void assert_list_fails(const folder *f, const char *name, iron_status expected,
                              const char *word) {
    iron_error err;
    listed l;

    assert_refused(try_list(f, name, &l, &err), expected, &err);
    assert_says(&err, word);
}

static void make_folder(const folder *f, const char *name) {
    assert_int_equal(mkdir(name_in(f, name).path, 0700), 0);
}

#define SHARD(raw) "{\"raw_data\": {\"basename\": \"" raw "\"}, \"zip_data\": null}"
#define ZIPPED(raw, zip)                                                                           \
    "{\"raw_data\": {\"basename\": \"" raw "\"}, \"zip_data\": {\"basename\": \"" zip "\"}}"

/* Shards in the order of the index, raw or compressed, in subfolders, also if they are missing. */
static void test_mds(void **state) {
    folder f;

    (void)state;
    folder_make(&f);
    make_folder(&f, "m");
    make_folder(&f, "m/sub");
    save_text(
        &f, "m/index.json",
        "{\"shards\": [" SHARD("b.mds") ", " ZIPPED("a.mds", "a.mds.zstd") ", " ZIPPED(
            "c.mds", "c.mds.zstd") ", " SHARD("sub/d.mds") ", " ZIPPED("e.mds", "e.mds.gz") "]}");
    save_text(&f, "m/b.mds", "x");
    save_text(&f, "m/a.mds.zstd", "x");
    save_text(&f, "m/c.mds", "x");
    save_text(&f, "m/c.mds.zstd", "x");
    save_text(&f, "m/README.md", "hello");
    save_text(&f, "m/unlisted.bin", "x");
    assert_lists(&f, "m", "m/b.mds m/a.mds.zstd m/c.mds m/sub/d.mds m/e.mds ");
    assert_lists(&f, "m/", "m/b.mds m/a.mds.zstd m/c.mds m/sub/d.mds m/e.mds ");
    assert_lists(&f, "m/index.json", "m/b.mds m/a.mds.zstd m/c.mds m/sub/d.mds m/e.mds ");
    {
        const char *exclude[] = {"c.*", "sub/*"}, *include[] = {"*.mds"};

        options.exclude = exclude;
        options.exclude_count = 2;
        assert_lists(&f, "m", "m/b.mds m/a.mds.zstd m/e.mds ");
        options.include = include;
        options.include_count = 1;
        assert_lists(&f, "m", "m/b.mds m/e.mds ");
        include[0] = "*.bin";
        assert_list_fails(&f, "m", IRON_E_ARG, "--include and --exclude");
        options = (iron_source_options){0};
    }
    save_text(&f, "m/index.json", "{\"shards\": [" SHARD("../b.mds") "]}");
    assert_list_fails(&f, "m", IRON_E_FORMAT, "shard 0 of index.json has no basename");
    save_text(&f, "m/index.json", "{\"shards\": []}");
    assert_list_fails(&f, "m", IRON_E_ARG, "has no files: its index.json lists none");
    folder_remove(&f);
}

/* With -r, each dataset stays together among the other files, in natural order of the folders. */
static void test_nested(void **state) {
    folder f;

    (void)state;
    folder_make(&f);
    make_folder(&f, "r");
    make_folder(&f, "r/part-10");
    make_folder(&f, "r/part-2");
    make_folder(&f, "r/part-3");
    save_text(&f, "r/part-10/index.json", "{\"shards\": [" SHARD("z.mds") ", " SHARD("a.mds") "]}");
    save_text(&f, "r/part-2/state.json",
              "{\"_data_files\": [{\"filename\": \"2.arrow\"}, {\"filename\": \"1.arrow\"}]}");
    save_text(&f, "r/part-3/b.bin", "\1");
    save_text(&f, "r/part-3/a.bin", "\1");
    save_text(&f, "r/q.bin", "\1");
    assert_lists(&f, "r", "r/q.bin ");
    options.is_recursive = 1;
    assert_lists(&f, "r",
                 "r/part-2/2.arrow r/part-2/1.arrow r/part-3/a.bin r/part-3/b.bin "
                 "r/part-10/z.mds r/part-10/a.mds r/q.bin ");
    options = (iron_source_options){0};
    folder_remove(&f);
}

static void save_split(const folder *f, const char *name) {
    char path[100];

    make_folder(f, name);
    snprintf(path, sizeof path, "%s/state.json", name);
    save_text(
        f, path,
        "{\"_data_files\": [{\"filename\": \"data-00000-of-00001.arrow\"}], \"_split\": null}");
    snprintf(path, sizeof path, "%s/dataset_info.json", name);
    save_text(f, path, "{}");
    snprintf(path, sizeof path, "%s/data-00000-of-00001.arrow", name);
    save_text(f, path, "ARROW1");
}

static void test_save_to_disk(void **state) {
    folder f;

    (void)state;
    folder_make(&f);
    make_folder(&f, "d");
    save_split(&f, "d/train");
    save_text(&f, "d/dataset_dict.json", "{\"splits\": [\"train\"]}");
    assert_lists(&f, "d/train", "d/train/data-00000-of-00001.arrow ");
    assert_lists(&f, "d", "d/train/data-00000-of-00001.arrow ");
    save_split(&f, "d/a");
    save_text(&f, "d/dataset_dict.json", "{\"splits\": [\"train\", \"a\"]}");
    assert_list_fails(&f, "d", IRON_E_ARG, "has the splits train, a; name ");
    assert_list_fails(&f, "d", IRON_E_ARG, "d/train, or give -r");
    {
        const char *exclude[] = {"a"};

        options.exclude = exclude;
        options.exclude_count = 1;
        assert_lists(&f, "d", "d/train/data-00000-of-00001.arrow ");
        exclude[0] = "train/";
        assert_lists(&f, "d", "d/a/data-00000-of-00001.arrow ");
        options = (iron_source_options){.is_recursive = 1};
    }
    assert_lists(&f, "d", "d/train/data-00000-of-00001.arrow d/a/data-00000-of-00001.arrow ");
    save_text(&f, "d/dataset_dict.json", "{\"splits\": [\"train\", \"b\"]}");
    assert_list_fails(&f, "d", IRON_E_IO, "which dataset_dict.json lists");
    make_folder(&f, "d/b");
    assert_list_fails(&f, "d", IRON_E_FORMAT, "has no state.json");
    options = (iron_source_options){0};
    save_text(&f, "d/dataset_dict.json", "{\"splits\": [\"..\"]}");
    assert_list_fails(&f, "d", IRON_E_FORMAT, "split 0 of dataset_dict.json");
    save_text(&f, "d/train/state.json", "{\"_data_files\": [{\"filename\": \"/x\"}]}");
    assert_list_fails(&f, "d/train", IRON_E_FORMAT, "data file 0 of state.json");
    save_text(&f, "d/train/state.json",
              "{\"_data_files\": [{\"filename\": \"x\"}], "
              "\"_indices_data_files\": [{\"filename\": \"indices.arrow\"}]}");
    assert_list_fails(&f, "d/train", IRON_E_UNSUPPORTED, "flatten_indices");
    folder_remove(&f);
}

/* Files of these names that are something else do not make a folder a dataset. */
static void test_others(void **state) {
    static const char *const texts[] = {
        "{}", "[]", "7", "{\"shards\": 1}", "{\"_data_files\": {}}", "{\"splits\": \"train\"}"};
    iron_error err;
    listed l;
    folder f;

    (void)state;
    folder_make(&f);
    make_folder(&f, "o");
    save_text(&f, "o/a.bin", "\1\2\3\4");
    for (size_t k = 0; k < COUNT(texts); k++) {
        save_text(&f, "o/index.json", texts[k]);
        save_text(&f, "o/state.json", texts[k]);
        save_text(&f, "o/dataset_dict.json", texts[k]);
        assert_ok(try_list(&f, "o", &l, &err), &err);
        assert_string_equal(l.names, "o/a.bin ");
        assert_int_equal(l.warnings, 3);
    }
    save_text(&f, "o/dataset_dict.json", "{"); /* it may have been one */
    assert_refused(try_list(&f, "o", &l, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "dataset_dict.json is not valid JSON");
    save_text(&f, "o/state.json", "");
    assert_refused(try_list(&f, "o", &l, &err), IRON_E_FORMAT, &err);
    assert_says(&err, "state.json is not valid JSON");
    folder_remove(&f);
}

/* Compressed files count as tokens, unless their name or what is inside says otherwise. */
static void test_compressed(void **state) {
    blob text = {.count = 0}, tokens = raw_blob(500, 2), text_gz, tokens_gz;
    iron_error err;
    listed l;
    folder f;

    (void)state;
    for (unsigned k = 0; k < 20; k++)
        put(&text, "This is some text.\n", 19);
    text_gz = gzip_of(&text);
    tokens_gz = gzip_of(&tokens);
    folder_make(&f);
    make_folder(&f, "c");
    save(&f, "c/a.bin.gz", &tokens_gz);
    save(&f, "c/b.txt.gz", &tokens_gz);
    save(&f, "c/c.jsonl.zst", &tokens_gz);
    assert_ok(try_list(&f, "c", &l, &err), &err);
    assert_string_equal(l.names, "c/a.bin.gz ");
    assert_int_equal(l.warnings, 2);
    save(&f, "c/d.gz", &text_gz);
    assert_ok(try_list(&f, "c", &l, &err), &err);
    if (iron__codec_is_there(IRON_CODEC_GZIP)) {
        assert_string_equal(l.names, "c/a.bin.gz ");
        assert_int_equal(l.warnings, 3);
    }
    folder_remove(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mds),          cmocka_unit_test(test_nested),
        cmocka_unit_test(test_save_to_disk), cmocka_unit_test(test_others),
        cmocka_unit_test(test_compressed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
