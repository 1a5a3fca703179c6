/* Where the bytes of a body lie, whatever its length; and the trap of pages that a socket still
 * holds. */
#include "tests/unit/cache/store_help.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

static const struct row {
    uint64_t length;
    bool is_file; /* when known: its last byte lies in the memfd */
} rows[] = {
    { 0, false },     { 1, false },     { 4095, false },   { 4096, false }, { 4097, false },
    { 8192, false },  { 20000, false }, { 65535, false },  { 65536, true }, { 65537, true },
    { 100000, true }, { 262144, true }, { 1048577, true },
};

static void bytes_of_any_length_come_back(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(32), 0, 8);
    for (unsigned known = 0; known < 2; known++) {
        for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
            unsigned number = known * 100 + i;
            assert_true(put(&s, number, rows[i].length, known == 1));
            cache_read_begin();
            struct cache_object *o = find(&s, number);
            assert_non_null(o);
            assert_int_equal(cache_object_state(o), OBJECT_COMPLETE);
            assert_int_equal(cache_object_arrived(o), rows[i].length);
            assert_int_equal(cache_object_length(o), rows[i].length);
            assert_true(body_is_right(o, number, 0, rows[i].length));
            assert_true(rows[i].length < 7 || body_is_right(o, number, 7, rows[i].length));
            assert_int_equal(cache_object_piece(o, rows[i].length).length, 0);
            if (rows[i].length > 0) {
                struct object_piece last = cache_object_piece(o, rows[i].length - 1);
                bool is_file = known == 1 ? rows[i].is_file : rows[i].length > BODY_MEMORY_MAX;
                assert_int_equal(last.mem == NULL, is_file);
                assert_int_equal(last.length, 1);
            }
            cache_read_end();
        }
    }
    store_close(&s);
}

/* A hit on a page whose length was not announced is one piece all the same. */
static void segments_become_one_block(void **state)
{
    (void)state;
    struct store s;
    store_open(&s, MiB(16), 0, 8);
    assert_true(put(&s, 1, 50000, false));
    cache_read_begin();
    assert_int_equal(cache_object_piece(find(&s, 1), 0).length, 50000);
    cache_read_end();
    store_close(&s);
}

/* A reader that holds a piece from before the end keeps it through the end. */
static void a_piece_outlives_the_sealing(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    struct request none;
    struct watcher leader, follower;
    struct cache_fill *f, *same;
    store_open(&s, MiB(16), 0, 8);
    watcher_init(&leader, s.mailbox);
    watcher_init(&follower, s.mailbox);
    const struct headers *h = request_make(&none, NULL, NULL);
    key_make(&s, &k, 5);
    struct object_facts facts = facts_make(-1, SLICE_NONE);
    assert_int_equal(cache_fill_begin(s.cache, &k.key, h, NULL, &leader.reader, &f), FILL_LEAD);
    cache_fill_head(f, &facts);
    append_bytes(f, 5, 0, 9000);
    assert_int_equal(cache_fill_begin(s.cache, &k.key, h, NULL, &follower.reader, &same),
                     FILL_FOLLOW);
    struct object_piece piece = cache_object_piece(cache_fill_object(same), 4096);
    assert_int_equal(piece.length, 4096);
    append_bytes(f, 5, 9000, 3000);
    assert_true(cache_fill_seal(f));
    cache_fill_done(&f);
    watcher_done(&s, &leader);
    cache_settle();
    for (size_t i = 0; i < piece.length; i++)
        assert_int_equal(piece.mem[i], byte_at(5, 4096 + i));
    assert_int_equal(cache_object_length(cache_fill_object(same)), 12000);
    watcher_done(&s, &follower);
    store_close(&s);
}

static void loopback_pair(int pair[2])
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int room = 4 << 20;
    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &length), 0);
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    assert_int_equal(connect(pair[0], (struct sockaddr *)&a, sizeof a), 0);
    pair[1] = accept(listener, NULL, NULL);
    assert_true(pair[1] >= 0);
    assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
    close(listener);
}

/* Queues what the socket takes of the object's body. */
static uint64_t queue_body(int fd, struct cache_object *o, uint64_t length)
{
    uint64_t sent = 0;
    while (sent < length) {
        struct object_piece p = cache_object_piece(o, sent);
        off_t at = (off_t)p.at;
        assert_null(p.mem);
        ssize_t n = sendfile(fd, p.fd, &at, p.length);
        if (n <= 0)
            break;
        sent += (uint64_t)n;
    }
    return sent;
}

/* Pages that wait in a socket are the file's own: a freed range must get a hole and never other
 * bytes. */
static void queued_pages_survive_the_object(void **state)
{
    (void)state;
    struct store s;
    int pair[2];
    store_open(&s, MiB(16), MiB(2), 8);
    loopback_pair(pair);
    assert_true(put(&s, 1, MiB(1), true));
    cache_read_begin();
    uint64_t queued = queue_body(pair[0], find(&s, 1), MiB(1));
    cache_read_end();
    assert_true(queued >= 65536);
    struct key_text k;
    assert_int_equal(cache_purge_key(s.cache, key_make(&s, &k, 1)), 1);
    cache_settle();
    for (unsigned i = 2; i < 12; i++)
        assert_true(put(&s, i, MiB(1), true));
    char *got = malloc(queued);
    char *want = malloc(queued);
    uint64_t have = 0;
    while (have < queued) {
        ssize_t n = recv(pair[1], got + have, queued - have, 0);
        assert_true(n > 0);
        have += (uint64_t)n;
    }
    bytes_make(want, 1, 0, queued);
    assert_memory_equal(got, want, queued);
    free(got);
    free(want);
    close(pair[0]);
    close(pair[1]);
    store_close(&s);
}

/* The hole gives pages back to the system, not only to the figures. */
static void a_dropped_body_leaves_the_memfd(void **state)
{
    (void)state;
    struct store s;
    struct key_text k;
    struct object_piece p;
    store_open(&s, MiB(32), 0, 8);
    assert_true(put(&s, 1, MiB(2), true));
    cache_read_begin();
    p = cache_object_piece(find(&s, 1), 0);
    cache_read_end();
    assert_int_equal(lseek(p.fd, (off_t)p.at, SEEK_DATA), p.at);
    assert_int_equal(usage_settled(&s).body_file_bytes, MiB(2));
    cache_purge_key(s.cache, key_make(&s, &k, 1));
    assert_int_equal(usage_settled(&s).body_file_bytes, 0);
    assert_int_equal(lseek(p.fd, (off_t)p.at, SEEK_DATA), -1);
    assert_int_equal(errno, ENXIO);
    store_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_any_length_come_back),
        cmocka_unit_test(segments_become_one_block),
        cmocka_unit_test(a_piece_outlives_the_sealing),
        cmocka_unit_test(queued_pages_survive_the_object),
        cmocka_unit_test(a_dropped_body_leaves_the_memfd),
    };
    return cmocka_run_group_tests(tests, thread_setup, thread_teardown);
}
