/* tests/unit/proxy/test_h1.c: request heads, as rows with their section. */
#include "tests/unit/proxy/h1_rows.h"

#define LINE "GET / HTTP/1.1\r\n"
#define HEAD LINE "Host: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"

/* "METHOD form minor authority path query body connection", '-' for what is not there. */
static const struct row request_rows[] = {
    /* the line */
    GOOD("9112 3", HEAD "\r\n", "GET origin 1 a / - none keep"),
    GOOD("9112 3", HEAD "\r\nGET /next", "GET origin 1 a / - none keep"),
    GOOD("9112 3", "HEAD /a/b?c=d&e?f HTTP/1.1\r\nHost: a:80\r\n\r\n",
         "HEAD origin 1 a:80 /a/b c=d&e?f none keep"),
    GOOD("9112 3", "GET /? HTTP/1.1\r\nHost: a\r\n\r\n", "GET origin 1 a / <> none keep"),
    GOOD("9112 3", "GET //x/../y HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET origin 1 a //x/../y - none keep"),
    GOOD("9112 3", "GET /\"<>\\^`{|}[]% HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET origin 1 a /\"<>\\^`{|}[]% - none keep"),
    GOOD("9112 3.1", "PURGE / HTTP/1.1\r\nHost: a\r\n\r\n", "PURGE origin 1 a / - none keep"),
    GOOD("9112 3.1", "get / HTTP/1.1\r\nHost: a\r\n\r\n", "other:get origin 1 a / - none keep"),
    GOOD("9112 3.1", "M!#$%&'*+-.^_`|~9 / HTTP/1.1\r\nHost: a\r\n\r\n",
         "other:M!#$%&'*+-.^_`|~9 origin 1 a / - none keep"),
    GOOD("9112 3.1", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 / HTTP/1.1\r\nHost: a\r\n\r\n",
         "other:ABCDEFGHIJKLMNOPQRSTUVWXYZ012345 origin 1 a / - none keep"),
    FAULTY_BY("9112 3.1", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456", " / HTTP/1.1\r\nHost: a\r\n\r\n",
              METHOD_LONG),
    GOOD("9112 2.2", "\r\n" HEAD "\r\n", "GET origin 1 a / - none keep"),
    GOOD("9112 2.2", "\r\n\r\n" HEAD "\r\n", "GET origin 1 a / - none keep"),
    FAULTY_BY("9112 2.2", "\r\n\r\n\r\n", HEAD "\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.2", "\n", HEAD "\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "\rG", "ET / HTTP/1.1\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "\r\n\n", HEAD "\r\n", BARE_LINE_END),
    FAULTY_BY("9112 3", " ", HEAD "\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET  ", "/ HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET\t", "/ HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET /\t", "HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET /  ", "HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET /a b", " HTTP/1.1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET / HTTP/1.1 ", "\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET /\r\n", "\r\n", REQUEST_LINE), /* HTTP/0.9 */
    FAULTY_BY("9112 3", "GET\r\n", "\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET \r\n", "\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET / \r\n", "\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "\x16", "\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", REQUEST_LINE), /* TLS */
    FAULTY_BY("9112 3", "\x00", "\x01\x02", REQUEST_LINE),
    FAULTY_BY("9112 3", "GE\xc3", "\x89 / HTTP/1.1\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 3", "GET(", "/ HTTP/1.1\r\n\r\n", REQUEST_LINE),
    /* the version */
    GOOD("9112 2.3", "GET / HTTP/1.0\r\n\r\n", "GET origin 0 - / - none close"),
    GOOD("9110 2.5", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9110 2.5", "GET / HTTP/1.9\r\nHost: a\r\n\r\n", "GET origin 1 a / - none keep"),
    FAULTY_BY("9112 2.3", "GET / HTTP/2", ".0\r\nHost: a\r\n\r\n", VERSION),
    FAULTY_BY("9113 3.4", "PRI * HTTP/2", ".0\r\n\r\nSM\r\n\r\n", VERSION),
    FAULTY_BY("9112 2.3", "GET / HTTP/0", ".9\r\nHost: a\r\n\r\n", VERSION),
    FAULTY_BY("9112 2.3", "GET / HTTP/9", ".1\r\nHost: a\r\n\r\n", VERSION),
    FAULTY_BY("9112 2.3", "GET / h", "ttp/1.1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / HTTP/1.10", "\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / HTTP/11", ".1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / HTTP/1,", "1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / HTTP/1\r\n", "Host: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / HTTP/x", ".1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / HTTP/1.x", "\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / HTTP ", "/1.1\r\nHost: a\r\n\r\n", REQUEST_LINE),
    FAULTY_BY("9112 2.3", "GET / I", "CY/1.1\r\n", REQUEST_LINE),
    /* the target */
    GOOD("9112 3.2.2", "GET http://b.example/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET absolute:http 1 b.example /x y none keep"),
    GOOD("9112 3.2.2", "GET HTTPS://b:8443 HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET absolute:HTTPS 1 b:8443 / - none keep"),
    GOOD("9112 3.2.2", "GET http://b?q HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET absolute:http 1 b / q none keep"),
    GOOD("9112 3.2.2", "GET http://b/ HTTP/1.1\r\nHost:\r\n\r\n",
         "GET absolute:http 1 b / - none keep"),
    GOOD("9112 3.2.2", "GET http://[::1]:81/ HTTP/1.0\r\n\r\n",
         "GET absolute:http 0 [::1]:81 / - none close"),
    FAULTY("9112 3.2.2", "GET http://b/ HTTP/1.1\r\n\r\n", HOST),
    FAULTY("9112 3.2.2", "GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n", HOST),
    FAULTY("9112 3.2.2", "GET http://b/ HTTP/1.1\r\nHost: b\r\nHost: b\r\n\r\n", HOST),
    FAULTY("9110 4.2.4", "GET http://u@b/ HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9110 4.2.4", "GET http://u:p@b/ HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9110 4.2.1", "GET http:/// HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9110 4.2.1", "GET http:// HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.2", "GET http:/b/ HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.2", "GET http://b:x/ HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.2", "GET http://b:65536/ HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.2", "GET ftp://b/ HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY_BY("9112 3.2", "GET b/c HTTP/1.1\r\n", "Host: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2", "GET ?q HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY_BY("9112 3.2", "GET /a#", "b HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY_BY("9112 3.2", "GET /\x00", " HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY_BY("9112 3.2", "GET /\x7f", " HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY_BY("9112 3.2", "GET /\x80", " HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY_BY("9112 3.2", "GET /\xc3", "\xa9 HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY_BY("9112 3.2", "GET /\x0b", " HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    GOOD("9112 3.2.3", "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n",
         "CONNECT authority 1 b:443 - - none keep"),
    FAULTY("9112 3.2.3", "CONNECT b HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.3", "CONNECT b: HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.3", "CONNECT / HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.3", "CONNECT http://b:80/ HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    FAULTY("9112 3.2.3", "GET b:443 HTTP/1.1\r\nHost: b\r\n\r\n", TARGET),
    GOOD("9112 3.2.4", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
         "OPTIONS asterisk 1 a * - none keep"),
    GOOD("9112 3.2.4", "OPTIONS http://b:81 HTTP/1.1\r\nHost: a\r\n\r\n",
         "OPTIONS asterisk 1 b:81 * - none keep"),
    GOOD("9112 3.2.4", "OPTIONS http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
         "OPTIONS absolute:http 1 b / - none keep"),
    GOOD("9112 3.2.4", "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
         "OPTIONS asterisk 1 <> * - none keep"),
    FAULTY("9112 3.2.4", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", TARGET),
    FAULTY("9112 3.2.4", "OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n", TARGET),
    /* limits: 60 bytes of target, 8 fields (the head's own limit has a test of its own) */
    GOOD(
        "9112 3",
        "GET /23456789012345678901234567890123456789012345678901234567890 HTTP/1.0\r\n\r\n",
        "GET origin 0 - /23456789012345678901234567890123456789012345678901234567890 - none close"),
    FAULTY_BY("9112 3", "GET /234567890123456789012345678901234567890123456789012345678901",
              " HTTP/1.0\r\n\r\n", TARGET_LONG),
    GOOD("9110 5.4", HEAD "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n\r\n",
         "GET origin 1 a / - none keep"),
    FAULTY_BY("9110 5.4", HEAD "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8", ":\r\n\r\n",
              FIELDS_MANY),
    /* line ends */
    FAULTY_BY("9112 2.2", "GET / HTTP/1.1\n", "Host: a\n\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "GET /\n", "\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "GET\n", "\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "GET / HTTP/1.1\rH", "ost: a\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "GET / HTTP/1.1\r\r", "\nHost: a\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "GET /\ra", " HTTP/1.1\r\nHost: a\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", "GET / HT\n", "TP/1.1\r\nHost: a\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", LINE "Host: a\n", "\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", LINE "Host: a\rX", ": y\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", LINE "Host: a\r\r", "\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", LINE "Ho\n", "st: a\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", LINE "Ho\rs", "t: a\r\n\r\n", BARE_LINE_END),
    FAULTY_BY("9112 2.2", HEAD "\n", "", BARE_LINE_END),
    FAULTY_BY("9112 2.2", HEAD "\rG", "", BARE_LINE_END),
    FAULTY_BY("9112 2.2", HEAD "\r\r", "\n", BARE_LINE_END),
    /* fields */
    GOOD("9112 5", LINE "hOsT:a\r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9112 5", LINE "Host: \t a \t \r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9110 5.5", HEAD "X: caf\xc3\xa9 \x80\xff\t!\r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9110 5.5", HEAD "X:\r\nY:   \r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9110 5.6.2", HEAD "!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n", "GET origin 1 a / - none keep"),
    FAULTY_BY("9112 2.2", LINE " ", "Host: a\r\n\r\n", FOLD),
    FAULTY_BY("9112 2.2", LINE "\t", "Host: a\r\n\r\n", FOLD),
    FAULTY_BY("9112 5.2", HEAD " ", "b\r\n\r\n", FOLD),
    FAULTY_BY("9112 5.2", HEAD "\t", "b\r\n\r\n", FOLD),
    FAULTY_BY("9112 5.2", HEAD " ", "\r\n\r\n", FOLD),
    FAULTY_BY("9112 5.1", LINE "Host ", ": a\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5.1", LINE "Host\t", ": a\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", LINE ":", " a\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", LINE "Host\r\n", "\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", HEAD "X\x00", ": y\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", HEAD "\x00", ": y\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", HEAD "X\xc3", "\xa9: y\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", HEAD "X(", "): y\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", HEAD "\"", "X\": y\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", HEAD "X/", "Y: z\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9112 5", HEAD "X@", ": z\r\n\r\n", FIELD_NAME),
    FAULTY_BY("9110 5.5", HEAD "X: a\x00", "b\r\n\r\n", FIELD_VALUE),
    FAULTY_BY("9110 5.5", HEAD "X: a\x01", "b\r\n\r\n", FIELD_VALUE),
    FAULTY_BY("9110 5.5", HEAD "X: a\x0b", "b\r\n\r\n", FIELD_VALUE),
    FAULTY_BY("9110 5.5", HEAD "X: a\x1f", "b\r\n\r\n", FIELD_VALUE),
    FAULTY_BY("9110 5.5", HEAD "X: a\x7f", "b\r\n\r\n", FIELD_VALUE),
    FAULTY_BY("9110 5.5", HEAD "X: 0123456789abcdef0123456789abcdef012\x08",
              "345678901234567890\r\n\r\n", FIELD_VALUE),
    FAULTY_BY("9110 5.5", HEAD "X: 0123456789abcdef\x7f",
              "0123456789abcdef012345678901234567890\r\n\r\n", FIELD_VALUE),
    /* Host */
    GOOD("9112 3.2", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET origin 0 a / - none close"),
    GOOD("9112 3.2", "GET / HTTP/1.0\r\nHost:\r\n\r\n", "GET origin 0 <> / - none close"),
    GOOD("9112 3.2", LINE "Host: a_b-c.example.:65535\r\n\r\n",
         "GET origin 1 a_b-c.example.:65535 / - none keep"),
    GOOD("9112 3.2", LINE "Host: a:\r\n\r\n", "GET origin 1 a: / - none keep"),
    GOOD("9112 3.2", LINE "Host: [2001:db8::1]\r\n\r\n",
         "GET origin 1 [2001:db8::1] / - none keep"),
    FAULTY("9112 3.2", LINE "\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host:\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a\r\nHost: a\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a\r\nX: y\r\nhost: b\r\n\r\n", HOST),
    FAULTY("9112 3.2", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", HOST),
    FAULTY("9112 3.2", "GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a, b\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a,b\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a b\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: u@a\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a/\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: http://a\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a?b\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: :80\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a:65536\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a:80:80\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: a:-1\r\n\r\n", HOST),
    FAULTY("9112 3.2", LINE "Host: \xc3\xa9\r\n\r\n", HOST),
    /* body: Content-Length */
    GOOD("9112 6.2", POST "Content-Length: 5\r\n\r\nhello", "POST origin 1 a / - 5 keep"),
    GOOD("9112 6.2", POST "Content-Length: 0\r\n\r\n", "POST origin 1 a / - 0 keep"),
    GOOD("9112 6.2", POST "Content-Length: 0005\r\n\r\n", "POST origin 1 a / - 5 keep"),
    GOOD("9112 6.3", HEAD "content-length:7 \r\n\r\n", "GET origin 1 a / - 7 keep"),
    GOOD("9112 6.3", POST "\r\n", "POST origin 1 a / - none keep"),
    GOOD("9110 8.6", POST "Content-Length: 9223372036854775807\r\n\r\n",
         "POST origin 1 a / - 9223372036854775807 keep"),
    FAULTY("9110 8.6", POST "Content-Length: 9223372036854775808\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 18446744073709551616\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 99999999999999999999999999\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length:\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: +5\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: -5\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 0x5\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5 5\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5;\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5.0\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: \"5\"\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5, 5\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5,\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", LENGTH),
    FAULTY("9110 8.6", POST "Content-Length: 5\r\nX: y\r\ncontent-length: 6\r\n\r\n", LENGTH),
    /* body: Transfer-Encoding */
    GOOD("9112 6.1", POST "Transfer-Encoding: chunked\r\n\r\n", "POST origin 1 a / - chunked keep"),
    GOOD("9112 7", POST "transfer-encoding:\tCHUNKed \r\n\r\n", "POST origin 1 a / - chunked keep"),
    FAULTY("9112 6.3", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
           LENGTH_AND_CHUNKED),
    FAULTY("9112 6.3", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
           LENGTH_AND_CHUNKED),
    FAULTY("9112 6.3", POST "Content-Length: 5\r\nTransfer-Encoding: x\r\n\r\n",
           LENGTH_AND_CHUNKED),
    FAULTY("9112 6.3", POST "Content-Length: x\r\nTransfer-Encoding:\r\n\r\n", LENGTH_AND_CHUNKED),
    FAULTY("9112 6.1", POST "Transfer-Encoding: gzip\r\n\r\n", CODING),
    FAULTY("9112 6.1", POST "Transfer-Encoding: identity\r\n\r\n", CODING),
    FAULTY("9112 6.1", POST "Transfer-Encoding: gzip, chunked\r\n\r\n", CODING),
    FAULTY("9112 6.1", POST "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
           CODING),
    FAULTY("9112 6.1", POST "Transfer-Encoding: xchunked\r\n\r\n", CODING),
    FAULTY("9112 6.1", POST "Transfer-Encoding: gzip;q=1\r\n\r\n", CODING),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked, chunked\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
           CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
           CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked, identity\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked, gzip\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked,\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: ,chunked\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding:\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: \"chunked\"\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked;a=b\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked chunked\r\n\r\n", CHUNKED_PLACE),
    FAULTY("9112 6.1", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n\r\n",
           CHUNKED_PLACE),
    FAULTY("9112 6.1", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNKED_PLACE),
    /* the connection */
    GOOD("9112 9.3", HEAD "Connection: close\r\n\r\n", "GET origin 1 a / - none close"),
    GOOD("9112 9.3", HEAD "Connection: keep-alive\r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9112 9.3", HEAD "Connection: keep-alive, CLOSE\r\n\r\n", "GET origin 1 a / - none close"),
    GOOD("9112 9.3", HEAD "Connection: close, keep-alive\r\n\r\n", "GET origin 1 a / - none close"),
    GOOD("9112 9.3", HEAD "Connection: keep-alive\r\nConnection: x,close\r\n\r\n",
         "GET origin 1 a / - none close"),
    GOOD("9112 9.3", HEAD "Connection: closed\r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9112 9.3", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
         "GET origin 0 - / - none keep"),
    GOOD("9112 9.3", "GET / HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n",
         "GET origin 0 - / - none close"),
    GOOD("9112 9.3", "GET / HTTP/1.0\r\nKeep-Alive: 5\r\n\r\n", "GET origin 0 - / - none close"),
    GOOD("9110 7.8", HEAD "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
         "GET origin 1 a / - none keep upgrade"),
    GOOD("9110 7.8", HEAD "Connection: keep-alive, upgrade\r\nUpgrade: h2c\r\n\r\n",
         "GET origin 1 a / - none keep upgrade"),
    GOOD("9110 7.8", HEAD "Upgrade: websocket\r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9110 7.8", HEAD "Connection: upgrade\r\n\r\n", "GET origin 1 a / - none keep"),
    GOOD("9110 7.8", "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
         "GET origin 0 - / - none close"),
    GOOD("9110 10.1.1", POST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n",
         "POST origin 1 a / - 1 keep continue"),
    GOOD("9110 10.1.1", POST "Expect: x\r\n\r\n", "POST origin 1 a / - none keep unknown-expect"),
    GOOD("9110 10.1.1", POST "Expect: 100-continue, x=y\r\n\r\n",
         "POST origin 1 a / - none keep continue unknown-expect"),
    GOOD("9110 10.1.1", "POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
         "POST origin 0 - / - none close"),
    /* not all there */
    SHORT("9112 2", ""),
    SHORT("9112 2", "\r"),
    SHORT("9112 2", "\r\n\r\nG"),
    SHORT("9112 2", "GET"),
    SHORT("9112 2", "GET /a"),
    SHORT("9112 2", "GET /a\r"),
    SHORT("9112 2", "GET / HTTP/1.1"),
    SHORT("9112 2", "GET / HTTP/1.1\r"),
    SHORT("9112 2", HEAD),
    SHORT("9112 2", HEAD "X"),
    SHORT("9112 2", HEAD "X\r"),
    SHORT("9112 2", HEAD "X: y\r"),
    SHORT("9112 2", HEAD "\r"),
};

static void read_head(struct reading *x, struct slice bytes, const struct row *row)
{
    headers_init(&x->request.headers, x->fields, FIELDS_MAX);
    x->result = h1_read_request(&x->request, bytes,
                                row != NULL && row->is_wide ? &wide_limits : &limits, &x->cause);
}

static const char *or_dash(struct slice s, char room[TEXT_MAX])
{
    if (s.ptr == NULL)
        return "-";
    if (s.len == 0)
        return "<>";
    snprintf(room, TEXT_MAX, SLICE_FMT, SLICE_ARG(s));
    return room;
}

static void describe_head(const struct reading *x, char out[TEXT_MAX])
{
    const struct h1_request *r = &x->request;
    static const char *const methods[] = { "other:",
#define X(m) #m,
                                           H1_METHODS(X)
#undef X
    };
    static const char *const forms[] = { "origin", "absolute:", "authority", "asterisk" };
    char authority[TEXT_MAX], path[TEXT_MAX], query[TEXT_MAX], body[32];
    describe_body(body, sizeof body, r->framing, r->length);
    struct slice method = r->method == METHOD_OTHER ? r->method_text : SLICE_NONE;
    struct slice scheme = r->form == FORM_ABSOLUTE ? r->scheme : SLICE_NONE;
    snprintf(out, TEXT_MAX, "%s" SLICE_FMT " %s" SLICE_FMT " %u %s %s %s %s %s%s%s%s",
             methods[r->method], SLICE_ARG(method), forms[r->form], SLICE_ARG(scheme), r->minor,
             or_dash(r->authority, authority), or_dash(r->path, path), or_dash(r->query, query),
             body, r->keeps_alive ? "keep" : "close", r->expects_continue ? " continue" : "",
             r->has_unknown_expect ? " unknown-expect" : "", r->is_upgrade ? " upgrade" : "");
}

static void test_requests(void **state)
{
    (void)state;
    assert_int_equal(check_rows(request_rows, ARRAY_COUNT(request_rows)), 0);
}

/* Names and values come out where they are, known names with their ids, repeats linked. */
static void test_fields_are_slices_of_the_head(void **state)
{
    (void)state;
    struct slice bytes = SLICE("GET /p?q HTTP/1.1\r\nhost: h\r\nCookie: a\r\nX-Own:\t x y "
                               "\t\r\ncookie:b\r\nEmpty:\r\n\r\nrest");
    struct reading x = { .result = H1_MORE };
    read_head(&x, bytes, NULL);
    assert_int_equal(x.result, H1_DONE);
    assert_int_equal(x.request.head_bytes, bytes.len - 4);
    const struct headers *h = &x.request.headers;
    assert_int_equal(h->count, 5);
    const struct header *cookie = headers_find(h, HEADER_COOKIE);
    assert_true(slice_equal(cookie->value, SLICE("a")));
    assert_true(slice_equal(headers_next(h, cookie)->value, SLICE("b")));
    assert_true(slice_equal(h->at[2].name, SLICE("X-Own")));
    assert_int_equal(h->at[2].id, HEADER_OTHER);
    assert_true(slice_equal(h->at[2].value, SLICE("x y")));
    assert_int_equal(h->at[4].value.len, 0);
    for (unsigned i = 0; i < h->count; i++)
        assert_true(h->at[i].name.ptr > bytes.ptr &&
                    h->at[i].value.ptr + h->at[i].value.len < bytes.ptr + bytes.len);
    assert_true(slice_equal(x.request.target, SLICE("/p?q")));
    assert_true(slice_equal(x.request.method_text, SLICE("GET")));
}

/* RFC 9110 5.4: a head of exactly head_bytes is taken; one whose end is not within them is refused
 * as soon as they are full, since nothing that comes could mend it. */
static void test_head_limit(void **state)
{
    (void)state;
    char bytes[700];
    int len = snprintf(bytes, sizeof bytes, HEAD "X: ");
    memset(bytes + len, 'x', sizeof bytes - (size_t)len);
    struct reading x = { .result = H1_MORE };
    for (size_t n = 1; n < limits.head_bytes; n++) {
        read_head(&x, (struct slice){ bytes, n }, NULL);
        assert_int_equal(x.result, H1_MORE);
    }
    struct reading filled = x;
    read_head(&filled, (struct slice){ bytes, limits.head_bytes }, NULL);
    assert_int_equal(filled.result, H1_BAD);
    assert_int_equal(filled.cause, H1_HEAD_LONG);
    x.request.scanned = 0;
    read_head(&x, (struct slice){ bytes, sizeof bytes }, NULL);
    assert_int_equal(x.cause, H1_HEAD_LONG);
    memcpy(bytes + limits.head_bytes - 4, "\r\n\r\n", 4);
    read_head(&x, (struct slice){ bytes, sizeof bytes }, NULL);
    assert_int_equal(x.result, H1_DONE);
    assert_int_equal(x.request.head_bytes, limits.head_bytes);
}

/* A reload may make the limits smaller between two tries: the new ones hold, with nothing read
 * amiss. */
static void test_limits_may_shrink(void **state)
{
    (void)state;
    struct h1_limits now = limits;
    struct reading x = { .result = H1_MORE };
    enum h1_cause cause;
    struct slice target = SLICE("GET /23456789012345678901234567890");
    headers_init(&x.request.headers, x.fields, FIELDS_MAX);
    assert_int_equal(h1_read_request(&x.request, target, &now, &cause), H1_MORE);
    now.target_bytes = 10;
    assert_int_equal(h1_read_request(&x.request, target, &now, &cause), H1_BAD);
    assert_int_equal(cause, H1_TARGET_LONG);
    now = limits;
    x.request.scanned = 0;
    assert_int_equal(h1_read_request(&x.request, SLICE(HEAD "A: b"), &now, &cause), H1_MORE);
    now.head_bytes = 20;
    assert_int_equal(h1_read_request(&x.request, SLICE(HEAD "A: b\r\n\r\n"), &now, &cause), H1_BAD);
    assert_int_equal(cause, H1_HEAD_LONG);
}

/* The storage given bounds the fields too, whatever the limit says. */
static void test_storage_bounds_fields(void **state)
{
    (void)state;
    struct h1_request r = { .scanned = 0 };
    struct header room[2];
    enum h1_cause cause;
    headers_init(&r.headers, room, ARRAY_COUNT(room));
    assert_int_equal(h1_read_request(&r, SLICE(HEAD "A: b\r\n\r\n"), &limits, &cause), H1_DONE);
    assert_int_equal(h1_read_request(&r, SLICE(HEAD "A: b\r\nC: d\r\n\r\n"), &limits, &cause),
                     H1_BAD);
    assert_int_equal(cause, H1_FIELDS_MANY);
}

static void test_dripping_is_linear(void **state)
{
    (void)state;
    check_drip_is_linear("GET /", 'a');
    check_drip_is_linear(HEAD "X", 'a');
    check_drip_is_linear(HEAD "X:", ' ');
    check_drip_is_linear(HEAD "X: y", 'z');
}

static void test_causes_have_status_and_text(void **state)
{
    (void)state;
    assert_int_equal(h1_cause_status(H1_METHOD_LONG), 501);
    assert_int_equal(h1_cause_status(H1_TARGET_LONG), 414);
    assert_int_equal(h1_cause_status(H1_VERSION), 505);
    assert_int_equal(h1_cause_status(H1_HEAD_LONG), 431);
    assert_int_equal(h1_cause_status(H1_HOST), 400);
    for (enum h1_cause c = H1_OK; c < H1_CAUSE_COUNT; c++)
        assert_true(strlen(h1_cause_text(c)) > 0 && h1_cause_status(c) >= 200);
}

/* RFC 9110 9.2.1, 9.2.2 */
static void test_methods(void **state)
{
    (void)state;
    assert_true(h1_method_is_safe(METHOD_GET) && h1_method_is_safe(METHOD_HEAD));
    assert_true(h1_method_is_safe(METHOD_OPTIONS) && h1_method_is_safe(METHOD_TRACE));
    assert_false(h1_method_is_safe(METHOD_POST) || h1_method_is_safe(METHOD_PURGE) ||
                 h1_method_is_safe(METHOD_OTHER));
    assert_true(h1_method_is_idempotent(METHOD_GET) && h1_method_is_idempotent(METHOD_PUT));
    assert_true(h1_method_is_idempotent(METHOD_DELETE));
    assert_false(h1_method_is_idempotent(METHOD_POST) || h1_method_is_idempotent(METHOD_PATCH));
    assert_false(h1_method_is_idempotent(METHOD_CONNECT) || h1_method_is_idempotent(METHOD_OTHER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_fields_are_slices_of_the_head),
        cmocka_unit_test(test_head_limit),
        cmocka_unit_test(test_limits_may_shrink),
        cmocka_unit_test(test_storage_bounds_fields),
        cmocka_unit_test(test_dripping_is_linear),
        cmocka_unit_test(test_causes_have_status_and_text),
        cmocka_unit_test(test_methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
