/* admin/client_explain.h: an explanation (the answer of POST /explain) in words. */
#ifndef ADMIN_CLIENT_EXPLAIN_H
#define ADMIN_CLIENT_EXPLAIN_H
#include "base/base.h"

#include <jansson.h>
#include <stdio.h>

/* Members that are missing are left out. */
void client_print_explanation(const json_t *explanation, FILE *out);
#endif
