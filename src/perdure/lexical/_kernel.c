/* The compiled lexical index: exact BM25 top-k over postings held in memory.
 *
 * It answers as perdure.lexical.reference does, bit for bit; read that module first. What is kept:
 *
 *   forward   per row, in order of first appearance: (term, tf). The source of everything else.
 *   postings  per term, rows ascending: a row and a 16-bit code, which stands for a (tf, length) pair.
 *   dense     for terms in many rows also one code per row, so that a probe is one load.
 *
 * Only integers are kept, so the statistics are exact whatever the order of changes. The share
 * tf / (tf + K) of each pair is derived, and computed afresh when the average length has changed.
 *
 * Scores are sums in one fixed order: terms by (document frequency, text). The essential terms of
 * MaxScore are a prefix of that order and the probed ones its suffix, so pruning never reorders a sum.
 * Compile without contraction of a * b + c: a fused multiply-add rounds once where NumPy rounds twice.
 *
 * Hidden and erased rows stay in the postings; they are tested for when a score could enter the heap.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TF_MAX 4095u
#define LENGTH_MAX 1000000u
#define ROWS_MAX 0x7fffffffu
#define TERMS_MAX 0x3fffffffu
#define K1_MAX 1000.0

#define CODE_NONE 0u       /* in a dense row: the term is not in this row */
#define CODE_WIDE 0xffffu  /* the pair has no code of its own: read the forward index */
#define NEVER 0xffffffffu  /* the least length where no row has this tf */

#define WINDOW 2048u         /* rows scored at once: 16 KB of sums, half of a first-level cache */
#define BATCH 64u            /* rows that go on together from the essential terms to the others */
#define DENSE_ROWS 256u      /* smaller indexes have no dense rows */
#define DENSE_MAKE 10u       /* a term in more than 1/10 of the rows gets one ... */
#define DENSE_DROP 20u       /* ... and loses it under 1/20 */
#define PRUNE_POSTINGS 500u  /* fewer postings are all scored: bounds and priming would cost more */
#define PRIME_POSTINGS 512u  /* postings read to prime the threshold; measured best at 1k to 1M rows */
#define LONG_SCAN 50000u     /* postings to read from which the interpreter lock is released */
#define LONG_WALK 2000u      /* likewise, rows to walk */
#define COMPACT_POSTINGS 4096u /* fewer postings of erased rows stay where they are */
#define MARGIN 1e-12         /* sums of bounds are raised by this part: rounding must not make them too small */

#define STATE_SHIFT 30
#define LENGTH_MASK 0x3fffffffu
enum { LIVE = 0, HIDDEN = 1, ERASED = 2 };

/* A forward word: the term in the low 30 bits, tf 1 to 3 in the high two; 0 there means that the next
 * word holds the tf. */
#define TERM_MASK 0x3fffffffu
#define TF_SHIFT 30

typedef struct {
    uint32_t start;  /* first forward word */
    uint32_t length; /* number of terms, with the state in the high two bits */
} Row;

typedef struct {
    union {
        uint32_t *block; /* capacity rows, then capacity codes */
        struct {
            uint32_t row;
            uint16_t code;
        } one; /* capacity 1: most terms of a language occur once */
    } at;
    uint32_t count, capacity;
    uint32_t df; /* live rows holding the term */
    uint32_t text, text_length;
    uint32_t hash;
    uint32_t least_length[4]; /* least length of a row with tf 1, 2, 3, 4 or more: never too great */
    uint16_t most_tf;         /* greatest tf: never too small */
    uint16_t dense;           /* 0, or 1 + its place in Index.dense */
} Term;

typedef struct {
    uint16_t *codes;
    uint32_t term;
} Dense;

typedef struct {
    double k1, b;
    Row *row;
    uint32_t rows, row_capacity;
    uint32_t *forward;
    uint32_t words, word_capacity;
    Term *term;
    uint32_t terms, term_capacity;
    char *text;
    uint32_t text_bytes, text_capacity;
    uint32_t *slot; /* open addressing: 1 + term */
    uint32_t slot_mask;
    uint16_t *pair_tf;
    uint32_t *pair_length;
    double *share; /* per code; stale when the statistics or the number of pairs differ from shared_* */
    uint32_t pairs, pair_capacity;
    uint16_t *pair_slot;
    uint32_t pair_slot_mask;
    double average; /* length of the live rows, as of refresh_shares */
    int64_t shared_documents, shared_length;
    uint32_t shared_pairs;
    Dense *dense;
    uint32_t denses, dense_capacity;
    int64_t documents, total_length;
    uint64_t postings, dead_postings; /* dead: of erased rows */
} Body;

typedef struct {
    PyObject_HEAD
    Body body;
    int readers; /* scans that run without the interpreter lock */
} Index;

/* ---- growable arrays -------------------------------------------------------------------------- */

static int reserve(void *array, uint32_t *capacity, uint64_t need, size_t size, uint32_t limit)
{
    void *grown;
    uint64_t wanted;
    if (need <= *capacity) return 0;
    if (need > limit) return -1;
    wanted = need + need / 8 + 16;
    if (wanted > limit) wanted = limit;
    if (wanted > SIZE_MAX / size) return -1;
    memcpy(&grown, array, sizeof grown);
    grown = realloc(grown, (size_t)wanted * size);
    if (!grown) return -1;
    memcpy(array, &grown, sizeof grown);
    *capacity = (uint32_t)wanted;
    return 0;
}

static void body_free(Body *body)
{
    uint32_t i;
    for (i = 0; i < body->terms; i++)
        if (body->term[i].capacity > 1) free(body->term[i].at.block);
    for (i = 0; i < body->denses; i++) free(body->dense[i].codes);
    free(body->row);
    free(body->forward);
    free(body->term);
    free(body->text);
    free(body->slot);
    free(body->pair_tf);
    free(body->pair_length);
    free(body->share);
    free(body->pair_slot);
    free(body->dense);
    memset(body, 0, sizeof *body);
}

static int body_open(Body *body, double k1, double b)
{
    memset(body, 0, sizeof *body);
    body->k1 = k1;
    body->b = b;
    body->pairs = 1; /* code 0 is CODE_NONE, with a share of 0 */
    body->slot = calloc(64, sizeof *body->slot);
    body->slot_mask = 63;
    body->pair_slot = calloc(64, sizeof *body->pair_slot);
    body->pair_slot_mask = 63;
    body->pair_capacity = 16;
    body->pair_tf = calloc(16, sizeof *body->pair_tf);
    body->pair_length = calloc(16, sizeof *body->pair_length);
    body->share = calloc(16, sizeof *body->share);
    if (body->slot && body->pair_slot && body->pair_tf && body->pair_length && body->share) return 0;
    body_free(body);
    return -1;
}

/* ---- terms ------------------------------------------------------------------------------------ */

typedef struct {
    const char *text;
    uint32_t length, hash;
} Text;

/* The interpreter's own string hash is keyed per process, so that nobody can choose terms that collide. */
static int text_of(PyObject *object, Text *text)
{
    Py_ssize_t length;
    Py_hash_t hash;
    if (!PyUnicode_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "terms must be a list of str");
        return -1;
    }
    text->text = PyUnicode_AsUTF8AndSize(object, &length);
    if (!text->text) return -1;
    if (length > (Py_ssize_t)LENGTH_MASK) {
        PyErr_SetString(PyExc_ValueError, "a term is longer than 1 GiB");
        return -1;
    }
    hash = PyObject_Hash(object);
    text->length = (uint32_t)length;
    text->hash = (uint32_t)((uint64_t)hash ^ ((uint64_t)hash >> 32));
    return 0;
}

static uint32_t find_term(const Body *body, const Text *text)
{
    uint32_t at = text->hash & body->slot_mask, found;
    while ((found = body->slot[at]) != 0) {
        const Term *term = &body->term[found - 1];
        if (term->hash == text->hash && term->text_length == text->length &&
            memcmp(body->text + term->text, text->text, text->length) == 0)
            return found - 1;
        at = (at + 1) & body->slot_mask;
    }
    return NEVER;
}

static void place_term(Body *body, uint32_t term)
{
    uint32_t at = body->term[term].hash & body->slot_mask;
    while (body->slot[at]) at = (at + 1) & body->slot_mask;
    body->slot[at] = term + 1;
}

static int reserve_slots(Body *body, uint32_t terms)
{
    uint32_t size = body->slot_mask + 1, *slot, i;
    uint64_t wanted = size;
    while ((uint64_t)terms * 4 > wanted * 3) wanted *= 2;
    if (wanted == size) return 0;
    if (wanted > 0x80000000u || !(slot = calloc((size_t)wanted, sizeof *slot))) return -1;
    free(body->slot);
    body->slot = slot;
    body->slot_mask = (uint32_t)(wanted - 1);
    for (i = 0; i < body->terms; i++) place_term(body, i);
    return 0;
}

/* Find or append the term; NEVER when memory is short. An appended term without postings is harmless. */
static uint32_t intern_term(Body *body, const Text *text)
{
    uint32_t found = find_term(body, text);
    Term *term;
    if (found != NEVER) return found;
    if (reserve(&body->term, &body->term_capacity, (uint64_t)body->terms + 1, sizeof(Term), TERMS_MAX) ||
        reserve(&body->text, &body->text_capacity, (uint64_t)body->text_bytes + text->length, 1, NEVER) ||
        reserve_slots(body, body->terms + 1))
        return NEVER;
    term = &body->term[body->terms];
    memset(term, 0, sizeof *term);
    memset(term->least_length, 0xff, sizeof term->least_length);
    term->capacity = 1;
    term->text = body->text_bytes;
    term->text_length = text->length;
    term->hash = text->hash;
    if (text->length) memcpy(body->text + body->text_bytes, text->text, text->length);
    body->text_bytes += text->length;
    place_term(body, body->terms);
    return body->terms++;
}

/* ---- pairs of (tf, length) and their shares --------------------------------------------------- */

static inline double norm_of(const Body *body, uint32_t length)
{
    return body->k1 * (1.0 - body->b + body->b * (double)length / body->average);
}

static inline double share_of(uint32_t tf, double norm) { return (double)tf / ((double)tf + norm); }

static inline uint32_t pair_hash(uint32_t tf, uint32_t length)
{
    uint32_t hash = (length * 4096u + tf) * 2654435769u;
    return hash ^ (hash >> 15);
}

static int reserve_pairs(Body *body, uint32_t more)
{
    uint64_t need = (uint64_t)body->pairs + more;
    uint32_t capacity = body->pair_capacity, code, size = body->pair_slot_mask + 1;
    uint16_t *slot;
    if (need > CODE_WIDE) need = CODE_WIDE;
    if (need > body->pair_capacity) {
        if (reserve(&body->pair_tf, &capacity, need, sizeof *body->pair_tf, CODE_WIDE)) return -1;
        capacity = body->pair_capacity;
        if (reserve(&body->pair_length, &capacity, need, sizeof *body->pair_length, CODE_WIDE)) return -1;
        capacity = body->pair_capacity;
        if (reserve(&body->share, &capacity, need, sizeof *body->share, CODE_WIDE)) return -1;
        body->pair_capacity = capacity;
    }
    while (need * 2 > size) size *= 2;
    if (size == body->pair_slot_mask + 1) return 0;
    slot = calloc(size, sizeof *slot);
    if (!slot) return -1;
    free(body->pair_slot);
    body->pair_slot = slot;
    body->pair_slot_mask = size - 1;
    for (code = 1; code < body->pairs; code++) {
        uint32_t at = pair_hash(body->pair_tf[code], body->pair_length[code]) & body->pair_slot_mask;
        while (slot[at]) at = (at + 1) & body->pair_slot_mask;
        slot[at] = (uint16_t)code;
    }
    return 0;
}

/* The code of a pair, new if need be; room for it was reserved. */
static uint16_t intern_pair(Body *body, uint32_t tf, uint32_t length)
{
    uint32_t at = pair_hash(tf, length) & body->pair_slot_mask, code;
    while ((code = body->pair_slot[at]) != 0) {
        if (body->pair_tf[code] == tf && body->pair_length[code] == length) return (uint16_t)code;
        at = (at + 1) & body->pair_slot_mask;
    }
    if (body->pairs == CODE_WIDE) return CODE_WIDE;
    body->pair_tf[body->pairs] = (uint16_t)tf;
    body->pair_length[body->pairs] = length;
    body->pair_slot[at] = (uint16_t)body->pairs;
    return (uint16_t)body->pairs++;
}

/* Called with the interpreter lock held; while a scan runs without it nothing is stale, because every
 * scan was preceded by this call and no change is let in before it ends. */
static void refresh_shares(Body *body)
{
    uint32_t code;
    if (body->shared_documents == body->documents && body->shared_length == body->total_length &&
        body->shared_pairs == body->pairs)
        return;
    body->average = (double)body->total_length / (double)body->documents;
    for (code = 1; code < body->pairs; code++)
        body->share[code] = share_of(body->pair_tf[code], norm_of(body, body->pair_length[code]));
    body->shared_documents = body->documents;
    body->shared_length = body->total_length;
    body->shared_pairs = body->pairs;
}

/* ---- the forward index ------------------------------------------------------------------------ */

static inline uint32_t state_of(const Body *body, uint32_t row) { return body->row[row].length >> STATE_SHIFT; }

static inline uint32_t length_of(const Body *body, uint32_t row) { return body->row[row].length & LENGTH_MASK; }

static inline uint32_t end_of(const Body *body, uint32_t row)
{
    return row + 1 < body->rows ? body->row[row + 1].start : body->words;
}

static inline uint32_t read_entry(const uint32_t *forward, uint32_t at, uint32_t *term, uint32_t *tf)
{
    uint32_t word = forward[at++];
    *term = word & TERM_MASK;
    *tf = word >> TF_SHIFT;
    if (*tf == 0) *tf = forward[at++];
    return at;
}

/* Words of an erased row are zero; term 0 with tf 0 is no entry, so its range must not be read. */
static inline uint32_t entries_end(const Body *body, uint32_t row)
{
    return state_of(body, row) == ERASED ? body->row[row].start : end_of(body, row);
}

static uint32_t tf_in_row(const Body *body, uint32_t term, uint32_t row)
{
    uint32_t at = body->row[row].start, end = entries_end(body, row), found, tf;
    while (at < end) {
        at = read_entry(body->forward, at, &found, &tf);
        if (found == term) return tf;
    }
    return 0;
}

/* ---- postings --------------------------------------------------------------------------------- */

static inline uint32_t *rows_of(Term *term) { return term->capacity > 1 ? term->at.block : &term->at.one.row; }

static inline uint16_t *codes_of(Term *term)
{
    return term->capacity > 1 ? (uint16_t *)(term->at.block + term->capacity) : &term->at.one.code;
}

/* Slack of an eighth, and what the allocator would round up to anyway. */
static uint64_t grown_postings(uint32_t count)
{
    uint64_t wanted = (uint64_t)count + count / 8 + 1;
    uint64_t bytes = (wanted * 6 + 8 + 15) / 16 * 16;
    return (bytes - 8) / 6;
}

static int reserve_posting(Term *term)
{
    uint64_t capacity;
    uint32_t *block;
    if (term->count < term->capacity) return 0;
    capacity = grown_postings(term->count);
    if (capacity > NEVER || capacity > SIZE_MAX / 6) return -1;
    block = realloc(term->capacity > 1 ? term->at.block : NULL, (size_t)capacity * 6);
    if (!block) return -1;
    if (term->capacity > 1) {
        memmove(block + capacity, block + term->capacity, (size_t)term->count * 2);
    } else {
        block[0] = term->at.one.row;
        *(uint16_t *)(block + capacity) = term->at.one.code;
    }
    term->at.block = block;
    term->capacity = (uint32_t)capacity;
    return 0;
}

static void append_posting(Body *body, uint32_t id, uint32_t row, uint32_t tf, uint16_t code)
{
    Term *term = &body->term[id];
    uint32_t length = length_of(body, row), level = tf < 4 ? tf - 1 : 3;
    rows_of(term)[term->count] = row;
    codes_of(term)[term->count] = code;
    term->count++;
    if (term->least_length[level] > length) term->least_length[level] = length;
    if (term->most_tf < tf) term->most_tf = (uint16_t)tf;
    if (term->dense) body->dense[term->dense - 1].codes[row] = code;
    body->postings++;
}

/* A dense row only saves time, so being short of memory for one is not an error. */
static void make_dense(Body *body, uint32_t id)
{
    Term *term = &body->term[id];
    const uint32_t *rows;
    const uint16_t *codes;
    uint16_t *dense;
    uint32_t i;
    if (term->dense || body->rows < DENSE_ROWS || (uint64_t)term->count * DENSE_MAKE <= body->rows) return;
    if (reserve(&body->dense, &body->dense_capacity, (uint64_t)body->denses + 1, sizeof(Dense), 65534)) return;
    dense = calloc(body->row_capacity, sizeof *dense);
    if (!dense) return;
    rows = rows_of(term);
    codes = codes_of(term);
    for (i = 0; i < term->count; i++) dense[rows[i]] = codes[i];
    body->dense[body->denses].codes = dense;
    body->dense[body->denses].term = id;
    term->dense = (uint16_t)++body->denses;
}

static void drop_dense(Body *body, uint32_t place)
{
    body->term[body->dense[place].term].dense = 0;
    free(body->dense[place].codes);
    body->dense[place] = body->dense[--body->denses];
    if (place < body->denses) body->term[body->dense[place].term].dense = (uint16_t)(place + 1);
}

static int reserve_rows(Body *body, uint64_t need)
{
    uint32_t capacity = body->row_capacity, place;
    if (need <= capacity) return 0;
    for (place = body->denses; place-- > 0;)
        if ((uint64_t)body->term[body->dense[place].term].count * DENSE_DROP < body->rows) drop_dense(body, place);
    if (reserve(&body->row, &capacity, need, sizeof(Row), ROWS_MAX)) return -1;
    for (place = 0; place < body->denses; place++) {
        uint16_t *codes = realloc(body->dense[place].codes, (size_t)capacity * sizeof *codes);
        if (!codes) return -1;
        memset(codes + body->row_capacity, 0, (size_t)(capacity - body->row_capacity) * sizeof *codes);
        body->dense[place].codes = codes;
    }
    body->row_capacity = capacity;
    return 0;
}

/* ---- changes ---------------------------------------------------------------------------------- */

typedef struct {
    uint32_t term, tf;
} Entry;

/* Count repeats: entries in order of first appearance. seen is zeroed, a power of two above count. */
static uint32_t count_terms(const uint32_t *ids, uint32_t count, Entry *entries, uint32_t *seen, uint32_t mask)
{
    uint32_t i, entry_count = 0;
    for (i = 0; i < count; i++) {
        uint32_t at = (ids[i] * 2654435769u) >> 7 & mask;
        while (seen[at] && entries[seen[at] - 1].term != ids[i]) at = (at + 1) & mask;
        if (!seen[at]) {
            entries[entry_count].term = ids[i];
            entries[entry_count].tf = 0;
            seen[at] = ++entry_count;
        }
        if (entries[seen[at] - 1].tf < TF_MAX) entries[seen[at] - 1].tf++;
    }
    return entry_count;
}

/* Append a live row, or a dead one where there is no entry. Nothing has changed when it returns -1. */
static int append_row(Body *body, const Entry *entries, uint32_t count, uint32_t length)
{
    uint32_t i, row = body->rows;
    if (reserve_rows(body, (uint64_t)row + 1) || reserve_pairs(body, count) ||
        reserve(&body->forward, &body->word_capacity, (uint64_t)body->words + 2 * (uint64_t)count,
                sizeof(uint32_t), NEVER))
        return -1;
    for (i = 0; i < count; i++)
        if (reserve_posting(&body->term[entries[i].term])) return -1;
    body->row[row].start = body->words;
    body->row[row].length = count ? length : (uint32_t)ERASED << STATE_SHIFT;
    body->rows++;
    if (!count) return 0;
    for (i = 0; i < count; i++) {
        uint32_t term = entries[i].term, tf = entries[i].tf;
        body->forward[body->words++] = term | (tf < 4 ? tf << TF_SHIFT : 0);
        if (tf >= 4) body->forward[body->words++] = tf;
        append_posting(body, term, row, tf, intern_pair(body, tf, length));
        body->term[term].df++;
        make_dense(body, term);
    }
    body->documents++;
    body->total_length += length;
    return 0;
}

/* Take a live row out of the statistics (sign -1) or put it back (+1); returns the number of its terms. */
static uint32_t count_row(Body *body, uint32_t row, int sign)
{
    uint32_t at = body->row[row].start, end = entries_end(body, row), term, tf, entries = 0;
    for (; at < end; entries++) {
        at = read_entry(body->forward, at, &term, &tf);
        body->term[term].df += (uint32_t)sign;
    }
    body->documents += sign;
    body->total_length += sign * (int64_t)length_of(body, row);
    return entries;
}

/* ---- the snapshot: every integer little-endian, four bytes unless said otherwise ---------------
 *
 *   magic (8 bytes), version, 0, k1 (float64), b (float64), rows, terms, words, text bytes,
 *   per row its length and state, per row its number of words, the forward words,
 *   per term its length in bytes, the text, CRC-32 of all before.
 *
 * Terms are numbered in order of first use, so that equal contents give equal bytes.
 */

static const char MAGIC[8] = {'P', 'e', 'r', 'd', 'L', 'e', 'x', 'I'};
#define SNAPSHOT_VERSION 1u
#define HEADER_BYTES 48u

static inline uint32_t get32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline unsigned char *put32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
    at[2] = (unsigned char)(value >> 16);
    at[3] = (unsigned char)(value >> 24);
    return at + 4;
}

static double get_double(const unsigned char *at)
{
    uint64_t bits = (uint64_t)get32(at) | (uint64_t)get32(at + 4) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static unsigned char *put_double(unsigned char *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return put32(put32(at, (uint32_t)bits), (uint32_t)(bits >> 32));
}

/* The new numbers of the terms in use, in order of first use, and their old numbers. */
static uint32_t number_terms(const Body *body, uint32_t *number, uint32_t *order)
{
    uint32_t row, used = 0, term, tf;
    memset(number, 0xff, (size_t)body->terms * sizeof *number);
    for (row = 0; row < body->rows; row++) {
        uint32_t at = body->row[row].start, end = entries_end(body, row);
        while (at < end) {
            at = read_entry(body->forward, at, &term, &tf);
            if (number[term] == NEVER) {
                number[term] = used;
                order[used++] = term;
            }
        }
    }
    return used;
}

static void write_snapshot(const Body *body, unsigned char *at, const uint32_t *number, const uint32_t *order,
                           uint32_t used, uint32_t words, uint32_t text_bytes)
{
    uint32_t row, i;
    memcpy(at, MAGIC, 8);
    at = put32(put32(at + 8, SNAPSHOT_VERSION), 0);
    at = put_double(put_double(at, body->k1), body->b);
    at = put32(put32(put32(put32(at, body->rows), used), words), text_bytes);
    for (row = 0; row < body->rows; row++) at = put32(at, body->row[row].length);
    for (row = 0; row < body->rows; row++) at = put32(at, entries_end(body, row) - body->row[row].start);
    for (row = 0; row < body->rows; row++) {
        uint32_t word = body->row[row].start, end = entries_end(body, row);
        while (word < end) {
            uint32_t value = body->forward[word++];
            at = put32(at, number[value & TERM_MASK] | (value & ~TERM_MASK));
            if (value >> TF_SHIFT == 0) at = put32(at, body->forward[word++]);
        }
    }
    for (i = 0; i < used; i++) at = put32(at, body->term[order[i]].text_length);
    for (i = 0; i < used; i++) {
        const Term *term = &body->term[order[i]];
        memcpy(at, body->text + term->text, term->text_length);
        at += term->text_length;
    }
}

static int seal(unsigned char *bytes, size_t size, uint32_t *crc)
{
    PyObject *module = NULL, *view = NULL, *value = NULL;
    int result = -1;
    module = PyImport_ImportModule("binascii");
    if (module) view = PyMemoryView_FromMemory((char *)bytes, (Py_ssize_t)size, PyBUF_READ);
    if (view) value = PyObject_CallMethod(module, "crc32", "O", view);
    if (value) {
        *crc = (uint32_t)PyLong_AsUnsignedLong(value);
        result = PyErr_Occurred() ? -1 : 0;
    }
    Py_XDECREF(value);
    Py_XDECREF(view);
    Py_XDECREF(module);
    return result;
}

static PyObject *snapshot(const Body *body)
{
    uint32_t *number = malloc(((size_t)body->terms * 2 + 1) * sizeof *number), *order, used, i, row, crc;
    uint64_t words = 0, text_bytes = 0, size;
    PyObject *result = NULL;
    unsigned char *bytes;
    if (!number) return PyErr_NoMemory();
    order = number + body->terms;
    used = number_terms(body, number, order);
    for (row = 0; row < body->rows; row++) words += entries_end(body, row) - body->row[row].start;
    for (i = 0; i < used; i++) text_bytes += body->term[order[i]].text_length;
    size = HEADER_BYTES + 4 * (2 * (uint64_t)body->rows + words + used) + text_bytes;
    if (size < PY_SSIZE_T_MAX - 4) result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size + 4));
    else PyErr_NoMemory();
    if (result) {
        bytes = (unsigned char *)PyBytes_AsString(result);
        write_snapshot(body, bytes, number, order, used, (uint32_t)words, (uint32_t)text_bytes);
        if (seal(bytes, (size_t)size, &crc)) Py_CLEAR(result);
        else put32(bytes + size, crc);
    }
    free(number);
    return result;
}

typedef struct {
    const unsigned char *lengths, *counts, *words, *term_lengths, *text;
    uint32_t rows, terms, word_count, text_bytes;
    double k1, b;
} Parts;

static const char *find_parts(const unsigned char *bytes, uint64_t size, Parts *parts)
{
    uint64_t expected;
    if (size < HEADER_BYTES + 4 || memcmp(bytes, MAGIC, 8)) return "it is no snapshot of a lexical index";
    if (get32(bytes + 8) != SNAPSHOT_VERSION || get32(bytes + 12)) return "its version is not 1";
    parts->k1 = get_double(bytes + 16);
    parts->b = get_double(bytes + 24);
    if (!(parts->k1 >= 0 && parts->k1 <= K1_MAX && parts->b >= 0 && parts->b <= 1)) return "k1 or b is out of range";
    parts->rows = get32(bytes + 32);
    parts->terms = get32(bytes + 36);
    parts->word_count = get32(bytes + 40);
    parts->text_bytes = get32(bytes + 44);
    expected = HEADER_BYTES + 4 * (2 * (uint64_t)parts->rows + parts->word_count + parts->terms) + parts->text_bytes;
    if (size != expected + 4) return "its size is not what its header says";
    if (parts->rows > ROWS_MAX || parts->terms > TERMS_MAX) return "it has too many rows or terms";
    parts->lengths = bytes + HEADER_BYTES;
    parts->counts = parts->lengths + 4 * (size_t)parts->rows;
    parts->words = parts->counts + 4 * (size_t)parts->rows;
    parts->term_lengths = parts->words + 4 * (size_t)parts->word_count;
    parts->text = parts->term_lengths + 4 * (size_t)parts->terms;
    return NULL;
}

static const char OUT_OF_MEMORY[] = "out of memory";
static const char BAD_TERM[] = "its terms are not distinct UTF-8 texts";
static const char BAD_ROW[] = "a row's entries do not fit its length, or its terms are not numbered by first use";

static const char *load_terms(Body *body, const Parts *parts)
{
    uint64_t start = 0;
    uint32_t i;
    if (reserve_slots(body, parts->terms)) return OUT_OF_MEMORY;
    for (i = 0; i < parts->terms; i++) {
        uint32_t length = get32(parts->term_lengths + 4 * (size_t)i), id = i;
        PyObject *string;
        Text text;
        if (length > parts->text_bytes - start) return BAD_TERM;
        string = PyUnicode_DecodeUTF8((const char *)parts->text + start, (Py_ssize_t)length, "strict");
        if (!string || text_of(string, &text)) {
            int full = PyErr_ExceptionMatches(PyExc_MemoryError);
            PyErr_Clear();
            Py_XDECREF(string);
            return full ? OUT_OF_MEMORY : BAD_TERM;
        }
        id = intern_term(body, &text);
        Py_DECREF(string);
        if (id == NEVER) return OUT_OF_MEMORY;
        if (id != i) return BAD_TERM;
        start += length;
    }
    return start == parts->text_bytes ? NULL : BAD_TERM;
}

/* Check one row's words; count its terms in count[], where stamp[] tells the row that last used a term. */
static int check_row(const Body *body, uint32_t row, uint32_t end, uint32_t terms, uint32_t *next, uint32_t *stamp)
{
    uint32_t at = body->row[row].start, length = length_of(body, row), state = state_of(body, row), term, tf;
    uint64_t sum = 0;
    int capped = 0;
    if (state == ERASED) return at == end && length == 0;
    if (state > ERASED || at == end || length == 0 || length > LENGTH_MAX) return 0;
    while (at < end) {
        uint32_t word = body->forward[at++];
        term = word & TERM_MASK;
        tf = word >> TF_SHIFT;
        if (tf == 0) {
            if (at == end) return 0;
            tf = body->forward[at++];
            if (tf < 4 || tf > TF_MAX) return 0;
        }
        if (term > *next || term >= terms || stamp[term] == row + 1) return 0;
        if (term == *next) ++*next;
        stamp[term] = row + 1;
        sum += tf;
        capped |= tf == TF_MAX;
    }
    if (length == LENGTH_MAX) return capped || sum >= LENGTH_MAX;
    return capped ? sum <= length : sum == length;
}

static const char *load_rows(Body *body, const Parts *parts, uint32_t *stamp)
{
    uint64_t start = 0;
    uint32_t row, i, next = 0;
    if (reserve_rows(body, parts->rows) || reserve(&body->forward, &body->word_capacity, parts->word_count, 4, NEVER))
        return OUT_OF_MEMORY;
    for (i = 0; i < parts->word_count; i++) body->forward[i] = get32(parts->words + 4 * (size_t)i);
    for (row = 0; row < parts->rows; row++) {
        uint64_t end = start + get32(parts->counts + 4 * (size_t)row);
        if (end > parts->word_count) return BAD_ROW;
        body->row[row].start = (uint32_t)start;
        body->row[row].length = get32(parts->lengths + 4 * (size_t)row);
        if (!check_row(body, row, (uint32_t)end, parts->terms, &next, stamp)) return BAD_ROW;
        start = end;
    }
    if (start != parts->word_count || next != parts->terms) return BAD_ROW;
    body->rows = parts->rows;
    body->words = parts->word_count;
    return NULL;
}

static const char *build_postings(Body *body)
{
    uint32_t row, id, term, tf;
    for (row = 0; row < body->rows; row++) {
        uint32_t at = body->row[row].start, end = entries_end(body, row);
        while (at < end) {
            at = read_entry(body->forward, at, &term, &tf);
            body->term[term].capacity++;
        }
    }
    for (id = 0; id < body->terms; id++) {
        Term *one = &body->term[id];
        one->capacity--; /* it began at 1 */
        if (one->capacity > 1 && !(one->at.block = malloc((size_t)one->capacity * 6))) {
            for (; id < body->terms; id++) body->term[id].capacity = 1;
            return OUT_OF_MEMORY;
        }
    }
    for (row = 0; row < body->rows; row++) {
        uint32_t at = body->row[row].start, end = entries_end(body, row), length = length_of(body, row);
        int live = state_of(body, row) == LIVE;
        if (at < end && reserve_pairs(body, end - at)) return OUT_OF_MEMORY;
        while (at < end) {
            at = read_entry(body->forward, at, &term, &tf);
            append_posting(body, term, row, tf, intern_pair(body, tf, length));
            body->term[term].df += live;
        }
        body->documents += live;
        body->total_length += live ? length : 0;
    }
    for (id = 0; id < body->terms; id++) make_dense(body, id);
    return NULL;
}

/* NULL when the body was filled; else why not, and the body is empty. */
static const char *load_body(Body *body, const unsigned char *bytes, uint64_t size)
{
    Parts parts;
    uint32_t *stamp;
    const char *problem = find_parts(bytes, size, &parts);
    if (problem) return problem;
    if (body_open(body, parts.k1, parts.b)) return OUT_OF_MEMORY;
    stamp = calloc((size_t)parts.terms + 1, sizeof *stamp);
    problem = stamp ? load_terms(body, &parts) : OUT_OF_MEMORY;
    if (!problem) {
        Py_BEGIN_ALLOW_THREADS
        problem = load_rows(body, &parts, stamp);
        if (!problem) problem = build_postings(body);
        Py_END_ALLOW_THREADS
    }
    free(stamp);
    if (problem) body_free(body);
    return problem;
}

/* Rebuild from the forward index, without erased rows' postings and terms that no row holds. */
static int compact(Body *body)
{
    Body fresh;
    const char *problem;
    PyObject *bytes = snapshot(body);
    if (!bytes) return -1;
    problem = load_body(&fresh, (unsigned char *)PyBytes_AsString(bytes), (uint64_t)PyBytes_Size(bytes));
    Py_DECREF(bytes);
    if (problem == OUT_OF_MEMORY) {
        PyErr_NoMemory();
        return -1;
    }
    if (problem) {
        PyErr_Format(PyExc_RuntimeError, "the lexical index is inconsistent: %s", problem);
        return -1;
    }
    body_free(body);
    *body = fresh;
    return 0;
}

/* ---- search ----------------------------------------------------------------------------------- */

typedef struct {
    const uint32_t *rows;
    const uint16_t *codes, *dense;
    uint32_t count, cursor, id, df;
    double weight;
    double rest; /* no row gains more than this from this term and those after it */
} Sought;

typedef struct {
    double score;
    uint32_t row;
} Found;

typedef struct {
    const Body *body;
    Sought *sought; /* by (df, text); one more, with a rest of 0, ends it */
    uint32_t terms;
    uint64_t postings;
    Found *heap; /* the worst on top, once it is full */
    size_t found, k;
    double theta; /* rows that score less are out */
    const int64_t *valid_from, *valid_to, *superseded_from;
    int64_t at;
    const uint8_t *mask;
    uint64_t work, work_max;
} Query;

static inline int is_eligible(const Query *query, uint32_t row)
{
    if (state_of(query->body, row) != LIVE) return 0;
    if (query->mask && !query->mask[row]) return 0;
    return !query->valid_from || (query->valid_from[row] <= query->at && query->at < query->valid_to[row] &&
                                  query->at < query->superseded_from[row]);
}

static inline int is_worse(const Found *left, const Found *right)
{
    return left->score < right->score || (left->score == right->score && left->row > right->row);
}

static void sift_down(Found *heap, size_t count, size_t at)
{
    Found moved = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && is_worse(&heap[child + 1], &heap[child])) child++;
        if (!is_worse(&heap[child], &moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Take an eligible row in if it is among the k best so far. */
static inline void offer(Query *query, uint32_t row, double score)
{
    Found candidate = {score, row};
    size_t i;
    if (score < query->theta) return;
    if (query->found == query->k && is_worse(&candidate, &query->heap[0])) return;
    if (!is_eligible(query, row)) return;
    if (query->found < query->k) {
        query->heap[query->found++] = candidate;
        if (query->found < query->k) return;
        for (i = query->k / 2 + 1; i-- > 0;) sift_down(query->heap, query->k, i);
    } else {
        query->heap[0] = candidate;
        sift_down(query->heap, query->k, 0);
    }
    if (query->theta < query->heap[0].score) query->theta = query->heap[0].score;
}

static double wide_share(const Body *body, uint32_t term, uint32_t row)
{
    return share_of(tf_in_row(body, term, row), norm_of(body, length_of(body, row)));
}

/* An erased row may be met with CODE_WIDE: its tf is 0, and it is refused later. */
static inline double gain(const Body *body, const Sought *sought, uint32_t row, uint16_t code)
{
    if (code == CODE_WIDE) return sought->weight * wide_share(body, sought->id, row);
    return sought->weight * body->share[code];
}

/* The first place from the cursor whose row is not below the sought one: doubling steps, then halving. */
static inline uint32_t gallop(const uint32_t *rows, uint32_t from, uint32_t count, uint32_t row)
{
    uint32_t step = 1, low = from, length;
    if (from >= count || rows[from] >= row) return from;
    while ((uint64_t)low + step < count && rows[low + step] < row) {
        low += step;
        step *= 2;
    }
    length = (uint64_t)low + step < count ? step : count - low; /* rows[low] < row <= rows[low + length] */
    while (length > 1) {
        uint32_t half = length / 2;
        low += rows[low + half] < row ? half : 0;
        length -= half;
    }
    return low + 1;
}

static inline uint16_t probe(Sought *sought, uint32_t row)
{
    sought->cursor = gallop(sought->rows, sought->cursor, sought->count, row);
    if (sought->cursor < sought->count && sought->rows[sought->cursor] == row) return sought->codes[sought->cursor];
    return CODE_NONE;
}

/* Rows, ascending, that the essential terms left in the race. They go on term by term, so that loads overlap
 * and no branch depends on a single row's score. theta is that of the batch's start: a batch is small. */
typedef struct {
    uint32_t count;
    uint32_t row[BATCH];
    double score[BATCH];
} Batch;

static inline void keep(Batch *batch, uint32_t row, double score, int wanted)
{
    batch->row[batch->count] = row;
    batch->score[batch->count] = score;
    batch->count += (uint32_t)wanted;
}

static void drop_losers(Batch *batch, double rest, double theta)
{
    uint32_t i, count = batch->count;
    batch->count = 0;
    for (i = 0; i < count; i++) keep(batch, batch->row[i], batch->score[i], batch->score[i] + rest >= theta);
}

/* Add the probed terms to the scores, as long as a row can still get in, and offer those that can. */
static void finish(Query *query, uint32_t essential, Batch *batch)
{
    const Body *body = query->body;
    uint32_t i, j;
    for (i = essential; i < query->terms && batch->count; i++) {
        Sought *sought = &query->sought[i];
        drop_losers(batch, sought->rest, query->theta);
        query->work += batch->count;
        if (sought->dense)
            for (j = 0; j < batch->count; j++)
                batch->score[j] += gain(body, sought, batch->row[j], sought->dense[batch->row[j]]);
        else
            for (j = 0; j < batch->count; j++)
                batch->score[j] += gain(body, sought, batch->row[j], probe(sought, batch->row[j]));
    }
    for (j = 0; j < batch->count; j++) offer(query, batch->row[j], batch->score[j]);
    batch->count = 0;
}

static void scan_single(Query *query)
{
    Sought *first = &query->sought[0];
    const double rest = query->sought[1].rest;
    Batch batch;
    uint32_t i = first->cursor, stop;
    batch.count = 0;
    while (i < first->count && query->work <= query->work_max) {
        stop = first->count - i > 4096 ? i + 4096 : first->count;
        query->work += stop - i;
        for (; i < stop; i++) {
            double score = gain(query->body, first, first->rows[i], first->codes[i]);
            keep(&batch, first->rows[i], score, score + rest >= query->theta);
            if (batch.count == BATCH) finish(query, 1, &batch);
        }
    }
    finish(query, 1, &batch);
}

static void add_postings(const Query *query, Sought *sought, uint32_t low, double *sums, uint64_t *touched)
{
    const uint32_t *rows = sought->rows;
    const uint16_t *codes = sought->codes;
    const double *share = query->body->share, weight = sought->weight; /* kept in registers across the stores */
    uint32_t i = sought->cursor, stop = gallop(rows, i, sought->count, low + WINDOW);
    sought->cursor = stop;
    for (; i < stop; i++) {
        uint32_t at = rows[i] - low;
        if (codes[i] == CODE_WIDE) sums[at] += weight * wide_share(query->body, sought->id, rows[i]);
        else sums[at] += weight * share[codes[i]];
        touched[at >> 6] |= (uint64_t)1 << (at & 63);
    }
}

static inline uint32_t lowest_bit(uint64_t bits)
{
#if defined(__GNUC__) || defined(__clang__)
    return (uint32_t)__builtin_ctzll(bits);
#else
    uint32_t at = 0;
    while (!(bits & 1)) {
        bits >>= 1;
        at++;
    }
    return at;
#endif
}

/* Score WINDOW rows from low by the essential terms, then finish those that can still get in. */
static void scan_window(Query *query, uint32_t essential, uint32_t low, double *sums, uint64_t *touched)
{
    const double rest = query->sought[essential].rest;
    Batch batch;
    uint32_t i, word;
    batch.count = 0;
    for (i = 0; i < essential; i++) {
        uint32_t before = query->sought[i].cursor;
        add_postings(query, &query->sought[i], low, sums, touched);
        query->work += query->sought[i].cursor - before;
    }
    for (word = 0; word < WINDOW / 64; word++) {
        uint64_t bits = touched[word];
        touched[word] = 0;
        for (; bits; bits &= bits - 1) {
            uint32_t at = word * 64 + lowest_bit(bits);
            double score = sums[at];
            sums[at] = 0.0;
            keep(&batch, low + at, score, score + rest >= query->theta);
            if (batch.count == BATCH) finish(query, essential, &batch);
        }
    }
    finish(query, essential, &batch);
}

/* The number of terms whose lists must be read: a row that holds none of them cannot reach theta. */
static uint32_t essential_terms(const Query *query, uint32_t essential)
{
    while (essential && query->sought[essential - 1].rest < query->theta) essential--;
    return essential;
}

static void scan(Query *query)
{
    double sums[WINDOW];
    uint64_t touched[WINDOW / 64];
    uint32_t essential = query->terms, i;
    memset(sums, 0, (query->body->rows < WINDOW ? query->body->rows : WINDOW) * sizeof *sums);
    memset(touched, 0, sizeof touched);
    while (query->work <= query->work_max) {
        uint32_t low = NEVER;
        essential = essential_terms(query, essential);
        if (essential == 1) scan_single(query);
        if (essential <= 1) return;
        for (i = 0; i < essential; i++) {
            const Sought *sought = &query->sought[i];
            if (sought->cursor < sought->count && sought->rows[sought->cursor] < low) low = sought->rows[sought->cursor];
        }
        if (low == NEVER) return;
        scan_window(query, essential, low, sums, touched);
    }
}

/* Raise theta before the scan: k eligible rows reach the k-th best score of any one term. */
static void prime(Query *query)
{
    double theta = 0.0;
    uint32_t i, j;
    uint64_t budget = PRIME_POSTINGS;
    for (i = 0; i < query->terms; i++) {
        const Sought *sought = &query->sought[i];
        if (sought->count < query->k) continue;
        if (sought->count > budget) break;
        budget -= sought->count;
        query->work += sought->count;
        query->theta = theta;
        query->found = 0;
        for (j = 0; j < sought->count; j++)
            offer(query, sought->rows[j], gain(query->body, sought, sought->rows[j], sought->codes[j]));
        if (theta < query->theta) theta = query->theta;
    }
    query->theta = theta;
    query->found = 0;
}

static double bound_of(const Body *body, const Term *term, double weight)
{
    double best = 0.0;
    uint32_t level;
    for (level = 0; level < 4; level++) {
        if (term->least_length[level] != NEVER) {
            double share = share_of(level < 3 ? level + 1 : term->most_tf, norm_of(body, term->least_length[level]));
            if (share > best) best = share;
        }
    }
    return weight * best;
}

/* Score one row through the forward index; 0 where no term is in it. value has a place per term. */
static double score_row(const Query *query, uint32_t row, uint64_t filter, double *value)
{
    const Body *body = query->body;
    const double norm = norm_of(body, length_of(body, row));
    uint32_t at = body->row[row].start, end = entries_end(body, row), term, tf, i, matched = 0;
    double score = 0.0;
    while (at < end && matched < query->terms) {
        at = read_entry(body->forward, at, &term, &tf);
        if (!(filter >> (term & 63) & 1)) continue;
        for (i = 0; i < query->terms && query->sought[i].id != term; i++) {
        }
        if (i == query->terms) continue;
        if (!matched) memset(value, 0, query->terms * sizeof *value);
        value[i] = query->sought[i].weight * share_of(tf, norm);
        matched++;
    }
    if (matched)
        for (i = 0; i < query->terms; i++) score += value[i];
    return score;
}

static uint64_t filter_of(const Query *query)
{
    uint64_t filter = 0;
    uint32_t i;
    for (i = 0; i < query->terms; i++) filter |= (uint64_t)1 << (query->sought[i].id & 63);
    return filter;
}

static void walk(Query *query, const int32_t *rows, size_t count, double *value)
{
    uint64_t filter = filter_of(query);
    size_t i;
    for (i = 0; i < count && query->work <= query->work_max; i++) {
        double score;
        query->work++;
        if (state_of(query->body, (uint32_t)rows[i]) != LIVE) continue;
        score = score_row(query, (uint32_t)rows[i], filter, value);
        if (score > 0.0) offer(query, (uint32_t)rows[i], score);
    }
}

/* ---- Python: reading arguments ---------------------------------------------------------------- */

static Py_ssize_t sequence_size(PyObject *terms)
{
    if (PyList_Check(terms)) return PyList_Size(terms);
    if (PyTuple_Check(terms)) return PyTuple_Size(terms);
    PyErr_SetString(PyExc_TypeError, "expected a list or tuple");
    return -1;
}

static PyObject *sequence_item(PyObject *terms, Py_ssize_t at)
{
    return PyList_Check(terms) ? PyList_GetItem(terms, at) : PyTuple_GetItem(terms, at);
}

static int read_row(const Body *body, PyObject *object, uint32_t *row)
{
    long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
        PyErr_Clear();
    }
    if (value < 0 || value >= (long long)body->rows) {
        PyErr_Format(PyExc_ValueError, "row must be from 0 to %lld, got %S", (long long)body->rows - 1, object);
        return -1;
    }
    *row = (uint32_t)value;
    return 0;
}

static int may_change(const Index *self)
{
    if (!self->readers) return 1;
    PyErr_SetString(PyExc_RuntimeError,
                    "the index is being searched by another thread: hold the writer's lock to change it");
    return 0;
}

static int read_buffer(PyObject *object, Py_buffer *buffer, Py_ssize_t size, const char *formats, const char *what)
{
    const char *format;
    if (PyObject_GetBuffer(object, buffer, PyBUF_ND | PyBUF_FORMAT)) return -1;
    format = buffer->format ? buffer->format : "B";
    if (*format == '<' || *format == '=' || *format == '@') format++;
    if (buffer->ndim == 1 && buffer->itemsize == size && *format && !format[1] && strchr(formats, *format)) return 0;
    PyErr_Format(PyExc_TypeError, "%s must be a one-dimensional buffer of %zd-byte integers", what, size);
    PyBuffer_Release(buffer);
    return -1;
}

static int is_long_enough(const Py_buffer *buffer, uint32_t rows, const char *what)
{
    Py_ssize_t count = buffer->len / buffer->itemsize;
    if (count >= (Py_ssize_t)rows) return 1;
    PyErr_Format(PyExc_ValueError, "%s has %zd %s, the index has %lld %s", what, count,
                 count == 1 ? "entry" : "entries", (long long)rows, rows == 1 ? "row" : "rows");
    return 0;
}

/* What a search holds on to: released in one place. */
typedef struct {
    Query query;
    Py_buffer buffer[5]; /* valid_from, valid_to, superseded_from, mask, rows */
    int buffers, has_rows;
    double *value;
    Sought few[12];
} Search;

static void search_close(Search *search)
{
    while (search->buffers) PyBuffer_Release(&search->buffer[--search->buffers]);
    if (search->query.sought != search->few) PyMem_Free(search->query.sought);
    PyMem_Free(search->query.heap);
    PyMem_Free(search->value);
}

static int by_frequency_and_text(const Body *body, const Sought *left, const Sought *right)
{
    const Term *one = &body->term[left->id], *other = &body->term[right->id];
    uint32_t shorter = one->text_length < other->text_length ? one->text_length : other->text_length;
    int order;
    if (left->df != right->df) return left->df < right->df ? -1 : 1;
    order = memcmp(body->text + one->text, body->text + other->text, shorter); /* UTF-8 sorts by code point */
    return order ? order : (one->text_length > other->text_length) - (one->text_length < other->text_length);
}

static int by_id(const void *left, const void *right)
{
    uint32_t one = ((const Sought *)left)->id, other = ((const Sought *)right)->id;
    return (one > other) - (one < other);
}

/* A merge sort: a query may be a whole document, and qsort has no place for the body. */
static void sort_sought(const Body *body, Sought *sought, Sought *spare, uint32_t count)
{
    uint32_t i, j, half = count / 2, at = 0;
    if (count < 12) {
        for (i = 1; i < count; i++) {
            Sought moved = sought[i];
            for (j = i; j && by_frequency_and_text(body, &moved, &sought[j - 1]) < 0; j--) sought[j] = sought[j - 1];
            sought[j] = moved;
        }
        return;
    }
    sort_sought(body, sought, spare, half);
    sort_sought(body, sought + half, spare, count - half);
    memcpy(spare, sought, half * sizeof *spare);
    for (i = 0, j = half; i < half;)
        sought[at++] = j < count && by_frequency_and_text(body, &sought[j], &spare[i]) < 0 ? sought[j++] : spare[i++];
}

/* Look the terms up and put the distinct known ones in order. */
static int seek_terms(Search *search, PyObject *terms)
{
    Query *query = &search->query;
    const Body *body = query->body;
    Py_ssize_t size = sequence_size(terms), i;
    uint32_t count = 0, j;
    Text text;
    Sought *sought = search->few;
    if (size < 0) return -1;
    if (size > 11) { /* room for a spare half to sort with */
        sought = PyMem_Calloc((size_t)size + 1 + (size_t)size / 2 + 1, sizeof *sought);
        if (!sought) {
            PyErr_NoMemory();
            return -1;
        }
    }
    query->sought = sought;
    for (i = 0; i < size; i++) {
        uint32_t id;
        PyObject *item = sequence_item(terms, i);
        if (!item || text_of(item, &text)) return -1;
        id = find_term(body, &text);
        if (id == NEVER || body->term[id].df == 0) continue;
        if (size <= 11) {
            for (j = 0; j < count && sought[j].id != id; j++) {
            }
            if (j < count) continue;
        }
        sought[count++].id = id;
    }
    if (size > 11 && count) {
        qsort(sought, count, sizeof *sought, by_id);
        for (i = 1, j = 1; i < (Py_ssize_t)count; i++)
            if (sought[i].id != sought[j - 1].id) sought[j++] = sought[i];
        count = j;
    }
    for (j = 0; j < count; j++) sought[j].df = body->term[sought[j].id].df;
    sort_sought(body, sought, sought + size + 1, count);
    query->terms = count;
    return 0;
}

static double idf(int64_t documents, uint32_t df)
{
    return log(1.0 + ((double)(documents - df) + 0.5) / ((double)df + 0.5));
}

static void weigh_terms(Query *query)
{
    const Body *body = query->body;
    uint32_t i;
    for (i = 0; i < query->terms; i++) {
        Sought *sought = &query->sought[i];
        Term *term = &body->term[sought->id];
        sought->rows = rows_of(term);
        sought->codes = codes_of(term);
        sought->dense = term->dense ? body->dense[term->dense - 1].codes : NULL;
        sought->count = term->count;
        sought->cursor = 0;
        sought->weight = idf(body->documents, sought->df);
        sought->rest = INFINITY;
        query->postings += term->count;
    }
    query->sought[query->terms].rest = 0.0;
}

static void bound_terms(Query *query)
{
    const double raise = 1.0 + MARGIN * (1.0 + query->terms / 1000.0);
    double rest = 0.0;
    uint32_t i;
    for (i = query->terms; i-- > 0;) {
        Sought *sought = &query->sought[i];
        rest += bound_of(query->body, &query->body->term[sought->id], sought->weight);
        sought->rest = rest * raise;
    }
}

static void scan_postings(Index *self, Query *query)
{
    uint64_t ahead = 0;
    uint32_t i, essential;
    if (query->postings > PRUNE_POSTINGS && query->k < query->postings) {
        bound_terms(query);
        prime(query);
    }
    essential = essential_terms(query, query->terms);
    for (i = 0; i < essential; i++) ahead += query->sought[i].count;
    if (ahead < LONG_SCAN) {
        scan(query);
        return;
    }
    self->readers++;
    Py_BEGIN_ALLOW_THREADS
    scan(query);
    Py_END_ALLOW_THREADS
    self->readers--;
}

static int check_walk(const Body *body, const int32_t *rows, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++) {
        if (rows[i] < 0 || (uint32_t)rows[i] >= body->rows) {
            PyErr_Format(PyExc_ValueError, "rows must be from 0 to %lld, got %d", (long long)body->rows - 1, rows[i]);
            return -1;
        }
        if (i && rows[i] <= rows[i - 1]) {
            PyErr_Format(PyExc_ValueError, "rows must ascend, got %d after %d", rows[i], rows[i - 1]);
            return -1;
        }
    }
    return 0;
}

static int walk_rows(Index *self, Search *search)
{
    const Py_buffer *buffer = &search->buffer[search->buffers - 1];
    const int32_t *rows = buffer->buf;
    size_t count = (size_t)(buffer->len / 4);
    if (check_walk(&self->body, rows, count)) return -1;
    search->value = PyMem_Malloc((search->query.terms + 1) * sizeof *search->value);
    if (!search->value) {
        PyErr_NoMemory();
        return -1;
    }
    if (count < LONG_WALK) {
        walk(&search->query, rows, count, search->value);
        return 0;
    }
    self->readers++;
    Py_BEGIN_ALLOW_THREADS
    walk(&search->query, rows, count, search->value);
    Py_END_ALLOW_THREADS
    self->readers--;
    return 0;
}

static int best_first(const void *left, const void *right)
{
    return is_worse(left, right) ? 1 : is_worse(right, left) ? -1 : 0;
}

static void sort_found(Found *found, size_t count)
{
    size_t i, j;
    if (count > 32) {
        qsort(found, count, sizeof *found, best_first);
        return;
    }
    for (i = 1; i < count; i++) {
        Found moved = found[i];
        for (j = i; j && is_worse(&found[j - 1], &moved); j--) found[j] = found[j - 1];
        found[j] = moved;
    }
}

static PyObject *answer(Query *query)
{
    PyObject *rows, *scores, *result = NULL;
    size_t i;
    sort_found(query->heap, query->found);
    rows = PyList_New((Py_ssize_t)query->found);
    scores = PyList_New((Py_ssize_t)query->found);
    for (i = 0; rows && scores && i < query->found; i++) {
        PyObject *row = PyLong_FromLong((long)query->heap[i].row);
        PyObject *score = PyFloat_FromDouble(query->heap[i].score);
        if (!row || !score) {
            Py_XDECREF(row);
            Py_XDECREF(score);
            Py_CLEAR(rows);
            break;
        }
        PyList_SetItem(rows, (Py_ssize_t)i, row);
        PyList_SetItem(scores, (Py_ssize_t)i, score);
    }
    if (rows && scores) result = Py_BuildValue("(OOK)", rows, scores, (unsigned long long)query->work);
    Py_XDECREF(rows);
    Py_XDECREF(scores);
    return result;
}

static PyObject *work_exceeded(const Query *query)
{
    PyObject *module = PyImport_ImportModule("perdure.lexical.bm25"), *type = NULL, *error = NULL;
    if (module) type = PyObject_GetAttrString(module, "WorkExceeded");
    if (type)
        error = PyObject_CallFunction(type, "KK", (unsigned long long)query->work, (unsigned long long)query->work_max);
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

/* ---- Python: search --------------------------------------------------------------------------- */

enum { ARG_TERMS, ARG_K, ARG_TIMES, ARG_AT, ARG_MASK, ARG_ROWS, ARG_WORK_MAX, ARG_COUNT };
static const char *const ARGUMENT[ARG_COUNT] = {"terms", "k", "times", "at", "mask", "rows", "work_max"};

static int read_arguments(PyObject *const *args, Py_ssize_t positional, PyObject *names, PyObject **argument)
{
    Py_ssize_t i, named = names ? PyTuple_Size(names) : 0;
    int j;
    if (positional > 2) {
        PyErr_Format(PyExc_TypeError, "search() takes 2 positional arguments, got %zd", positional);
        return -1;
    }
    for (i = 0; i < positional; i++) argument[i] = args[i];
    for (i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        for (j = 0; j < ARG_COUNT && PyUnicode_CompareWithASCIIString(name, ARGUMENT[j]); j++) {
        }
        if (j == ARG_COUNT || argument[j]) {
            PyErr_Format(PyExc_TypeError, "search() has no argument '%U', or has it twice", name);
            return -1;
        }
        argument[j] = args[positional + i];
    }
    if (argument[ARG_TERMS] && argument[ARG_K]) return 0;
    PyErr_SetString(PyExc_TypeError, "search() needs terms and k");
    return -1;
}

static int given(PyObject *argument) { return argument && argument != Py_None; }

static int read_times(Search *search, PyObject *times)
{
    static const char *const what[3] = {"times[0] (valid_from)", "times[1] (valid_to)", "times[2] (superseded_from)"};
    Query *query = &search->query;
    int i;
    if (!PyTuple_Check(times) || PyTuple_Size(times) != 3) {
        PyErr_SetString(PyExc_TypeError, "times must be a tuple of valid_from, valid_to and superseded_from");
        return -1;
    }
    for (i = 0; i < 3; i++) {
        Py_buffer *buffer = &search->buffer[search->buffers];
        if (read_buffer(PyTuple_GetItem(times, i), buffer, 8, "ql", what[i])) return -1;
        search->buffers++;
        if (!is_long_enough(buffer, query->body->rows, what[i])) return -1;
    }
    query->valid_from = search->buffer[0].buf;
    query->valid_to = search->buffer[1].buf;
    query->superseded_from = search->buffer[2].buf;
    return 0;
}

static int read_limits(Search *search, PyObject **argument)
{
    Query *query = &search->query;
    Py_ssize_t k = PyNumber_AsSsize_t(argument[ARG_K], NULL);
    if (k == -1 && PyErr_Occurred()) return -1;
    if (k < 0) {
        PyErr_Format(PyExc_ValueError, "k must be at least 0, got %zd", k);
        return -1;
    }
    query->k = k < (int64_t)query->body->documents ? (size_t)k : (size_t)query->body->documents;
    query->work_max = (uint64_t)1 << 62;
    if (argument[ARG_AT]) query->at = PyLong_AsLongLong(argument[ARG_AT]);
    if (PyErr_Occurred()) return -1;
    if (argument[ARG_WORK_MAX]) {
        long long limit = PyLong_AsLongLong(argument[ARG_WORK_MAX]);
        if (limit == -1 && PyErr_Occurred()) return -1;
        if (limit < 0) {
            PyErr_Format(PyExc_ValueError, "work_max must be at least 0, got %lld", limit);
            return -1;
        }
        query->work_max = (uint64_t)limit;
    }
    return 0;
}

static int read_filters(Search *search, PyObject **argument)
{
    Query *query = &search->query;
    if (given(argument[ARG_TIMES]) && read_times(search, argument[ARG_TIMES])) return -1;
    if (given(argument[ARG_MASK])) {
        Py_buffer *buffer = &search->buffer[search->buffers];
        if (read_buffer(argument[ARG_MASK], buffer, 1, "Bb?", "mask")) return -1;
        search->buffers++;
        if (!is_long_enough(buffer, query->body->rows, "mask")) return -1;
        query->mask = buffer->buf;
    }
    if (given(argument[ARG_ROWS])) {
        if (read_buffer(argument[ARG_ROWS], &search->buffer[search->buffers], 4, "il", "rows")) return -1;
        search->buffers++;
        search->has_rows = 1;
    }
    return 0;
}

static int run_search(Index *self, Search *search)
{
    Query *query = &search->query;
    if (query->terms == 0 || query->k == 0)
        return search->has_rows ? check_walk(&self->body, search->buffer[search->buffers - 1].buf,
                                             (size_t)(search->buffer[search->buffers - 1].len / 4))
                                : 0;
    refresh_shares(&self->body);
    weigh_terms(query);
    if (query->k > query->postings) query->k = (size_t)query->postings;
    query->heap = PyMem_Malloc(query->k * sizeof *query->heap);
    if (!query->heap) {
        PyErr_NoMemory();
        return -1;
    }
    if (search->has_rows) return walk_rows(self, search);
    scan_postings(self, query);
    return 0;
}

static PyObject *index_search(Index *self, PyObject *const *args, Py_ssize_t positional, PyObject *names)
{
    PyObject *argument[ARG_COUNT] = {0}, *result = NULL;
    Search search;
    memset(&search, 0, offsetof(Search, few));
    search.query.sought = search.few;
    search.query.body = &self->body;
    if (!read_arguments(args, positional, names, argument) && !read_limits(&search, argument) &&
        !read_filters(&search, argument) && !seek_terms(&search, argument[ARG_TERMS]) && !run_search(self, &search))
        result = search.query.work > search.query.work_max ? work_exceeded(&search.query) : answer(&search.query);
    search_close(&search);
    return result;
}

static PyObject *scores_of(Search *search, PyObject *rows)
{
    Query *query = &search->query;
    const Body *body = query->body;
    Py_ssize_t size = sequence_size(rows), i;
    uint64_t filter = filter_of(query);
    PyObject *result = size < 0 ? NULL : PyList_New(size);
    for (i = 0; result && i < size; i++) {
        uint32_t row;
        PyObject *item = sequence_item(rows, i), *score = NULL;
        if (item && !read_row(body, item, &row)) {
            if (state_of(body, row) == LIVE)
                score = PyFloat_FromDouble(score_row(query, row, filter, search->value));
            else
                PyErr_Format(PyExc_ValueError, "row %lld is not live", (long long)row);
        }
        if (score) PyList_SetItem(result, i, score);
        else Py_CLEAR(result);
    }
    return result;
}

static PyObject *index_scores(Index *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *result = NULL;
    Search search;
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "scores() takes terms and rows, got %zd arguments", count);
        return NULL;
    }
    memset(&search, 0, offsetof(Search, few));
    search.query.sought = search.few;
    search.query.body = &self->body;
    if (!seek_terms(&search, args[0])) {
        if (search.query.terms) refresh_shares(&self->body);
        weigh_terms(&search.query);
        search.value = PyMem_Malloc((search.query.terms + 1) * sizeof *search.value);
        result = search.value ? scores_of(&search, args[1]) : PyErr_NoMemory();
    }
    search_close(&search);
    return result;
}

/* ---- Python: changes -------------------------------------------------------------------------- */

/* ids, entries and the table of repeats, in one block that the caller frees. */
static uint32_t *add_block(PyObject *terms, Py_ssize_t size, uint32_t *seen_size)
{
    uint64_t slots = 64;
    Text text;
    Py_ssize_t i;
    uint32_t *block;
    for (i = 0; i < size; i++) { /* every term is checked before the first is taken in */
        PyObject *item = sequence_item(terms, i);
        if (!item || text_of(item, &text)) return NULL;
    }
    while (slots < (uint64_t)size * 2) slots *= 2;
    *seen_size = (uint32_t)slots;
    block = size < (1 << 28) ? malloc(((size_t)slots + 3 * (size_t)size) * sizeof *block) : NULL;
    if (!block) PyErr_NoMemory();
    else memset(block, 0, (size_t)slots * sizeof *block);
    return block;
}

static PyObject *index_add(Index *self, PyObject *terms)
{
    Body *body = &self->body;
    Py_ssize_t size = sequence_size(terms), i;
    uint32_t *seen, *ids, count, slots, length;
    Entry *entries;
    Text text;
    int failed = 0;
    if (size < 0 || !may_change(self) || !(seen = add_block(terms, size, &slots))) return NULL;
    entries = (Entry *)(seen + slots);
    ids = (uint32_t *)(entries + size);
    for (i = 0; i < size && !failed; i++)
        failed = text_of(sequence_item(terms, i), &text) || (ids[i] = intern_term(body, &text)) == NEVER;
    if (!failed) {
        count = count_terms(ids, (uint32_t)size, entries, seen, slots - 1);
        length = size < (Py_ssize_t)LENGTH_MAX ? (uint32_t)size : LENGTH_MAX;
        failed = append_row(body, entries, count, length);
    }
    free(seen);
    if (failed) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return PyLong_FromLong((long)body->rows - 1);
}

static int read_state(Index *self, PyObject *object, uint32_t *row, uint32_t wanted, const char *problem)
{
    if (!may_change(self) || read_row(&self->body, object, row)) return -1;
    if (state_of(&self->body, *row) == wanted) return 0;
    PyErr_Format(PyExc_ValueError, "row %lld %s", (long long)*row, problem);
    return -1;
}

static PyObject *index_hide(Index *self, PyObject *object)
{
    uint32_t row;
    if (read_state(self, object, &row, LIVE, "is not live: only a live row can be hidden")) return NULL;
    count_row(&self->body, row, -1);
    self->body.row[row].length |= (uint32_t)HIDDEN << STATE_SHIFT;
    Py_RETURN_NONE;
}

static PyObject *index_show(Index *self, PyObject *object)
{
    uint32_t row;
    if (read_state(self, object, &row, HIDDEN, "is not hidden: only a hidden row can be shown")) return NULL;
    self->body.row[row].length &= LENGTH_MASK;
    count_row(&self->body, row, 1);
    Py_RETURN_NONE;
}

static PyObject *index_compact(Index *self, PyObject *Py_UNUSED(nothing))
{
    if (!may_change(self) || compact(&self->body)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *index_erase(Index *self, PyObject *object)
{
    Body *body = &self->body;
    uint32_t row, at, end, term, tf;
    if (!may_change(self) || read_row(body, object, &row)) return NULL;
    if (state_of(body, row) == ERASED) {
        PyErr_Format(PyExc_ValueError, "row %lld is already erased, or never had terms", (long long)row);
        return NULL;
    }
    if (state_of(body, row) == LIVE) count_row(body, row, -1);
    at = body->row[row].start;
    end = end_of(body, row);
    while (at < end) {
        at = read_entry(body->forward, at, &term, &tf);
        body->dead_postings++;
        if (body->term[term].dense) body->dense[body->term[term].dense - 1].codes[row] = CODE_NONE;
    }
    memset(body->forward + body->row[row].start, 0, (size_t)(end - body->row[row].start) * sizeof *body->forward);
    body->row[row].length = (uint32_t)ERASED << STATE_SHIFT;
    /* The row is gone already; a compaction that finds no memory is tried again at the next erasure. */
    if (body->dead_postings > COMPACT_POSTINGS && body->dead_postings * 4 > body->postings && compact(body)) {
        if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL;
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

/* ---- Python: questions ------------------------------------------------------------------------ */

static PyObject *index_is_live(Index *self, PyObject *object)
{
    uint32_t row;
    if (read_row(&self->body, object, &row)) return NULL;
    return PyBool_FromLong(state_of(&self->body, row) == LIVE);
}

static PyObject *index_document_frequency(Index *self, PyObject *object)
{
    Text text;
    uint32_t term;
    if (text_of(object, &text)) return NULL;
    term = find_term(&self->body, &text);
    return PyLong_FromLong(term == NEVER ? 0 : (long)self->body.term[term].df);
}

static PyObject *index_row_length(Index *self, PyObject *object)
{
    uint32_t row;
    if (read_row(&self->body, object, &row)) return NULL;
    return PyLong_FromLong((long)length_of(&self->body, row));
}

static PyObject *index_row_terms(Index *self, PyObject *object)
{
    const Body *body = &self->body;
    uint32_t row, at, end, term, tf;
    PyObject *result;
    if (read_row(body, object, &row) || !(result = PyList_New(0))) return NULL;
    at = body->row[row].start;
    end = entries_end(body, row);
    while (at < end) {
        PyObject *pair;
        at = read_entry(body->forward, at, &term, &tf);
        pair = Py_BuildValue("(s#I)", body->text + body->term[term].text, (Py_ssize_t)body->term[term].text_length,
                             (unsigned int)tf);
        if (!pair || PyList_Append(result, pair)) {
            Py_XDECREF(pair);
            Py_DECREF(result);
            return NULL;
        }
        Py_DECREF(pair);
    }
    return result;
}

/* Live rows that hold the term, ascending, as int32; and tf / (tf + K) of each as float64. */
static PyObject *index_shares(Index *self, PyObject *object)
{
    Body *body = &self->body;
    Term *term;
    Text text;
    PyObject *rows = NULL, *shares = NULL, *result = NULL;
    int32_t *row_at;
    double *share_at;
    uint32_t id, at, count = 0;
    if (text_of(object, &text)) return NULL;
    id = find_term(body, &text);
    term = id == NEVER ? NULL : &body->term[id];
    rows = PyBytes_FromStringAndSize(NULL, term ? (Py_ssize_t)term->df * 4 : 0);
    shares = PyBytes_FromStringAndSize(NULL, term ? (Py_ssize_t)term->df * 8 : 0);
    if (!rows || !shares) goto done;
    if (term && term->df) {
        refresh_shares(body);
        row_at = (int32_t *)PyBytes_AsString(rows);
        share_at = (double *)PyBytes_AsString(shares);
        for (at = 0; at < term->count && count < term->df; at++) {
            uint32_t row = rows_of(term)[at];
            uint16_t code = codes_of(term)[at];
            double share;
            if (state_of(body, row) != LIVE) continue;
            share = code == CODE_WIDE ? wide_share(body, id, row) : body->share[code];
            row_at[count] = (int32_t)row;
            memcpy(share_at + count, &share, sizeof share);
            count++;
        }
    }
    result = PyTuple_Pack(2, rows, shares);
done:
    Py_XDECREF(rows);
    Py_XDECREF(shares);
    return result;
}

static PyObject *index_dump(Index *self, PyObject *Py_UNUSED(nothing)) { return snapshot(&self->body); }

static PyObject *index_memory_bytes(Index *self, PyObject *Py_UNUSED(nothing))
{
    const Body *body = &self->body;
    uint64_t bytes = sizeof(Index);
    uint32_t i;
    bytes += (uint64_t)body->row_capacity * (sizeof(Row) + body->denses * sizeof(uint16_t));
    bytes += (uint64_t)body->word_capacity * 4 + (uint64_t)body->term_capacity * sizeof(Term);
    bytes += body->text_capacity + ((uint64_t)body->slot_mask + 1) * 4;
    bytes += (uint64_t)body->pair_capacity * 14 + ((uint64_t)body->pair_slot_mask + 1) * 2;
    for (i = 0; i < body->terms; i++) /* and what a common allocator adds to a block */
        if (body->term[i].capacity > 1) bytes += ((uint64_t)body->term[i].capacity * 6 + 8 + 15) / 16 * 16;
    return PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *get_rows(Index *self, void *Py_UNUSED(closure)) { return PyLong_FromLong((long)self->body.rows); }

static PyObject *get_document_count(Index *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(self->body.documents);
}

static PyObject *get_total_length(Index *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(self->body.total_length);
}

static PyObject *get_parameters(Index *self, void *Py_UNUSED(closure))
{
    return Py_BuildValue("(dd)", self->body.k1, self->body.b);
}

/* ---- Python: the type and the module ---------------------------------------------------------- */

static PyObject *index_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"k1", "b", NULL};
    double k1, b;
    Index *self;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "dd", names, &k1, &b)) return NULL;
    if (!(k1 >= 0 && k1 <= K1_MAX && b >= 0 && b <= 1)) {
        PyErr_Format(PyExc_ValueError, "k1 must be from 0 to 1000 and b from 0 to 1, got %R", args);
        return NULL;
    }
    self = (Index *)allocate(type, 0);
    if (!self) return NULL;
    if (body_open(&self->body, k1, b)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void index_dealloc(Index *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    body_free(&self->body);
    release(self);
    Py_DECREF(type);
}

static PyObject *load_checked(PyObject *module, const unsigned char *bytes, size_t size)
{
    Body body;
    uint32_t crc;
    const char *problem = NULL;
    PyObject *type, *made;
    if (size < HEADER_BYTES + 4) problem = "it is too short";
    else if (seal((unsigned char *)bytes, size - 4, &crc)) return NULL;
    else if (crc != get32(bytes + size - 4)) problem = "its checksum does not match";
    if (!problem) problem = load_body(&body, bytes, size);
    if (problem == OUT_OF_MEMORY) return PyErr_NoMemory();
    if (problem) return PyErr_Format(PyExc_ValueError, "the snapshot is damaged: %s. Rebuild the index.", problem);
    type = PyObject_GetAttrString(module, "Index");
    made = type ? PyObject_CallFunction(type, "dd", body.k1, body.b) : NULL;
    Py_XDECREF(type);
    if (!made) {
        body_free(&body);
        return NULL;
    }
    body_free(&((Index *)made)->body);
    ((Index *)made)->body = body;
    return made;
}

static PyObject *kernel_load(PyObject *module, PyObject *blob)
{
    Py_buffer buffer;
    PyObject *result;
    if (PyObject_GetBuffer(blob, &buffer, PyBUF_SIMPLE)) return NULL;
    result = load_checked(module, buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    return result;
}

#define METHOD(name, flags) {#name, (PyCFunction)(void (*)(void))index_##name, flags, NULL}

static PyMethodDef index_methods[] = {
    METHOD(add, METH_O),
    METHOD(hide, METH_O),
    METHOD(show, METH_O),
    METHOD(erase, METH_O),
    METHOD(compact, METH_NOARGS),
    METHOD(is_live, METH_O),
    METHOD(document_frequency, METH_O),
    METHOD(row_length, METH_O),
    METHOD(row_terms, METH_O),
    METHOD(shares, METH_O),
    METHOD(search, METH_FASTCALL | METH_KEYWORDS),
    METHOD(scores, METH_FASTCALL),
    METHOD(dump, METH_NOARGS),
    METHOD(memory_bytes, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef index_attributes[] = {
    {"rows", (getter)get_rows, NULL, NULL, NULL},
    {"document_count", (getter)get_document_count, NULL, NULL, NULL},
    {"total_length", (getter)get_total_length, NULL, NULL, NULL},
    {"parameters", (getter)get_parameters, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot index_slots[] = {
    {Py_tp_doc, "An exact lexical index; perdure.lexical.index.LexicalIndex describes its methods."},
    {Py_tp_new, (void *)index_new},
    {Py_tp_dealloc, (void *)index_dealloc},
    {Py_tp_methods, index_methods},
    {Py_tp_getset, index_attributes},
    {0, NULL},
};

static PyType_Spec index_spec = {"perdure.lexical._kernel.Index", sizeof(Index), 0, Py_TPFLAGS_DEFAULT, index_slots};

static int kernel_exec(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&index_spec);
    int failed = !type || PyModule_AddObjectRef(module, "Index", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyMethodDef kernel_functions[] = {
    {"load", kernel_load, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot kernel_slots[] = {{Py_mod_exec, (void *)kernel_exec}, {0, NULL}};

static struct PyModuleDef kernel_module = {
    PyModuleDef_HEAD_INIT, "_kernel", "The compiled lexical index.", 0, kernel_functions, kernel_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&kernel_module); }
