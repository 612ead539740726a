// `rssc.kernels.image.ray_casting` and `texture` for a GPU: the same arithmetic under the same names, which say there
// what they do. As plain C++ it runs without a GPU, which is how the tests compare it with the kernels.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#ifdef __CUDACC__
#define PART __device__ static inline
#else
#define PART static inline
#endif

enum { BOX, BALL, ROOM };
enum { KIND = 0, CENTRE = 1, HALF = 4, COS = 7, SIN = 8, REACH = 9, TEXELS = 10, SOLID_COLUMNS = 11 };
enum { SHADE = 0, PLACE = 1, DARK = 3, BRIGHT = 6, LOOK_COLUMNS = 9 };
enum { NO_SOLID = -1, NO_RAY = -2 };
enum { TILE_BITS = 11, LEVELS = 10, MAX_TAPS = 12, SUBPIXELS = 3 };

constexpr double LIGHT_X = -0.35, LIGHT_Y = -0.85, LIGHT_Z = -0.4, AMBIENT = 0.72, DIRECT = 0.28;
constexpr double BACKGROUND = 0.4, NEAREST = 1e-9, HUGE_VALUE = 1e200, MIN_COSINE = 0.02;

struct Vector {
    double x, y, z;
};

struct View {
    int height, width, channels, solid_count, taps;
    bool by_column;
    double strength;
    const double *rays, *widths, *solids, *looks;
    const uint8_t *texels;
    // Of every image.
    double *rotations, *origins;
    float *image;
    int32_t *faces;
};

struct Hit {
    double distance;
    int solid, face;
    Vector point;
};

struct Shaded {
    int solid, face;
    double shade, value;
};

PART double bilinear(const uint8_t *texels, int level, double u, double v) {
    const uint64_t bits = TILE_BITS - level;
    const uint64_t offset = ((uint64_t(1) << (2 * TILE_BITS)) - (uint64_t(1) << (bits + bits))) / 3 * 4;
    const double scale = 1.0 / (1 << level);
    const double x = u * scale - 0.5, y = v * scale - 0.5;
    const double x_floor = floor(x), y_floor = floor(y);
    const double fx = x - x_floor, fy = y - y_floor;
    const uint64_t mask = (uint64_t(1) << bits) - 1;
    const uint64_t x0 = uint64_t(int64_t(x_floor)) & mask, y0 = uint64_t(int64_t(y_floor)) & mask;
    const uint64_t x1 = (x0 + 1) & mask, y1 = (y0 + 1) & mask;
    const uint64_t row0 = offset + (y0 << bits), row1 = offset + (y1 << bits);
    const double a = texels[row0 + x0], b = texels[row0 + x1], c = texels[row1 + x0], d = texels[row1 + x1];
    const double top = a + fx * (b - a), bottom = c + fx * (d - c);
    return (top + fy * (bottom - top)) * (1.0 / 255.0);
}

PART double sample(const uint8_t *texels, double u, double v, double level) {
    const int k = int(level);
    const double fine = bilinear(texels, k, u, v);
    return fine + (level - k) * (bilinear(texels, k + 1, u, v) - fine);
}

PART Hit nearest(const View &view, int k, Vector d) {
    Hit best = {HUGE_VALUE, NO_SOLID, 0, {0.0, 0.0, 0.0}};
    for (int i = 0; i < view.solid_count; i++) {
        const double *solid = view.solids + i * SOLID_COLUMNS;
        const double *origin = view.origins + (size_t(k) * view.solid_count + i) * 3;
        const double ox = origin[0], oy = origin[1], oz = origin[2];
        const double x = solid[COS] * d.x - solid[SIN] * d.z, z = solid[SIN] * d.x + solid[COS] * d.z;
        const double along = ox * x + oy * d.y + oz * z;
        const int kind = int(solid[KIND]);
        const double gap = along * along - (ox * ox + oy * oy + oz * oz - solid[REACH] * solid[REACH]);
        if (gap < 0.0 || (along > 0.0 && kind != ROOM)) continue;
        if (kind == BALL) {
            const double distance = -along - sqrt(gap);
            if (!(NEAREST < distance && distance < best.distance)) continue;
            const Vector hit = {ox + distance * x, oy + distance * d.y, oz + distance * z};
            const double a = fabs(hit.x), b = fabs(hit.y), c = fabs(hit.z);
            const int face = a >= b && a >= c ? 0 + (hit.x > 0.0) : b >= c ? 2 + (hit.y > 0.0) : 4 + (hit.z > 0.0);
            best = {distance, i, face, hit};
            continue;
        }
        const double inverse_x = x != 0.0 ? 1.0 / x : HUGE_VALUE, inverse_y = d.y != 0.0 ? 1.0 / d.y : HUGE_VALUE;
        const double inverse_z = z != 0.0 ? 1.0 / z : HUGE_VALUE;
        const double reach_x = solid[HALF] * fabs(inverse_x), reach_y = solid[HALF + 1] * fabs(inverse_y);
        const double reach_z = solid[HALF + 2] * fabs(inverse_z);
        const double middle_x = -ox * inverse_x, middle_y = -oy * inverse_y, middle_z = -oz * inverse_z;
        const double leave_x = middle_x + reach_x, leave_y = middle_y + reach_y, leave_z = middle_z + reach_z;
        const double leave = fmin(leave_x, fmin(leave_y, leave_z));
        double distance = leave;
        int axis = leave == leave_x ? 0 : leave == leave_y ? 1 : 2;
        if (kind != ROOM) {
            const double enter_x = middle_x - reach_x, enter_y = middle_y - reach_y, enter_z = middle_z - reach_z;
            distance = fmax(enter_x, fmax(enter_y, enter_z));
            if (distance > leave) continue;
            axis = distance == enter_x ? 0 : distance == enter_y ? 1 : 2;
        }
        if (!(NEAREST < distance && distance < best.distance)) continue;
        const double forward = axis == 0 ? x : axis == 1 ? d.y : z;
        const int face = 2 * axis + ((forward > 0.0) == (kind == ROOM));
        best = {distance, i, face, {ox + distance * x, oy + distance * d.y, oz + distance * z}};
    }
    return best;
}

PART double face_texture(const View &view, const Hit &hit, Vector direction, Vector normal, double width) {
    const double *place = view.looks + (hit.solid * 6 + hit.face) * LOOK_COLUMNS + PLACE;
    const double density = view.solids[hit.solid * SOLID_COLUMNS + TEXELS];
    const int axis = hit.face / 2;
    const double facing = direction.x * normal.x + direction.y * normal.y + direction.z * normal.z;
    const double cosine = fmax(fabs(facing), MIN_COSINE);
    const Vector t = {direction.x - facing * normal.x, direction.y - facing * normal.y, direction.z - facing * normal.z};
    double u = hit.point.x, v = hit.point.y, tu = t.x, tv = t.y;
    if (axis == 0) u = hit.point.z, tu = t.z;
    if (axis == 1) v = hit.point.z, tv = t.z;
    u = u * density + place[0];
    v = v * density + place[1];
    width *= density;
    const double length = width / cosine, slant = sqrt(tu * tu + tv * tv);
    const double du = slant > 1e-9 ? tu / slant : 1.0, dv = slant > 1e-9 ? tv / slant : 0.0;
    int taps = int(view.taps / cosine + 0.5);
    if (taps > MAX_TAPS) taps = MAX_TAPS;
    const double level = fmin(log2(fmax(fmax(width / view.taps, length / taps), 1.0)), LEVELS - 1.001);
    double total = 0.0;
    for (int i = 0; i < taps; i++) {
        const double along = ((i + 0.5) / taps - 0.5) * length;
        for (int j = 0; j < view.taps; j++) {
            const double across = ((j + 0.5) / view.taps - 0.5) * width;
            total += sample(view.texels, u + along * du - across * dv, v + along * dv + across * du, level);
        }
    }
    return total / (taps * view.taps);
}

PART Shaded shade_ray(const View &view, int k, Vector ray, double width) {
    if (ray.x != ray.x) return {NO_RAY, 0, 0.0, 0.0};
    const double *r = view.rotations + size_t(k) * 9;
    const Vector d = {
        r[0] * ray.x + r[1] * ray.y + r[2] * ray.z,
        r[3] * ray.x + r[4] * ray.y + r[5] * ray.z,
        r[6] * ray.x + r[7] * ray.y + r[8] * ray.z,
    };
    const Hit hit = nearest(view, k, d);
    if (hit.solid == NO_SOLID) return {NO_SOLID, 0, 0.0, 0.0};
    const double *solid = view.solids + hit.solid * SOLID_COLUMNS;
    Vector normal = {0.0, 0.0, 0.0};
    double shade;
    if (int(solid[KIND]) == BALL) {
        const double scale = 1.0 / solid[HALF];
        normal = {hit.point.x * scale, hit.point.y * scale, hit.point.z * scale};
        shade = AMBIENT + DIRECT * (normal.x * LIGHT_X + normal.y * LIGHT_Y + normal.z * LIGHT_Z);
    } else {
        const double sign = hit.face % 2 ? 1.0 : -1.0;
        (hit.face < 2 ? normal.x : hit.face < 4 ? normal.y : normal.z) = sign;
        shade = view.looks[(hit.solid * 6 + hit.face) * LOOK_COLUMNS + SHADE];
    }
    const Vector local = {solid[COS] * d.x - solid[SIN] * d.z, d.y, solid[SIN] * d.x + solid[COS] * d.z};
    const double value = face_texture(view, hit, local, normal, width * hit.distance);
    return {hit.solid, hit.face, shade, 0.5 + view.strength * (value - 0.5)};
}

PART void add_colour(const View &view, const Shaded &shaded, double weight, float *pixel) {
    for (int c = 0; c < view.channels; c++) {
        if (shaded.solid >= 0) {
            const double *look = view.looks + (shaded.solid * 6 + shaded.face) * LOOK_COLUMNS;
            const double dark = look[DARK + c], bright = look[BRIGHT + c];
            pixel[c] += weight * shaded.shade * (dark + (bright - dark) * shaded.value);
        } else if (shaded.solid == NO_SOLID) {
            pixel[c] += weight * BACKGROUND;
        }
    }
}

PART Vector ray_at(const View &view, int at) {
    return {view.rays[3 * at], view.rays[3 * at + 1], view.rays[3 * at + 2]};
}

PART void render_pixel(const View &view, int at) {
    const int k = view.by_column ? at % view.width : at / view.width;
    const Shaded shaded = shade_ray(view, k, ray_at(view, at), view.widths[at]);
    view.faces[at] = 6 * shaded.solid + shaded.face;
    float *pixel = view.image + size_t(at) * view.channels;
    for (int c = 0; c < view.channels; c++) pixel[c] = 0.0f;
    add_colour(view, shaded, 1.0, pixel);
}

PART void smooth_pixel(const View &view, int at) {
    const int row = at / view.width, column = at % view.width;
    const int left = at - (column > 0), right = at + (column < view.width - 1);
    const int up = row > 0 ? at - view.width : at, down = row < view.height - 1 ? at + view.width : at;
    const int32_t *faces = view.faces, here = faces[at];
    if (faces[up] == here && faces[down] == here && faces[left] == here && faces[right] == here) return;
    const int k = view.by_column ? column : row;
    float *pixel = view.image + size_t(at) * view.channels;
    for (int c = 0; c < view.channels; c++) pixel[c] = 0.0f;
    const Vector centre = ray_at(view, at), from_left = ray_at(view, left), to_right = ray_at(view, right);
    const Vector from_up = ray_at(view, up), to_down = ray_at(view, down);
    for (int i = 0; i < SUBPIXELS * SUBPIXELS; i++) {
        const double a = ((i % SUBPIXELS + 0.5) / SUBPIXELS - 0.5) / (right - left);
        const double b = ((i / SUBPIXELS + 0.5) / SUBPIXELS - 0.5) / ((down - up) / view.width);
        const double x = centre.x + a * (to_right.x - from_left.x) + b * (to_down.x - from_up.x);
        const double y = centre.y + a * (to_right.y - from_left.y) + b * (to_down.y - from_up.y);
        const double z = centre.z + a * (to_right.z - from_left.z) + b * (to_down.z - from_up.z);
        const double norm = 1.0 / sqrt(x * x + y * y + z * z);
        const Shaded shaded = shade_ray(view, k, {x * norm, y * norm, z * norm}, 0.5 * view.widths[at]);
        add_colour(view, shaded, 1.0 / (SUBPIXELS * SUBPIXELS), pixel);
    }
}

#ifdef __CUDACC__

__global__ void render_pixels(View view) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < view.height * view.width) render_pixel(view, at);
}

__global__ void smooth_pixels(View view) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < view.height * view.width) smooth_pixel(view, at);
}

void *allocate(size_t bytes) {
    void *out = nullptr;
    return cudaMalloc(&out, bytes) == cudaSuccess ? out : nullptr;
}

void copy(void *to, const void *from, size_t bytes) { cudaMemcpy(to, from, bytes, cudaMemcpyDefault); }

void release(const void *memory) { cudaFree(const_cast<void *>(memory)); }

void cast_all(const View &view) {
    const int threads = 128, blocks = (view.height * view.width + threads - 1) / threads;
    render_pixels<<<blocks, threads>>>(view);
    smooth_pixels<<<blocks, threads>>>(view);
}

const char *failure() {
    const cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

#else

void *allocate(size_t bytes) { return malloc(bytes); }

void copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

void release(const void *memory) { free(const_cast<void *>(memory)); }

void cast_all(const View &view) {
    for (int at = 0; at < view.height * view.width; at++) render_pixel(view, at);
    for (int at = 0; at < view.height * view.width; at++) smooth_pixel(view, at);
}

const char *failure() { return ""; }

#endif

template <typename Number>
const Number *copied(const Number *from, size_t count) {
    void *out = allocate(count * sizeof(Number));
    if (out) copy(out, from, count * sizeof(Number));
    return static_cast<const Number *>(out);
}

extern "C" {

View *new_view(int height, int width, int channels, int by_column, int solid_count, int taps, double strength,
               int64_t texel_count, const double *rays, const double *widths, const double *solids,
               const double *looks, const uint8_t *texels) {
    const size_t pixels = size_t(height) * width, lines = by_column ? width : height;
    View view = {height, width, channels, solid_count, taps, by_column != 0, strength};
    view.rays = copied(rays, 3 * pixels);
    view.widths = copied(widths, pixels);
    view.solids = copied(solids, size_t(solid_count) * SOLID_COLUMNS);
    view.looks = copied(looks, size_t(solid_count) * 6 * LOOK_COLUMNS);
    view.texels = copied(texels, texel_count);
    view.rotations = static_cast<double *>(allocate(lines * 9 * sizeof(double)));
    view.origins = static_cast<double *>(allocate(lines * solid_count * 3 * sizeof(double)));
    view.image = static_cast<float *>(allocate(pixels * channels * sizeof(float)));
    view.faces = static_cast<int32_t *>(allocate(pixels * sizeof(int32_t)));
    return new View(view);
}

// The error; empty where there is none.
const char *cast_view(const View *view, const double *rotations, const double *origins, float *image) {
    const size_t lines = view->by_column ? view->width : view->height;
    copy(view->rotations, rotations, lines * 9 * sizeof(double));
    copy(view->origins, origins, lines * view->solid_count * 3 * sizeof(double));
    cast_all(*view);
    copy(image, view->image, size_t(view->height) * view->width * view->channels * sizeof(float));
    return failure();
}

void delete_view(View *view) {
    const void *all[] = {view->rays,      view->widths,  view->solids, view->looks, view->texels,
                         view->rotations, view->origins, view->image,  view->faces};
    for (const void *memory : all) release(memory);
    delete view;
}
}
