/* tests/unit/proxy/test_h1_response.c: response heads and their framing (RFC 9112 4 and 6.3), as
 * rows with their section. */
#include "tests/unit/proxy/h1_rows.h"

/* "minor status reason body connection" */
#define OK "HTTP/1.1 200 OK\r\n"
#define GOOD_TO(method, section, bytes, text)                                                      \
    {                                                                                              \
        section, SLICE_INIT(bytes), H1_DONE, H1_OK, text, 0, METHOD_##method, false                \
    }
static const struct row response_rows[] = {
    GOOD("9112 4", OK "Content-Length: 3\r\n\r\nabc", "1 200 <OK> 3 keep"),
    GOOD("9112 4", "HTTP/1.1 404 Not  Found\t\x80!\r\nContent-Length: 0\r\n\r\n",
         "1 404 <Not  Found\t\x80!> 0 keep"),
    GOOD("9112 4", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "1 200 <> 0 keep"),
    GOOD("9112 4", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "1 200 <> 0 keep"),
    GOOD("9112 4", "HTTP/1.0 200 OK\r\n\r\n", "0 200 <OK> close close"),
    GOOD("9110 2.5", "HTTP/1.7 200 OK\r\nContent-Length: 0\r\n\r\n", "1 200 <OK> 0 keep"),
    GOOD("9110 15", "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", "1 999 <Odd> 0 keep"),
    FAULTY_BY("9110 15", "HTTP/1.1 0", "99 Odd\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/1.1  ", "200 OK\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/1.1 20 ", "OK\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/1.1 2000", " OK\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/1.1 200\t", "OK\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/1.1 2x", "0 OK\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/1.1\r\n", "\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/2", " 200\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "I", "CY 200 OK\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "h", "ttp/1.1 200 OK\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "\r\n", OK "\r\n", STATUS_LINE),
    FAULTY_BY("9112 4", "<", "html>", STATUS_LINE),
    FAULTY_BY("9112 4", "HTTP/1.1 200 O\x00", "K\r\n\r\n", STATUS_LINE),
    FAULTY_BY("9112 2.2", "HTTP/1.1 200 OK\n", "\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "HTTP/1.1 200 O\rK", "\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "HTTP/1.1 200\n", "\r\n", BARE_LINE_END),
    FAULTY_BY("9112 5.1", OK "Server ", ": x\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5.2", OK "Server: x\r\n ", "y\r\n\r\n", FOLD),
    FAULTY_BY("9110 5.5", OK "Server: x\x00", "\r\n\r\n", FIELD_VALUE),
    FAULTY("9110 5.4", OK "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n\r\n",
           FIELDS_MANY),
    /* RFC 9112 6.3, in its order */
    GOOD_TO(HEAD, "9112 6.3 (1)", OK "Content-Length: 3\r\n\r\n", "1 200 <OK> none keep"),
    GOOD_TO(HEAD, "9112 6.3 (1)", OK "Transfer-Encoding: chunked\r\n\r\n", "1 200 <OK> none keep"),
    GOOD_TO(HEAD, "9112 6.3 (1)", OK "\r\n", "1 200 <OK> none keep"),
    GOOD("9112 6.3 (1)", "HTTP/1.1 100 Continue\r\n\r\n", "1 100 <Continue> none keep"),
    GOOD("9112 6.3 (1)", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
         "1 103 <Early Hints> none keep"),
    GOOD("9112 6.3 (1)", "HTTP/1.1 204 No Content\r\n\r\n", "1 204 <No Content> none keep"),
    GOOD("9112 6.3 (1)", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
         "1 204 <No Content> none keep"),
    GOOD("9112 6.3 (1)", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
         "1 204 <No Content> none close"),
    GOOD("9112 6.3 (1)", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
         "1 204 <No Content> none close"),
    GOOD("9112 6.3 (1)", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
         "1 304 <Not Modified> none keep"),
    GOOD_TO(CONNECT, "9112 6.3 (2)",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: y\r\n\r\n",
            "1 200 <OK> none close"),
    GOOD_TO(CONNECT, "9112 6.3 (2)", "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n",
            "1 403 <No> 2 keep"),
    FAULTY("9112 6.3 (3)", OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
           LENGTH_AND_CHUNKED),
    GOOD("9112 6.3 (4)", OK "Transfer-Encoding: Chunked\r\n\r\n", "1 200 <OK> chunked keep"),
    FAULTY("9112 6.3 (4)", OK "Transfer-Encoding: gzip, chunked\r\n\r\n", CODING),
    FAULTY("9112 6.3 (4)", OK "Transfer-Encoding: gzip\r\n\r\n", CODING),
    FAULTY("9112 6.3 (4)", OK "Transfer-Encoding: chunked, chunked\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.3 (5)", OK "Content-Length: x\r\n\r\n", LENGTH),
    FAULTY("9112 6.3 (5)", OK "Content-Length: 5, 6\r\n\r\n", LENGTH),
    FAULTY("9112 6.3 (5)", OK "Content-Length: 5,\r\n\r\n", LENGTH),
    FAULTY("9112 6.3 (5)", OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", LENGTH),
    FAULTY("9112 6.3 (5)", OK "Content-Length:\r\n\r\n", LENGTH),
    FAULTY("9112 6.3 (5)", "HTTP/1.1 204 No\r\nContent-Length: x\r\n\r\n", LENGTH),
    GOOD("9112 6.3 (5)", OK "Content-Length: 5, 5\r\n\r\n", "1 200 <OK> 5 keep"),
    GOOD("9112 6.3 (5)", OK "Content-Length: 5\r\nContent-Length: 05,5\r\n\r\n",
         "1 200 <OK> 5 keep"),
    GOOD("9112 6.3 (6)", OK "Content-Length: 9223372036854775807\r\n\r\n",
         "1 200 <OK> 9223372036854775807 keep"),
    FAULTY("9112 6.3 (6)", OK "Content-Length: 9223372036854775808\r\n\r\n", LENGTH),
    GOOD("9112 6.3 (8)", OK "\r\n", "1 200 <OK> close close"),
    GOOD("9112 6.3 (8)", OK "Connection: keep-alive\r\n\r\n", "1 200 <OK> close close"),
    /* the connection */
    GOOD("9112 9.3", OK "Content-Length: 0\r\nConnection: close\r\n\r\n", "1 200 <OK> 0 close"),
    GOOD("9112 9.3", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "0 200 <OK> 0 close"),
    GOOD("9112 9.3", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n",
         "0 200 <OK> 0 keep"),
    GOOD("9112 9.3", OK "Content-Length: 0\r\nConnection: close, keep-alive\r\n\r\n",
         "1 200 <OK> 0 close"),
    SHORT("9112 2", ""),
    SHORT("9112 2", "HTTP/1."),
    SHORT("9112 2", "HTTP/1.1 200"),
    SHORT("9112 2", "HTTP/1.1 200\r"),
    SHORT("9112 2", "HTTP/1.1 200 a reason"),
    SHORT("9112 2", OK "Content-Length: 5\r\n"),
};

static void read_head(struct reading *x, struct slice bytes, const struct row *row)
{
    headers_init(&x->response.headers, x->fields, FIELDS_MAX);
    x->result = h1_read_response(&x->response, bytes, row->asked,
                                 row->is_wide ? &wide_limits : &limits, &x->cause);
}

static void describe_head(const struct reading *x, char out[TEXT_MAX])
{
    const struct h1_response *r = &x->response;
    char body[32];
    describe_body(body, sizeof body, r->framing, r->length);
    snprintf(out, TEXT_MAX, "%u %u <" SLICE_FMT "> %s %s", r->minor, r->status,
             SLICE_ARG(r->reason), body, r->keeps_alive ? "keep" : "close");
}

static void test_responses(void **state)
{
    (void)state;
    assert_int_equal(check_rows(response_rows, ARRAY_COUNT(response_rows)), 0);
}

static void test_dripping_is_linear(void **state)
{
    (void)state;
    check_drip_is_linear("HTTP/1.1 200 ", 'z');
    check_drip_is_linear(OK "X: ", 'z');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_responses),
        cmocka_unit_test(test_dripping_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
