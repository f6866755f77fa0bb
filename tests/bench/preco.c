/* The arithmetic of PreCo's kernel as a plain loop over a slice's voxels, slices shared by OpenMP's threads.
 *
 *   preco SERIES VOLUME TILT_DEGREES
 *
 * Reads the series whole, whose number of rows in all must divide by LANES, and writes a cube. Only files and
 * the Fourier transform are the kernel's own.
 */
#include "tomography.h"

static lanes *ramp_of(const struct transform *transform, double scale) {
    lanes *re = allocate((size_t)transform->length, sizeof *re);
    lanes *im = allocate((size_t)transform->length, sizeof *im);
    re[0][0] = (float)(0.25 * scale);
    for (long k = 1; k < transform->length; k += 2) {
        double distance = (double)(k < transform->length / 2 ? k : transform->length - k);
        re[k][0] = (float)(-scale / (PI * PI * distance * distance));
    }
    fourier(transform, re, im, -1);
    free(im);
    return re;
}

/* LANES neighbouring rows at once. */
static void filter(float *rows, long width, const struct transform *transform, lanes *ramp, lanes *re,
                   lanes *im) {
    memset(re, 0, (size_t)transform->length * sizeof *re);
    memset(im, 0, (size_t)transform->length * sizeof *im);
    for (long l = 0; l < LANES; l++)
        for (long i = 0; i < width; i++)
            re[i][l] = rows[l * width + i];
    fourier(transform, re, im, -1);
    for (long k = 0; k < transform->length; k++)
        for (long l = 0; l < LANES; l++)
            re[k][l] *= ramp[k][0], im[k][l] *= ramp[k][0];
    fourier(transform, re, im, 1);
    for (long l = 0; l < LANES; l++)
        for (long i = 0; i < width; i++)
            rows[l * width + i] = re[i][l];
}

/* `row` has a zero more at both ends; the places that a voxel's ray meets are counted from the first. */
static void add_projection(float *restrict slice, const float *restrict row, long width, double c, double s) {
    double axis = (double)(width - 1) / 2;
    for (long y = 0; y < width; y++) {
        double start = s * ((double)y - axis) - c * axis + axis + 1;
        long first = (long)fmax(ceil(-start / c), 0);
        long end = (long)fmin(ceil(((double)width + 1 - start) / c), (double)width);
        float begin = (float)start, slope = (float)c;
        for (long x = first; x < end; x++) {
            float place = begin + slope * (float)x;
            int whole = (int)place;
            float weight = place - (float)whole;
            slice[y * width + x] += (1 - weight) * row[whole] + weight * row[whole + 1];
        }
    }
}

int main(int argc, char **argv) {
    program = "preco";
    if (argc != 4)
        die("usage: preco SERIES VOLUME TILT_DEGREES");
    int in = open_or_die(argv[1], O_RDONLY), out = open_or_die(argv[2], O_WRONLY | O_CREAT | O_TRUNC);
    struct sizes sizes = read_header(in, argv[1]);
    long width = sizes.x, values = sizes.x * sizes.y * sizes.z;
    double step = 2 * number("TILT_DEGREES", argv[3], 1, 90) * PI / 180 / (double)(sizes.z - 1);
    struct transform transform = transform_of(2 * width);
    lanes *ramp = ramp_of(&transform, step * (double)width / 2 / (double)transform.length);
    float *series = allocate((size_t)values, sizeof *series);
    read_at(in, argv[1], series, (size_t)values * sizeof *series, HEADER_BYTES);
    write_header(out, argv[2], (struct sizes){width, width, sizes.y}, 1);
#pragma omp parallel
    {
        lanes *re = allocate((size_t)transform.length, sizeof *re);
        lanes *im = allocate((size_t)transform.length, sizeof *im);
        float *slice = allocate((size_t)(width * width), sizeof *slice);
        float *row = allocate((size_t)width + 3, sizeof *row);
#pragma omp for
        for (long first = 0; first < values / width; first += LANES)
            filter(series + first * width, width, &transform, ramp, re, im);
#pragma omp for
        for (long z = 0; z < sizes.y; z++) {
            memset(slice, 0, (size_t)(width * width) * sizeof *slice);
            for (long p = 0; p < sizes.z; p++) {
                double tilt = step * ((double)p - (double)(sizes.z - 1) / 2);
                memcpy(row + 1, series + (p * sizes.y + z) * width, (size_t)width * sizeof *row);
                add_projection(slice, row, width, cos(tilt), sin(tilt));
            }
            size_t bytes = (size_t)(width * width) * sizeof *slice;
            write_at(out, argv[2], slice, bytes, HEADER_BYTES + (off_t)bytes * z);
        }
    }
    close_or_die(out, argv[2]);
    return 0;
}
