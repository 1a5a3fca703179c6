/* tests/fuzz/run_corpus.c: runs a fuzz entry over stored inputs, for builds without libFuzzer.
 *
 * Arguments are files, and directories whose files are taken (hidden ones and directories in them
 * are not). Prints how many ran. Non-zero when an argument is missing, cannot be read or is an
 * empty directory: a corpus that went astray must not look like one that passed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    return false;
}

/* The input lies in an allocation of exactly its size, so that the sanitizer sees a read past its
 * end. */
static bool run_bytes(FILE *file, size_t len)
{
    uint8_t *bytes = malloc(len == 0 ? 1 : len);
    bool whole = bytes != NULL && fread(bytes, 1, len, file) == len;
    if (whole)
        LLVMFuzzerTestOneInput(bytes, len);
    free(bytes);
    return whole;
}

static bool run_file(const char *path, const struct stat *about, unsigned *count)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return complain(path, strerror(errno));
    bool whole = run_bytes(file, (size_t)about->st_size);
    fclose(file);
    if (!whole)
        return complain(path, "cannot be read whole");
    (*count)++;
    return true;
}

static bool run_directory(const char *path, unsigned *count)
{
    struct dirent **entries;
    int found = scandir(path, &entries, NULL, alphasort);
    if (found < 0)
        return complain(path, strerror(errno));
    unsigned before = *count;
    bool all = true;
    for (int i = 0; i < found; i++) {
        char name[4096];
        struct stat about;
        int len = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        bool hidden = entries[i]->d_name[0] == '.';
        free(entries[i]);
        if (hidden)
            continue;
        if (len >= (int)sizeof name || stat(name, &about) != 0)
            all = complain(name, "cannot be read");
        else if (S_ISREG(about.st_mode))
            all = run_file(name, &about, count) && all;
    }
    free(entries);
    return *count > before ? all : complain(path, "holds no inputs");
}

static bool run_path(const char *path, unsigned *count)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return complain(path, strerror(errno));
    return S_ISDIR(about.st_mode) ? run_directory(path, count) : run_file(path, &about, count);
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    bool all = argc > 1 ? true : complain(argv[0], "name the files or directories to run");
    for (int i = 1; i < argc; i++)
        all = run_path(argv[i], &count) && all;
    printf("%s: %u inputs ran\n", argv[0], count);
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
