/* tests/fuzz/fuzz_tags.c: any fields as an answer's, and what must be true of its tags.
 *
 * Input: fields, one a line, "Name: value". As the reader does, lines with bytes that no field can
 * have are left out, and values lose the white space at their ends.
 */
#include "cache/decide.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { FIELDS = 100 };
static const struct slice origin = SLICE_INIT("h:81"), group_mark = SLICE_INIT("\1h:81\1");

static void add_line(struct headers *h, struct slice line)
{
    size_t colon = slice_find(line, ':');
    if (colon == 0 || colon == line.len)
        return;
    for (size_t i = 0; i < line.len; i++)
        if (((unsigned char)line.ptr[i] < 0x20 && line.ptr[i] != '\t') || line.ptr[i] == 0x7f)
            return;
    struct slice value = slice_trim((struct slice){ line.ptr + colon + 1, line.len - colon - 1 });
    (void)!headers_add(h, (struct slice){ line.ptr, colon }, value);
}

static void read_lines(struct slice in, struct headers *h)
{
    while (in.len > 0) {
        size_t len = slice_find(in, '\n');
        add_line(h, (struct slice){ in.ptr, len });
        size_t taken = len < in.len ? len + 1 : len;
        in.ptr += taken;
        in.len -= taken;
    }
}

static bool is_group(struct slice tag)
{
    return slice_has_prefix(tag, group_mark);
}

static void check_tag(struct slice tag)
{
    for (size_t i = is_group(tag) ? group_mark.len : 0; i < tag.len; i++)
        CHECK((unsigned char)tag.ptr[i] >= 0x20 && tag.ptr[i] != 0x7f);
    CHECK(tag.len > 0 && tag.ptr[tag.len] == '\0');
}

static void check_tags(struct slice tags)
{
    struct slice rest = tags, tag, other;
    size_t count = 0, bytes = 0;
    for (; cache_tags_next(&rest, &tag); count++) {
        check_tag(tag);
        bytes += tag.len + 1;
        for (struct slice behind = rest; cache_tags_next(&behind, &other);)
            CHECK(!slice_equal(tag, other));
    }
    CHECK(count <= TAGS_MAX && tags.len <= TAGS_BYTES_MAX && bytes == tags.len);
}

/* The tags that are no groups, given as those of rules, are the same again. */
static void check_again(struct arena *a, struct slice tags)
{
    char *plain = malloc(tags.len + 1);
    size_t len = 0;
    struct slice rest = tags, tag;
    struct headers none;
    headers_init(&none, NULL, 0);
    while (cache_tags_next(&rest, &tag))
        if (!is_group(tag)) {
            memcpy(plain + len, tag.ptr, tag.len + 1);
            len += tag.len + 1;
        }
    struct slice more = { plain, len };
    CHECK(slice_equal(cache_tags_make(a, &none, origin, more), more));
    free(plain);
}

/* Groups written as a list of strings read back the same. */
static void check_groups(struct arena *a, struct slice groups)
{
    char *list = malloc(groups.len * 3 + 1);
    size_t len = 0;
    struct slice rest = groups, tag;
    while (cache_tags_next(&rest, &tag)) {
        CHECK(is_group(tag));
        list[len] = len == 0 ? ' ' : ',';
        len++;
        list[len++] = '"';
        for (size_t i = group_mark.len; i < tag.len; i++) {
            if (tag.ptr[i] == '"' || tag.ptr[i] == '\\')
                list[len++] = '\\';
            list[len++] = tag.ptr[i];
        }
        list[len++] = '"';
    }
    struct header row;
    struct headers h;
    headers_init(&h, &row, 1);
    CHECK(headers_add(&h, SLICE("Cache-Groups"), (struct slice){ list, len }));
    CHECK(slice_equal(cache_tags_make(a, &h, origin, SLICE_NONE), groups));
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct header storage[FIELDS];
    struct headers h;
    struct arena a;
    unsigned left_out;
    headers_init(&h, storage, FIELDS);
    read_lines((struct slice){ (const char *)bytes, len }, &h);
    arena_init(&a);
    struct slice tags = cache_tags_make_counted(&a, &h, origin, SLICE_NONE, &left_out);
    check_tags(tags);
    check_again(&a, tags);
    struct slice groups = cache_groups_invalidated(&a, &h, origin);
    check_tags(groups);
    check_groups(&a, groups);
    arena_fini(&a);
    return 0;
}
