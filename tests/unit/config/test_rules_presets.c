/* tests/unit/config/test_rules_presets.c: the presets: each loads, prints and reads back, and does
 * what its own tests say; all of them go together; a site's own rules come behind them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/policy.h"
#include "config/rules_internal.h"

#define APP "origins: { app: { servers: \"http://a:80\" } }\n"

static struct config *load(const char *yaml)
{
    struct config_mistakes mistakes;
    struct config *c = config_load_text("t.yaml", slice_of(yaml), &mistakes);
    for (size_t i = 0; i < mistakes.count; i++)
        print_message("%s\n", mistakes.lines[i]);
    config_mistakes_free(&mistakes);
    assert_non_null(c);
    return c;
}

/* The preset's text as a site of its own, so that its tests are the site's. The caller frees it. */
static char *as_site(const char *text)
{
    char *yaml = NULL;
    size_t size;
    FILE *out = open_memstream(&yaml, &size);
    fputs(APP "sites:\n  - hosts: \"*\"\n    origin: app\n", out);
    struct slice rest = slice_of(text);
    while (rest.len > 0) {
        size_t line = slice_find(rest, '\n');
        fprintf(out, "    " SLICE_FMT "\n", (int)line, rest.ptr);
        size_t taken = line < rest.len ? line + 1 : line;
        rest = (struct slice){ rest.ptr + taken, rest.len - taken };
    }
    fclose(out);
    return yaml;
}

static void test_each_does_what_its_tests_say(void **state)
{
    (void)state;
    for (size_t i = 0; rules_preset_names[i] != NULL; i++) {
        char *yaml = as_site(rules_preset_text(slice_of(rules_preset_names[i])));
        struct config *c = load(yaml);
        struct rule_test_result result;
        cache_thread_register();
        cache_rule_tests_run(c, stderr, &result);
        cache_thread_unregister();
        if (result.failed > 0 || result.passed < 3)
            fail_msg("%s: %u passed, %u failed", rules_preset_names[i], result.passed,
                     result.failed);
        config_unref(&c);
        free(yaml);
    }
}

static void test_all_together(void **state)
{
    (void)state;
    struct config *c =
        load(APP "sites:\n"
                 "  - hosts: \"*\"\n"
                 "    origin: app\n"
                 "    rules: [ { name: mine, match: { path: /mine }, deny: true } ]\n"
                 "    presets: [ wordpress, woocommerce, drupal, magento, static, "
                 "aspnet ]\n");
    const struct config_site *s = &c->sites[0];
    assert_true(s->rule_count > 20);
    assert_string_equal(rule_name(&s->rules[0]), "wordpress-tracking");
    assert_true(strncmp(rule_where(&s->rules[0]), "preset wordpress:", 17) == 0);
    assert_string_equal(rule_name(&s->rules[s->rule_count - 1]), "mine"); /* behind them */
    assert_string_equal(rule_where(&s->rules[s->rule_count - 1]), "t.yaml:5");
    assert_int_equal(s->test_count, 0); /* a preset's are not the site's */
    config_unref(&c);
}

/* No rule of a preset ends the walk: what a site adds for all paths holds for assets, too. */
static void test_none_stops(void **state)
{
    (void)state;
    for (size_t i = 0; rules_preset_names[i] != NULL; i++) {
        char *yaml = as_site(rules_preset_text(slice_of(rules_preset_names[i])));
        struct config *c = load(yaml);
        for (size_t r = 0; r < c->sites[0].rule_count; r++) {
            assert_false(c->sites[0].rules[r].stops);
            assert_int_equal(c->sites[0].rules[r].end, RULE_GO_ON);
            assert_non_null(c->sites[0].rules[r].name);
        }
        config_unref(&c);
        free(yaml);
    }
}

static void test_unknown_name(void **state)
{
    (void)state;
    struct config_mistakes mistakes;
    assert_null(config_load_text(
        "t", SLICE(APP "sites: [ { hosts: a, origin: app, presets: [ wordpres ] } ]"), &mistakes));
    assert_int_equal(mistakes.count, 1);
    assert_string_equal(mistakes.lines[0],
                        "t:2:46: sites[0].presets[0]: \"wordpres\" is none of them; allowed: "
                        "wordpress, woocommerce, drupal, magento, static or aspnet; did you mean "
                        "wordpress?");
    config_mistakes_free(&mistakes);
    assert_null(rules_preset_text(SLICE("wordpres")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_does_what_its_tests_say),
        cmocka_unit_test(test_all_together),
        cmocka_unit_test(test_none_stops),
        cmocka_unit_test(test_unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
