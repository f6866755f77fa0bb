/* The phantom of PreCo: compute projections, draw it in voxels, compare a reconstruction with it.
 *
 *   phantom project SERIES SIZE PROJECTIONS TILT_DEGREES
 *   phantom draw VOLUME SIZE THICKNESS
 *   phantom compare VOLUME TILT_DEGREES
 *
 * The phantom is the three-dimensional head phantom of Kak and Slaney, Principles of Computerized
 * Tomographic Imaging (IEEE Press 1988), page 102, after Shepp and Logan, IEEE Trans. Nucl. Sci. 21 (1974)
 * 21-43: ten ellipsoids in the cube from -1 to 1. The tilt axis is z, the beam is along y at tilt 0. A
 * detector of SIZE x SIZE pixels spans the cube; a voxel is as large as a pixel.
 *
 * project: write projections at equal steps from -TILT_DEGREES to TILT_DEGREES. Every pixel is the integral
 * along the line through its centre, in closed form (op. cit., section 3.1).
 *
 * compare: print "slices N compared M correlation C plain P". C is Pearson's correlation of the volume with
 * the phantom without the missing wedge: without the spatial frequencies more than TILT_DEGREES from the
 * detector, which the projections do not measure (Fourier slice theorem). This reference is a Fourier filter
 * of the phantom's voxels, independent of the reconstruction; the volume itself is not filtered. The
 * comparison covers the cylinder that every projection covers, in at most 32 slices at equal distances. P is
 * the correlation with the complete phantom in all slices.
 *
 * An error ends the program with a message and status 1.
 */
#include "tomography.h"

enum { ELLIPSOIDS = 10, COMPARED = 32 };

/* Centre, half axes, rotation about z in degrees, density added inside. */
static const struct ellipsoid {
    double x, y, z, a, b, c, degrees, density;
} PHANTOM[ELLIPSOIDS] = {
    {0, 0, 0, 0.69, 0.92, 0.9, 0, 2},
    {0, 0, 0, 0.6624, 0.874, 0.88, 0, -0.98},
    {-0.22, 0, -0.25, 0.41, 0.16, 0.21, 108, -0.02},
    {0.22, 0, -0.25, 0.31, 0.11, 0.22, 72, -0.02},
    {0, 0.35, -0.25, 0.21, 0.25, 0.5, 0, 0.02},
    {0, 0.1, -0.25, 0.046, 0.046, 0.046, 0, 0.02},
    {-0.08, -0.65, -0.25, 0.046, 0.023, 0.02, 0, 0.01},
    {0.06, -0.65, -0.25, 0.046, 0.023, 0.02, 90, 0.01},
    {0.06, -0.105, 0.625, 0.056, 0.04, 0.1, 90, 0.02},
    {0, 0.1, 0.625, 0.056, 0.056, 0.1, 0, -0.02},
};

/* Return the centre of one of `count` cells of width 2 / size, which are centred on 0 together. */
static double centre_of(long index, long count, long size) {
    return (2.0 * (double)index + 1.0 - (double)count) / (double)size;
}

/* Return the square of an ellipsoid's extent at height z relative to its largest one; at most 0 outside. */
static double squared_extent(const struct ellipsoid *e, double z) {
    double height = (z - e->z) / e->c;
    return 1 - height * height;
}

/* Find the range of `size` cells whose centres are in [from, to]. */
static void cells_between(double from, double to, long size, long *first, long *end) {
    double scale = (double)size / 2;
    *first = (long)fmax(ceil((from + 1) * scale - 0.5), 0);
    *end = (long)fmin(floor((to + 1) * scale - 0.5) + 1, (double)size);
}

static void add_projected(float *row, long size, const struct ellipsoid *e, double z, double tilt) {
    double extent = squared_extent(e, z), turned = tilt - e->degrees * PI / 180;
    if (extent <= 0)
        return;
    double a = e->a * cos(turned), b = e->b * sin(turned), squared_width = a * a + b * b;
    double centre = e->x * cos(tilt) + e->y * sin(tilt), reach = sqrt(extent * squared_width);
    double factor = 2 * e->density * e->a * e->b / squared_width;
    long first, end;
    cells_between(centre - reach, centre + reach, size, &first, &end);
    for (long i = first; i < end; i++) {
        double t = centre_of(i, size, size) - centre;
        row[i] += (float)(factor * sqrt(fmax(extent * squared_width - t * t, 0)));
    }
}

static void project(const char *path, long size, long projections, double tilt_degrees) {
    int file = open_or_die(path, O_WRONLY | O_CREAT | O_TRUNC);
    size_t bytes = (size_t)(size * size) * sizeof(float);
    float *image = allocate(1, bytes);
    write_header(file, path, (struct sizes){size, size, projections}, 0);
    for (long p = 0; p < projections; p++) {
        double tilt = tilt_degrees * PI / 180 * centre_of(p, projections, projections - 1);
        memset(image, 0, bytes);
        for (long row = 0; row < size; row++)
            for (int e = 0; e < ELLIPSOIDS; e++)
                add_projected(image + row * size, size, PHANTOM + e, centre_of(row, size, size), tilt);
        write_at(file, path, image, bytes, HEADER_BYTES + (off_t)bytes * p);
    }
    free(image);
    close_or_die(file, path);
}

/* Add an ellipsoid to a row of voxels: its density where its quadratic form is at most 1. */
static void add_row(float *row, long size, const struct ellipsoid *e, double y, double extent) {
    double c = cos(e->degrees * PI / 180), s = sin(e->degrees * PI / 180), dy = y - e->y;
    double aa = 1 / (e->a * e->a), bb = 1 / (e->b * e->b);
    double xx = c * c * aa + s * s * bb, xy = c * s * (aa - bb), yy = s * s * aa + c * c * bb;
    double root = xy * xy * dy * dy - xx * (yy * dy * dy - extent);
    if (root < 0)
        return;
    long first, end;
    double centre = e->x - xy * dy / xx, reach = sqrt(root) / xx;
    cells_between(centre - reach, centre + reach, size, &first, &end);
    for (long i = first; i < end; i++)
        row[i] += (float)e->density;
}

/* Draw one slice: sizes.y rows of sizes.x voxels, the rows `stride` apart. */
static void draw_slice(float *slice, long stride, struct sizes sizes, long index) {
    double z = centre_of(index, sizes.z, sizes.x);
    for (long row = 0; row < sizes.y; row++) {
        memset(slice + row * stride, 0, (size_t)sizes.x * sizeof *slice);
        for (int e = 0; e < ELLIPSOIDS; e++) {
            double extent = squared_extent(PHANTOM + e, z);
            if (extent > 0)
                add_row(slice + row * stride, sizes.x, PHANTOM + e, centre_of(row, sizes.y, sizes.x), extent);
        }
    }
}

static void draw(const char *path, long size, long thickness) {
    int file = open_or_die(path, O_WRONLY | O_CREAT | O_TRUNC);
    struct sizes sizes = {size, thickness, size};
    size_t bytes = (size_t)(size * thickness) * sizeof(float);
    float *slice = allocate(1, bytes);
    write_header(file, path, sizes, 1);
    for (long z = 0; z < size; z++) {
        draw_slice(slice, size, sizes, z);
        write_at(file, path, slice, bytes, HEADER_BYTES + (off_t)bytes * z);
    }
    free(slice);
    close_or_die(file, path);
}

/* A square complex image of two slices: one is the real, the other the imaginary part. */
struct plane {
    struct transform transform;
    float *re, *im;
    lanes *re_columns, *im_columns;
};

static struct plane plane_of(long at_least) {
    struct plane plane = {.transform = transform_of(at_least < LANES ? LANES : at_least)};
    size_t length = (size_t)plane.transform.length;
    plane.re = allocate(2 * length * length, sizeof(float));
    plane.im = plane.re + length * length;
    plane.re_columns = allocate(2 * length, sizeof(lanes));
    plane.im_columns = plane.re_columns + length;
    return plane;
}

static void take_columns(const float *image, long length, long column, lanes *columns) {
    for (long row = 0; row < length; row++)
        memcpy(columns[row], image + row * length + column, sizeof(lanes));
}

static void put_columns(lanes *columns, float *image, long length, long column) {
    for (long row = 0; row < length; row++)
        memcpy(image + row * length + column, columns[row], sizeof(lanes));
}

static void transpose(float *image, long length) {
    enum { TILE = 16 };
    for (long top = 0; top < length; top += TILE)
        for (long left = 0; left <= top; left += TILE)
            for (long row = top; row < top + TILE; row++)
                for (long column = left; column < left + TILE && column < row; column++) {
                    float kept = image[row * length + column];
                    image[row * length + column] = image[column * length + row];
                    image[column * length + row] = kept;
                }
}

/* Transform all columns and transpose; two calls transform both directions. */
static void transform_columns(struct plane *plane, int sign) {
    long length = plane->transform.length;
    for (long column = 0; column < length; column += LANES) {
        take_columns(plane->re, length, column, plane->re_columns);
        take_columns(plane->im, length, column, plane->im_columns);
        fourier(&plane->transform, plane->re_columns, plane->im_columns, sign);
        put_columns(plane->re_columns, plane->re, length, column);
        put_columns(plane->im_columns, plane->im, length, column);
    }
    transpose(plane->re, length);
    transpose(plane->im, length);
}

/* Remove the spatial frequencies that no projection measures. */
static void remove_missing_wedge(struct plane *plane, double tilt_degrees) {
    long length = plane->transform.length;
    double c = cos(tilt_degrees * PI / 180), s = sin(tilt_degrees * PI / 180);
    transform_columns(plane, -1);
    transform_columns(plane, -1);
    for (long row = 0; row < length; row++)
        for (long column = 0; column < length; column++) {
            long ky = row < length / 2 ? row : length - row;
            long kx = column < length / 2 ? column : length - column;
            int measured = c * (double)ky <= s * (double)kx + 1e-9;
            plane->re[row * length + column] *= (float)measured;
            plane->im[row * length + column] *= (float)measured;
        }
    transform_columns(plane, 1);
    transform_columns(plane, 1);
}

/* The sums that determine Pearson's correlation. */
struct sums {
    double n, a, b, aa, bb, ab;
};

static void add_slice(struct sums *sums, const float *a, const float *b, long b_stride, struct sizes sizes) {
    for (long row = 0; row < sizes.y; row++) {
        double y = centre_of(row, sizes.y, sizes.x), half = sqrt(fmax(1 - y * y, 0));
        long first, end;
        if (fabs(y) > 1)
            continue;
        cells_between(-half, half, sizes.x, &first, &end);
        for (long i = first; i < end; i++) {
            double u = a[row * sizes.x + i], v = b[row * b_stride + i];
            sums->n += 1, sums->a += u, sums->b += v;
            sums->aa += u * u, sums->bb += v * v, sums->ab += u * v;
        }
    }
}

static double correlation(const struct sums *s) {
    double spread = (s->n * s->aa - s->a * s->a) * (s->n * s->bb - s->b * s->b);
    return spread > 0 ? (s->n * s->ab - s->a * s->b) / sqrt(spread) : 0;
}

static void read_slice(int file, const char *path, struct sizes sizes, long index, float *slice) {
    long voxels = sizes.x * sizes.y;
    read_at(file, path, slice, (size_t)voxels * sizeof *slice, HEADER_BYTES + 4 * (off_t)voxels * index);
    for (long i = 0; i < voxels; i++)
        if (!isfinite(slice[i]))
            die("%s: voxel %ld of slice %ld is not a finite number", path, i, index);
}

static double plain_correlation(int file, const char *path, struct sizes sizes) {
    float *slice = allocate((size_t)(sizes.x * sizes.y), sizeof *slice);
    float *drawn = allocate((size_t)(sizes.x * sizes.y), sizeof *drawn);
    struct sums sums = {0};
    for (long z = 0; z < sizes.z; z++) {
        read_slice(file, path, sizes, z, slice);
        draw_slice(drawn, sizes.x, sizes, z);
        add_slice(&sums, slice, drawn, sizes.x, sizes);
    }
    free(drawn);
    free(slice);
    return correlation(&sums);
}

/* Return the slice that is compared as number `i`. */
static long slice_of(long i, long compared, struct sizes sizes) { return (2 * i + 1) * sizes.z / (2 * compared); }

/* The complete phantom is drawn also for a thin volume: projections measure all of it. */
static double wedge_correlation(int file, const char *path, struct sizes sizes, long compared,
                                double tilt_degrees) {
    long rows = sizes.x + (sizes.x + sizes.y) % 2; /* exceeds the thickness by an even number */
    struct sizes square = {sizes.x, rows > sizes.y ? rows : sizes.y, sizes.z};
    struct plane plane = plane_of(square.y + square.y / 2);
    long length = plane.transform.length, offset = (square.y - sizes.y) / 2 * length;
    float *slice = allocate((size_t)(sizes.x * sizes.y), sizeof *slice);
    struct sums sums = {0};
    for (long next = 0; next < compared; next += 2) {
        memset(plane.re, 0, 2 * (size_t)(length * length) * sizeof *plane.re);
        for (long i = next; i < next + 2 && i < compared; i++)
            draw_slice(i == next ? plane.re : plane.im, length, square, slice_of(i, compared, sizes));
        remove_missing_wedge(&plane, tilt_degrees);
        for (long i = next; i < next + 2 && i < compared; i++) {
            read_slice(file, path, sizes, slice_of(i, compared, sizes), slice);
            add_slice(&sums, slice, (i == next ? plane.re : plane.im) + offset, length, sizes);
        }
    }
    return correlation(&sums);
}

static void compare(const char *path, double tilt_degrees) {
    int file = open_or_die(path, O_RDONLY);
    struct sizes sizes = read_header(file, path);
    long compared = sizes.z < COMPARED ? sizes.z : COMPARED;
    double plain = plain_correlation(file, path, sizes);
    double wedge = wedge_correlation(file, path, sizes, compared, tilt_degrees);
    printf("slices %ld compared %ld correlation %.6f plain %.6f\n", sizes.z, compared, wedge, plain);
}

int main(int argc, char **argv) {
    program = "phantom";
    if (argc == 6 && strcmp(argv[1], "project") == 0)
        project(argv[2], whole("SIZE", argv[3], 1, MOST), whole("PROJECTIONS", argv[4], 2, MOST),
                number("TILT_DEGREES", argv[5], 1, 90));
    else if (argc == 5 && strcmp(argv[1], "draw") == 0)
        draw(argv[2], whole("SIZE", argv[3], 1, MOST), whole("THICKNESS", argv[4], 1, MOST));
    else if (argc == 4 && strcmp(argv[1], "compare") == 0)
        compare(argv[2], number("TILT_DEGREES", argv[3], 1, 90));
    else
        die("usage: phantom project SERIES SIZE PROJECTIONS TILT_DEGREES | draw VOLUME SIZE THICKNESS | "
            "compare VOLUME TILT_DEGREES");
    finish_output();
    return 0;
}
