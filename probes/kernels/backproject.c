/* The kernel of PreCo: filtered back projection of some slices of a tilt series.
 *
 *   backproject SERIES SLAB FIRST END THICKNESS TILT_DEGREES
 *
 * SERIES is an MRC file of projections at equal steps from -TILT_DEGREES to TILT_DEGREES, parallel beam,
 * tilt axis along its columns. SLAB receives the slices from FIRST to END (exclusive), THICKNESS rows each.
 * The slab that contains slice 0 starts with the header of the whole volume: the concatenation of all slabs
 * is an MRC file.
 *
 * Method: Kak and Slaney, Principles of Computerized Tomographic Imaging (IEEE Press 1988), section 3.3. A
 * Fourier transform, padded to at least twice the length, convolves each row with the band-limited ramp (eq.
 * 61). A voxel is the sum over all projections of the filtered row at the intersection of the voxel's ray
 * and the detector, linearly interpolated, 0 outside.
 *
 * LANES slices are processed together. They have the same geometry, so the inner loop runs over neighbours
 * in memory, without gather instructions. Memory use does not depend on the number of slices.
 *
 * Prints "slices FIRST END read R filter F backproject B write W seconds S", times in seconds. An error ends
 * the program with a message and status 1.
 */
#include "tomography.h"

enum { TILE = 32, STRIP = 32 };

/* State of all blocks of slices. `filtered` has, for every projection, `width` + 2 `margin` positions of
 * LANES values; the margins are 0, so that every voxel's ray ends at a valid position. */
struct job {
    int series, slab;
    const char *series_path, *slab_path;
    struct sizes sizes; /* of the series */
    long thickness, margin;
    double *cosines, *sines; /* of the tilts */
    struct transform transform;
    float *ramp;
    lanes *filtered, *re, *im;
    float *rows, *strip;
    double read_seconds, filter_seconds, backproject_seconds, write_seconds;
};

/* Return the transform of the ramp for detector pixels of width `pixel`, multiplied by the scale of the
 * inverse transform and by the angle `step` between projections. */
static float *ramp_of(const struct transform *transform, double pixel, double step) {
    long length = transform->length;
    lanes *re = allocate((size_t)length, sizeof *re), *im = allocate((size_t)length, sizeof *im);
    float *ramp = allocate((size_t)length, sizeof *ramp);
    re[0][0] = 0.25f;
    for (long k = 1; k < length; k += 2) {
        double distance = (double)(k < length / 2 ? k : length - k);
        re[k][0] = (float)(-1 / (PI * PI * distance * distance));
    }
    fourier(transform, re, im, -1);
    for (long k = 0; k < length; k++)
        ramp[k] = (float)(re[k][0] * step / pixel / (double)length);
    free(re);
    free(im);
    return ramp;
}

/* Return how many pixels the rays of the volume's corners end beyond the detector. */
static long margin_of(const struct job *job) {
    double reach = 0, x = (double)(job->sizes.x - 1) / 2, y = (double)(job->thickness - 1) / 2;
    for (long p = 0; p < job->sizes.z; p++)
        reach = fmax(reach, x * job->cosines[p] + y * fabs(job->sines[p]));
    return (long)ceil(fmax(reach - x, 0)) + 2 + TILE; /* the last tile of a row may extend beyond the volume */
}

static void prepare(struct job *job, double tilt_degrees) {
    long width = job->sizes.x, projections = job->sizes.z;
    double step = 2 * tilt_degrees * PI / 180 / (double)(projections - 1);
    job->cosines = allocate((size_t)projections, sizeof(double));
    job->sines = allocate((size_t)projections, sizeof(double));
    for (long p = 0; p < projections; p++) {
        job->cosines[p] = cos(step * ((double)p - (double)(projections - 1) / 2));
        job->sines[p] = sin(step * ((double)p - (double)(projections - 1) / 2));
    }
    job->margin = margin_of(job);
    job->transform = transform_of(2 * width);
    job->ramp = ramp_of(&job->transform, 2 / (double)width, step);
    job->filtered = allocate((size_t)(projections * (width + 2 * job->margin)), sizeof(lanes));
    job->re = allocate((size_t)job->transform.length, sizeof(lanes));
    job->im = allocate((size_t)job->transform.length, sizeof(lanes));
    job->rows = allocate((size_t)(LANES * width), sizeof(float));
    job->strip = allocate((size_t)(LANES * STRIP * width), sizeof(float));
}

/* Load the rows of `count` slices in one projection, one per lane. */
static void load(struct job *job, long first, long count, long projection, lanes *positions) {
    double began = now();
    long width = job->sizes.x;
    off_t offset = HEADER_BYTES + 4 * (off_t)width * (projection * job->sizes.y + first);
    read_at(job->series, job->series_path, job->rows, (size_t)(count * width) * sizeof(float), offset);
    for (long i = 0; i < width; i++)
        for (long l = 0; l < LANES; l++)
            positions[i][l] = l < count ? job->rows[l * width + i] : 0;
    job->read_seconds += now() - began;
}

static void store(struct job *job, lanes *positions, long projection) {
    long width = job->sizes.x, begin = projection * (width + 2 * job->margin) + job->margin;
    memcpy(job->filtered + begin, positions, (size_t)width * sizeof(lanes));
}

/* Filter the rows of two projections together: one is the real, the other the imaginary part. */
static void filter_pair(struct job *job) {
    long length = job->transform.length;
    fourier(&job->transform, job->re, job->im, -1);
    for (long k = 0; k < length; k++)
        for (int l = 0; l < LANES; l++) {
            job->re[k][l] *= job->ramp[k];
            job->im[k][l] *= job->ramp[k];
        }
    fourier(&job->transform, job->re, job->im, 1);
}

static void filter(struct job *job, long first, long count) {
    size_t bytes = (size_t)job->transform.length * sizeof(lanes);
    for (long p = 0; p < job->sizes.z; p += 2) {
        int pair = p + 1 < job->sizes.z;
        double began = now(), read_seconds = job->read_seconds;
        memset(job->re, 0, bytes);
        memset(job->im, 0, bytes);
        load(job, first, count, p, job->re);
        if (pair)
            load(job, first, count, p + 1, job->im);
        filter_pair(job);
        store(job, job->re, p);
        if (pair)
            store(job, job->im, p + 1);
        job->filter_seconds += now() - began - (job->read_seconds - read_seconds);
    }
}

static void add_interpolated(float *restrict sum, const float *restrict position, float weight) {
    float other = 1 - weight;
    for (int l = 0; l < LANES; l++)
        sum[l] += other * position[l] + weight * position[LANES + l];
}

/* Compute TILE neighbours of one row of all LANES slices; `left` and `row` are in voxels from the tilt axis. */
static void backproject_tile(const struct job *job, double left, double row, lanes *sums) {
    long positions_each = job->sizes.x + 2 * job->margin;
    double axis = (double)(job->sizes.x - 1) / 2 + (double)job->margin;
    memset(sums, 0, TILE * sizeof *sums);
    for (long p = 0; p < job->sizes.z; p++) {
        double start = left * job->cosines[p] + row * job->sines[p] + axis;
        lanes *positions = job->filtered + p * positions_each + (long)start;
        float slope = (float)job->cosines[p], rest = (float)(start - (double)(long)start);
        for (int i = 0; i < TILE; i++) {
            float position = rest + slope * (float)i;
            int whole = (int)position;
            add_interpolated(sums[i], positions[whole], position - (float)whole);
        }
    }
}

/* Compute some rows of all LANES slices, slice after slice. The order is column by column of tiles: the rays
 * of successive rows meet nearly the same positions, which are then in the processor's cache. */
static void backproject_strip(const struct job *job, long top, long rows) {
    lanes sums[TILE];
    long width = job->sizes.x;
    for (long left = 0; left < width; left += TILE) {
        long count = width - left < TILE ? width - left : TILE;
        for (long row = 0; row < rows; row++) {
            backproject_tile(job, (double)left - (double)(width - 1) / 2,
                             (double)(top + row) - (double)(job->thickness - 1) / 2, sums);
            for (long l = 0; l < LANES; l++)
                for (long i = 0; i < count; i++)
                    job->strip[(l * rows + row) * width + left + i] = sums[i][l];
        }
    }
}

static void write_strip(const struct job *job, off_t slice_offset, long count, long top, long rows) {
    size_t voxels = (size_t)(rows * job->sizes.x);
    off_t slice_bytes = 4 * (off_t)job->sizes.x * job->thickness, offset = 4 * (off_t)job->sizes.x * top;
    for (long l = 0; l < count; l++)
        write_at(job->slab, job->slab_path, job->strip + (size_t)l * voxels, 4 * voxels,
                 slice_offset + l * slice_bytes + offset);
}

static void backproject(struct job *job, off_t slice_offset, long count) {
    for (long top = 0; top < job->thickness; top += STRIP) {
        long rows = job->thickness - top < STRIP ? job->thickness - top : STRIP;
        double began = now();
        backproject_strip(job, top, rows);
        double projected = now();
        write_strip(job, slice_offset, count, top, rows);
        job->backproject_seconds += projected - began;
        job->write_seconds += now() - projected;
    }
}

static void reconstruct(struct job *job, long first, long end) {
    off_t begin = first == 0 ? HEADER_BYTES : 0, slice_bytes = 4 * (off_t)job->sizes.x * job->thickness;
    struct sizes volume = {job->sizes.x, job->thickness, job->sizes.y};
    if (first == 0)
        write_header(job->slab, job->slab_path, volume, 1);
    for (long next = first; next < end; next += LANES) {
        long count = end - next < LANES ? end - next : LANES;
        filter(job, next, count);
        backproject(job, begin + (next - first) * slice_bytes, count);
    }
}

int main(int argc, char **argv) {
    double began = now();
    program = "backproject";
    if (argc != 7)
        die("usage: backproject SERIES SLAB FIRST END THICKNESS TILT_DEGREES");
    struct job job = {.series_path = argv[1], .slab_path = argv[2]};
    job.series = open_or_die(argv[1], O_RDONLY);
    job.sizes = read_header(job.series, argv[1]);
    if (job.sizes.z < 2)
        die("%s has one projection only", argv[1]);
    long first = whole("FIRST", argv[3], 0, job.sizes.y), end = whole("END", argv[4], first, job.sizes.y);
    job.thickness = whole("THICKNESS", argv[5], 1, MOST);
    job.slab = open_or_die(argv[2], O_WRONLY | O_CREAT | O_TRUNC);
    prepare(&job, number("TILT_DEGREES", argv[6], 1, 90));
    reconstruct(&job, first, end);
    close_or_die(job.slab, argv[2]);
    printf("slices %ld %ld read %.6f filter %.6f backproject %.6f write %.6f seconds %.6f\n", first, end,
           job.read_seconds, job.filter_seconds, job.backproject_seconds, job.write_seconds, now() - began);
    finish_output();
    return 0;
}
