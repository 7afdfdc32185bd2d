/* haulage_copy_file of a 1 KiB file against open, copy_file_range and close by hand, in the working directory.
 *
 *     cc -O2 against_by_hand.c -o /tmp/against_by_hand $(pkg-config --cflags --libs haulage)
 *     cd DIRECTORY && /tmp/against_by_hand
 *
 * Rounds of 1000 copies by each way in turn, 10,000 in all; the lines have the median round of each way and
 * the median of the ratios of the rounds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <haulage.h>

enum { ROUNDS = 10, COPIES = 1000 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_hand(const char *src, const char *dst) {
    int from = open(src, O_RDONLY | O_CLOEXEC);
    int to = open(dst, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t moved;
    if (from < 0 || to < 0)
        return -1;
    while ((moved = copy_file_range(from, NULL, to, NULL, 1 << 20, 0)) > 0)
        ;
    return close(from) | close(to) | (moved < 0 ? -1 : 0);
}

static int by_haulage(const char *src, const char *dst) {
    return haulage_copy_file(src, dst, NULL);
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return (values[ROUNDS / 2 - 1] + values[ROUNDS / 2]) / 2;
}

static void name_of(char *name, size_t bytes, int is_new, int copy) {
    snprintf(name, bytes, is_new ? "against_by_hand.%d" : "against_by_hand.dst", copy);
}

/* The time of a copy in microseconds. New copies are removed outside the timed part. */
static double round_us(int (*way)(const char *, const char *), int is_new) {
    char dst[64];
    double started = now_us(), elapsed;
    for (int copy = 0; copy < COPIES; copy++) {
        name_of(dst, sizeof dst, is_new, copy);
        if (way("against_by_hand.src", dst) != 0) {
            perror(dst);
            exit(1);
        }
    }
    elapsed = now_us() - started;
    for (int copy = 0; is_new && copy < COPIES; copy++) {
        name_of(dst, sizeof dst, is_new, copy);
        unlink(dst);
    }
    return elapsed / COPIES;
}

int main(void) {
    FILE *src = fopen("against_by_hand.src", "w");
    for (int byte = 0; src && byte < 1024; byte++)
        fputc(byte, src);
    if (!src || fclose(src) != 0) {
        perror("against_by_hand.src");
        return 1;
    }
    for (int is_new = 1; is_new >= 0; is_new--) {
        double hand[ROUNDS], haulage[ROUNDS], ratio[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            /* The first of a round changes. */
            if (round % 2 == 0)
                hand[round] = round_us(by_hand, is_new);
            haulage[round] = round_us(by_haulage, is_new);
            if (round % 2 == 1)
                hand[round] = round_us(by_hand, is_new);
            ratio[round] = haulage[round] / hand[round];
        }
        printf("%s: by hand %.1f us, haulage %.1f us, ratio %.2f\n", is_new ? "new file" : "existing file",
               median(hand), median(haulage), median(ratio));
    }
    unlink("against_by_hand.src");
    unlink("against_by_hand.dst");
    return 0;
}
