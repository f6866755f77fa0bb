/* Files in the MRC format and Fourier transforms, for the kernels of tomography.
 *
 * MRC2014 (Cheng et al., J. Struct. Biol. 192, 2015) is the format of tilt series and volumes in electron
 * tomography: a header of 1024 bytes, then 32-bit reals in the byte order of the machine, x fastest. IMOD,
 * Fiji and ChimeraX read it.
 */
#ifndef TOMOGRAPHY_H
#define TOMOGRAPHY_H

#include "checked.h"
#include <stdint.h>
#include <sys/stat.h>

enum { LANES = 32, HEADER_BYTES = 1024, REALS = 2, MOST = 1 << 14 };

static const double PI = 3.14159265358979323846;

/* The sizes of a tilt series (width, rows, projections) or of a volume (width, thickness, slices). */
struct sizes {
    long x, y, z;
};

static void write_header(int file, const char *path, struct sizes sizes, int is_volume) {
    int32_t words[HEADER_BYTES / 4] = {0};
    const float edges[] = {(float)sizes.x, (float)sizes.y, (float)sizes.z, 90, 90, 90};
    const float unknown[] = {0, -1, -2, -1}; /* minimum, maximum, mean; deviation */
    const unsigned char order[] = {0x44, 0x44, 0, 0}, other_order[] = {0x11, 0x11, 0, 0};
    const uint16_t one = 1;
    words[0] = (int32_t)sizes.x, words[1] = (int32_t)sizes.y, words[2] = (int32_t)sizes.z, words[3] = REALS;
    words[7] = words[0], words[8] = words[1], words[9] = is_volume ? words[2] : 1;
    memcpy(words + 10, edges, sizeof edges);
    words[16] = 1, words[17] = 2, words[18] = 3;
    memcpy(words + 19, unknown, 3 * sizeof *unknown);
    words[22] = is_volume;
    words[27] = 20140;
    memcpy(words + 52, "MAP ", 4);
    memcpy(words + 53, *(const unsigned char *)&one ? order : other_order, 4);
    memcpy(words + 54, unknown + 3, sizeof *unknown);
    write_at(file, path, words, sizeof words, 0);
}

static struct sizes read_header(int file, const char *path) {
    int32_t words[HEADER_BYTES / 4];
    struct stat status;
    read_at(file, path, words, sizeof words, 0);
    if (memcmp(words + 52, "MAP ", 4) != 0 || words[3] != REALS)
        die("%s is not an MRC file of 32-bit reals in the byte order of this machine", path);
    for (int i = 0; i < 3; i++)
        if (words[i] < 1 || words[i] > MOST)
            die("%s has an invalid dimension: %ld", path, (long)words[i]);
    long long expected = HEADER_BYTES + 4LL * words[0] * words[1] * words[2];
    if (fstat(file, &status) != 0)
        die("cannot stat %s: %s", path, strerror(errno));
    if (status.st_size != expected)
        die("%s has %lld bytes, %ld x %ld x %ld values need %lld", path, (long long)status.st_size,
            (long)words[0], (long)words[1], (long)words[2], expected);
    return (struct sizes){words[0], words[1], words[2]};
}

/* LANES sequences are transformed together, so that any compiler vectorises the inner loops. */
typedef float lanes[LANES];

struct transform {
    long length; /* a power of two */
    float *cosines, *sines;
};

static struct transform transform_of(long at_least) {
    struct transform transform = {2, NULL, NULL};
    while (transform.length < at_least)
        transform.length *= 2;
    transform.cosines = allocate((size_t)transform.length / 2, sizeof(float));
    transform.sines = allocate((size_t)transform.length / 2, sizeof(float));
    for (long k = 0; k < transform.length / 2; k++) {
        transform.cosines[k] = (float)cos(2 * PI * (double)k / (double)transform.length);
        transform.sines[k] = (float)sin(2 * PI * (double)k / (double)transform.length);
    }
    return transform;
}

static void swap_lanes(float *restrict a, float *restrict b) {
    for (int l = 0; l < LANES; l++) {
        float kept = a[l];
        a[l] = b[l], b[l] = kept;
    }
}

static void reverse_bits(lanes *values, long length) {
    for (long i = 1, j = 0; i < length; i++) {
        long bit = length / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j)
            swap_lanes(values[i], values[j]);
    }
}

static void butterfly(float *restrict re0, float *restrict im0, float *restrict re1, float *restrict im1,
                      float c, float s) {
    for (int l = 0; l < LANES; l++) {
        float re = c * re1[l] - s * im1[l], im = c * im1[l] + s * re1[l];
        re1[l] = re0[l] - re, im1[l] = im0[l] - im;
        re0[l] += re, im0[l] += im;
    }
}

/* Transform in place, radix 2 (Cooley and Tukey 1965); sign -1 is forward, 1 backward; without scaling. */
static void fourier(const struct transform *by, lanes *re, lanes *im, int sign) {
    reverse_bits(re, by->length);
    reverse_bits(im, by->length);
    for (long half = 1; half < by->length; half *= 2)
        for (long start = 0; start < by->length; start += 2 * half)
            for (long k = 0; k < half; k++) {
                long turn = k * (by->length / 2 / half), i = start + k, j = i + half;
                butterfly(re[i], im[i], re[j], im[j], by->cosines[turn], (float)sign * by->sines[turn]);
            }
}

#endif
