/* Prints whether it has other rights than its caller's, and which variables of ours it was given.
 */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

extern char** environ;

int main(void) {
    printf("secure %lu", getauxval(AT_SECURE));
    for (char** entry = environ; *entry; ++entry)
        if (strncmp(*entry, "TACHOGRAPH_", 11) == 0 || strncmp(*entry, "LD_PRELOAD", 10) == 0)
            printf(" %.*s", (int)strcspn(*entry, "="), *entry);
    putchar('\n');
    return 5;
}
