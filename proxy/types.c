/* proxy/types.c: Content-Type by a file name's ending, in one table sorted by ending. Pure; any
 * thread.
 *
 * Text says its charset: without it browsers guess (RFC 9110 8.3.2). JSON and XML say it themselves
 * (RFC 8259 8.1, RFC 7303 3).
 */
#include "proxy/files_internal.h"

#include <stdlib.h>

#define TEXT(subtype) "text/" subtype "; charset=utf-8"
enum { ENDING_MAX = 12, PACKED = 1, PLAIN = 0 };

/* PACKED: compressed already, so no precompressed siblings are looked for. In strcmp's order. */
static const struct type {
    char ending[ENDING_MAX + 1];
    uint8_t is_packed;
    const char *type;
} types[] = {
    { "3gp", PACKED, "video/3gpp" },
    { "7z", PACKED, "application/x-7z-compressed" },
    { "aac", PACKED, "audio/aac" },
    { "apk", PACKED, "application/vnd.android.package-archive" },
    { "apng", PACKED, "image/apng" },
    { "appcache", PLAIN, TEXT("cache-manifest") },
    { "atom", PLAIN, "application/atom+xml" },
    { "avi", PACKED, "video/x-msvideo" },
    { "avif", PACKED, "image/avif" },
    { "bin", PLAIN, "application/octet-stream" },
    { "bmp", PLAIN, "image/bmp" },
    { "br", PACKED, "application/x-brotli" },
    { "bz2", PACKED, "application/x-bzip2" },
    { "cjs", PLAIN, TEXT("javascript") },
    { "css", PLAIN, TEXT("css") },
    { "csv", PLAIN, TEXT("csv") },
    { "deb", PACKED, "application/vnd.debian.binary-package" },
    { "doc", PLAIN, "application/msword" },
    { "docx", PACKED, "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
    { "eot", PLAIN, "application/vnd.ms-fontobject" },
    { "epub", PACKED, "application/epub+zip" },
    { "flac", PACKED, "audio/flac" },
    { "geojson", PLAIN, "application/geo+json" },
    { "gif", PACKED, "image/gif" },
    { "gz", PACKED, "application/gzip" },
    { "heic", PACKED, "image/heic" },
    { "htm", PLAIN, TEXT("html") },
    { "html", PLAIN, TEXT("html") },
    { "ico", PLAIN, "image/vnd.microsoft.icon" },
    { "ics", PLAIN, TEXT("calendar") },
    { "iso", PLAIN, "application/x-iso9660-image" },
    { "jar", PACKED, "application/java-archive" },
    { "jpeg", PACKED, "image/jpeg" },
    { "jpg", PACKED, "image/jpeg" },
    { "js", PLAIN, TEXT("javascript") },
    { "json", PLAIN, "application/json" },
    { "jsonld", PLAIN, "application/ld+json" },
    { "jxl", PACKED, "image/jxl" },
    { "m3u8", PLAIN, "application/vnd.apple.mpegurl" },
    { "m4a", PACKED, "audio/mp4" },
    { "m4s", PACKED, "video/iso.segment" },
    { "m4v", PACKED, "video/mp4" },
    { "map", PLAIN, "application/json" },
    { "markdown", PLAIN, TEXT("markdown") },
    { "md", PLAIN, TEXT("markdown") },
    { "mid", PLAIN, "audio/midi" },
    { "mjs", PLAIN, TEXT("javascript") },
    { "mkv", PACKED, "video/matroska" },
    { "mov", PACKED, "video/quicktime" },
    { "mp3", PACKED, "audio/mpeg" },
    { "mp4", PACKED, "video/mp4" },
    { "mpd", PLAIN, "application/dash+xml" },
    { "mpeg", PACKED, "video/mpeg" },
    { "mpg", PACKED, "video/mpeg" },
    { "odp", PACKED, "application/vnd.oasis.opendocument.presentation" },
    { "ods", PACKED, "application/vnd.oasis.opendocument.spreadsheet" },
    { "odt", PACKED, "application/vnd.oasis.opendocument.text" },
    { "oga", PACKED, "audio/ogg" },
    { "ogg", PACKED, "audio/ogg" },
    { "ogv", PACKED, "video/ogg" },
    { "opus", PACKED, "audio/ogg" },
    { "otf", PLAIN, "font/otf" },
    { "pdf", PLAIN, "application/pdf" },
    { "png", PACKED, "image/png" },
    { "ppt", PLAIN, "application/vnd.ms-powerpoint" },
    { "pptx", PACKED, "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
    { "ps", PLAIN, "application/postscript" },
    { "rar", PACKED, "application/vnd.rar" },
    { "rdf", PLAIN, "application/rdf+xml" },
    { "rpm", PACKED, "application/x-rpm" },
    { "rss", PLAIN, "application/rss+xml" },
    { "rtf", PLAIN, "application/rtf" },
    { "svg", PLAIN, "image/svg+xml" },
    { "svgz", PACKED, "image/svg+xml" },
    { "tar", PLAIN, "application/x-tar" },
    { "tgz", PACKED, "application/gzip" },
    { "tif", PLAIN, "image/tiff" },
    { "tiff", PLAIN, "image/tiff" },
    { "ts", PACKED, "video/mp2t" },
    { "ttc", PLAIN, "font/collection" },
    { "ttf", PLAIN, "font/ttf" },
    { "txt", PLAIN, TEXT("plain") },
    { "vcf", PLAIN, TEXT("vcard") },
    { "vtt", PLAIN, TEXT("vtt") },
    { "wasm", PLAIN, "application/wasm" },
    { "wav", PLAIN, "audio/wav" },
    { "weba", PACKED, "audio/webm" },
    { "webm", PACKED, "video/webm" },
    { "webmanifest", PLAIN, "application/manifest+json" },
    { "webp", PACKED, "image/webp" },
    { "woff", PACKED, "font/woff" },
    { "woff2", PACKED, "font/woff2" },
    { "xhtml", PLAIN, "application/xhtml+xml" },
    { "xls", PLAIN, "application/vnd.ms-excel" },
    { "xlsx", PACKED, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
    { "xml", PLAIN, "application/xml" },
    { "xsl", PLAIN, "application/xslt+xml" },
    { "xz", PACKED, "application/x-xz" },
    { "yaml", PLAIN, "application/yaml" },
    { "yml", PLAIN, "application/yaml" },
    { "zip", PACKED, "application/zip" },
    { "zst", PACKED, "application/zstd" },
};

static int by_ending(const void *key, const void *row)
{
    return strcmp(key, ((const struct type *)row)->ending);
}

static const struct type *type_find(struct slice name)
{
    char ending[ENDING_MAX + 1];
    size_t length = 0;
    while (length < name.len && name.ptr[name.len - 1 - length] != '.')
        length++;
    if (length == name.len || length == 0 || length > ENDING_MAX)
        return NULL;
    for (size_t i = 0; i < length; i++)
        ending[i] = ascii_lower(name.ptr[name.len - length + i]);
    ending[length] = '\0';
    return bsearch(ending, types, ARRAY_COUNT(types), sizeof *types, by_ending);
}

struct slice files_type_of(struct slice name)
{
    const struct type *t = type_find(name);
    return slice_of(t == NULL ? "application/octet-stream" : t->type);
}

bool files_type_is_packed(struct slice name)
{
    const struct type *t = type_find(name);
    return t != NULL && t->is_packed == PACKED;
}

bool files_types_are_sorted(void)
{
    for (size_t i = 1; i < ARRAY_COUNT(types); i++)
        if (strcmp(types[i - 1].ending, types[i].ending) >= 0)
            return false;
    return true;
}
