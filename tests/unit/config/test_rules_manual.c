/* tests/unit/config/test_rules_manual.c: the examples of docs/rules.md: each loads, and its tests
 * hold. */
#include "rules_help.h"

#include "cache/policy.h"

static char *whole_file(const char *path)
{
    enum { ROOM = 1 << 20 };
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = xcalloc(1, ROOM);
    assert_true(fread(text, 1, ROOM - 1, file) < ROOM - 1);
    fclose(file);
    return text;
}

/* A whole file as it is; rules of a site below one. The caller frees it. */
static char *as_file(struct slice example)
{
    char *yaml = NULL;
    size_t size;
    FILE *out = open_memstream(&yaml, &size);
    const char *indent = "";
    if (!slice_has_prefix(example, SLICE("origins:"))) {
        fputs(ORIGINS "sites:\n  - hosts: \"*\"\n    origin: app\n", out);
        indent = "    ";
    }
    while (example.len > 0) {
        size_t line = slice_find(example, '\n');
        fprintf(out, "%s" SLICE_FMT "\n", indent, (int)line, example.ptr);
        size_t taken = line < example.len ? line + 1 : line;
        example = (struct slice){ example.ptr + taken, example.len - taken };
    }
    fclose(out);
    return yaml;
}

static void test_examples(void **state)
{
    (void)state;
    char *page = whole_file("docs/rules.md");
    unsigned count = 0, passed = 0;
    cache_thread_register();
    for (const char *from = page; (from = strstr(from, "```yaml\n")) != NULL; count++) {
        from += strlen("```yaml\n");
        const char *to = strstr(from, "```");
        assert_non_null(to);
        char *yaml = as_file(slice_from(from, to));
        struct config_mistakes mistakes;
        struct rule_test_result result;
        struct config *c = config_load_text("rules.md", slice_of(yaml), &mistakes);
        if (c == NULL)
            fail_msg("%s\n%s", mistakes.lines[0], yaml);
        cache_rule_tests_run(c, stderr, &result);
        if (result.failed > 0)
            fail_msg("%s", yaml);
        passed += result.passed;
        config_mistakes_free(&mistakes);
        config_unref(&c);
        free(yaml);
        from = to + 3;
    }
    cache_thread_unregister();
    assert_true(count >= 4 && passed >= 8);
    free(page);
}

/* Every preset and every item that rules have stands on the page. */
static void test_nothing_is_missing(void **state)
{
    (void)state;
    char *page = whole_file("docs/rules.md");
    for (size_t i = 0; rules_preset_names[i] != NULL; i++) {
        char cell[64];
        snprintf(cell, sizeof cell, "| `%s` |", rules_preset_names[i]);
        if (strstr(page, cell) == NULL)
            fail_msg("%s", cell);
    }
    for (size_t i = 0; i < config_item_count; i++)
        if (slice_has_prefix(slice_of(config_items[i].path), SLICE("sites.*.rules.*.")) &&
            strstr(page, config_item_name(&config_items[i])) == NULL)
            fail_msg("%s", config_items[i].path);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_nothing_is_missing),
    };
    (void)try_request;
    (void)tried_fini;
    (void)rules_load;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
