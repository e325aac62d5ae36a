/* A hash table from an address or a number above 0 to a pointer: open addressing, no tombstones. */

#ifndef BACKPROBE_MAP_H
#define BACKPROBE_MAP_H

#include "core.h"

typedef struct {
    uintptr_t key; /* 0: empty */
    void *value;
} bp_entry;

typedef struct {
    bp_entry *entries;
    size_t room, count;
} bp_map;

static inline size_t bp_map_slot(const bp_map *map, uintptr_t key)
{
    return (size_t)(((uint64_t)key >> 4) * 0x9E3779B97F4A7C15ull >> 20) & (map->room - 1);
}

static inline void *bp_map_get(const bp_map *map, uintptr_t key)
{
    if (!map->room) {
        return NULL;
    }
    for (size_t at = bp_map_slot(map, key); map->entries[at].key; at = (at + 1) & (map->room - 1)) {
        if (map->entries[at].key == key) {
            return map->entries[at].value;
        }
    }
    return NULL;
}

static inline void bp_map_place(bp_map *map, uintptr_t key, void *value)
{
    size_t at = bp_map_slot(map, key);
    while (map->entries[at].key && map->entries[at].key != key) {
        at = (at + 1) & (map->room - 1);
    }
    map->count += map->entries[at].key == 0;
    map->entries[at] = (bp_entry){key, value};
}

/* 0, or -1 with a MemoryError. */
static inline int bp_map_set(bp_map *map, uintptr_t key, void *value)
{
    if ((map->count + 1) * 3 > map->room * 2) {
        bp_map bigger = {NULL, map->room ? map->room * 2 : 256, 0};
        bigger.entries = PyMem_RawCalloc(bigger.room, sizeof(bp_entry));
        if (bigger.entries == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < map->room; i++) {
            if (map->entries[i].key) {
                bp_map_place(&bigger, map->entries[i].key, map->entries[i].value);
            }
        }
        PyMem_RawFree(map->entries);
        *map = bigger;
    }
    bp_map_place(map, key, value);
    return 0;
}

/* What was there, NULL if nothing. */
static inline void *bp_map_pop(bp_map *map, uintptr_t key)
{
    if (!map->room) {
        return NULL;
    }
    size_t mask = map->room - 1, at = bp_map_slot(map, key);
    while (map->entries[at].key && map->entries[at].key != key) {
        at = (at + 1) & mask;
    }
    if (!map->entries[at].key) {
        return NULL;
    }
    void *value = map->entries[at].value;
    size_t hole = at; /* what was pushed behind it moves up, so that no search stops early */
    for (size_t next = (at + 1) & mask; map->entries[next].key; next = (next + 1) & mask) {
        size_t home = bp_map_slot(map, map->entries[next].key);
        if (((next - home) & mask) >= ((next - hole) & mask)) {
            map->entries[hole] = map->entries[next];
            hole = next;
        }
    }
    map->entries[hole].key = 0;
    map->count--;
    return value;
}

static inline void bp_map_free(bp_map *map)
{
    PyMem_RawFree(map->entries);
    *map = (bp_map){NULL, 0, 0};
}

#endif
