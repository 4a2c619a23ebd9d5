/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "map.h"

size_t map_size(uint32_t keys)
{
	return sizeof(struct map) + keys * sizeof(struct map_node);
}

void map_init(struct map *map, uint32_t keys)
{
	map->root = NULL;
	map->free = NULL;
	for (uint32_t i = keys; i-- > 0;) {
		map->nodes[i].child[0] = map->free;
		map->free = &map->nodes[i];
	}
}

bool map_look(const struct map *map, uint32_t key, uint64_t *value)
{
	const struct map_node *node = map->root;

	while (node && node->key != key)
		node = node->child[key > node->key];
	if (node)
		*value = node->value;
	return node;
}

/* ---- Balance ---- */

static int32_t height(const struct map_node *node)
{
	return node ? node->height : 0;
}

static void measure(struct map_node *node)
{
	int32_t left = height(node->child[0]), right = height(node->child[1]);
	int32_t new = 1 + (left > right ? left : right);

	/* An unchanged line stays clean. */
	if (node->height != new)
		node->height = new;
}

/* Rotates the child of @top on @side above it. Returns the new top. */
static struct map_node *rotate(struct map_node *top, int side)
{
	struct map_node *child = top->child[side];

	top->child[side] = child->child[!side];
	child->child[!side] = top;
	measure(top);
	measure(child);
	return child;
}

/* Rebalances the tree of @top, whose sides differ by 2 at most. Returns its top. */
static struct map_node *balance(struct map_node *top)
{
	int32_t lean = height(top->child[1]) - height(top->child[0]);
	int side = lean > 0;
	struct map_node *child;

	if (lean >= -1 && lean <= 1) {
		measure(top);
		return top;
	}
	child = top->child[side];
	if (height(child->child[!side]) > height(child->child[side]))
		top->child[side] = rotate(child, !side);
	return rotate(top, side);
}

/* The path from the root: the link to each node. */
struct way {
	struct map_node **links[MAP_HEIGHT];
	uint32_t length;
};

static struct map_node **descend(struct way *way, struct map_node **link, int side)
{
	way->links[way->length++] = link;
	return &(*link)->child[side];
}

/* Rebalances along the path, up to the first tree whose height is unchanged. */
static void rebalance(struct way *way)
{
	while (way->length) {
		struct map_node **link = way->links[--way->length];
		struct map_node *old = *link;
		int32_t before = old->height;
		struct map_node *top = balance(old);

		if (top != old)
			*link = top;
		if (top->height == before)
			return;
	}
}

/* ---- Changes ---- */

bool map_insert(struct map *map, uint32_t key, uint64_t value)
{
	struct map_node **link = &map->root, *node;
	struct way way = {.length = 0};

	while (*link && (*link)->key != key)
		link = descend(&way, link, key > (*link)->key);
	node = *link;
	if (node) {
		node->value = value;
		return false;
	}
	node = map->free;
	map->free = node->child[0];
	node->child[0] = NULL;
	node->child[1] = NULL;
	node->value = value;
	node->key = key;
	node->height = 1;
	*link = node;
	rebalance(&way);
	return true;
}

/* Replaces the node at @at, which has both children, by its successor. Returns the node. */
static struct map_node *replace(struct way *way, struct map_node **at)
{
	struct map_node *gone = *at, *next, **link;
	uint32_t here = way->length;

	link = descend(way, at, 1);
	while ((*link)->child[0])
		link = descend(way, link, 0);
	next = *link;
	*link = next->child[1];
	next->child[0] = gone->child[0];
	next->child[1] = gone->child[1];
	next->height = gone->height;
	*at = next;
	/* The path contained the removed node. */
	if (way->length > here + 1)
		way->links[here + 1] = &next->child[1];
	return gone;
}

bool map_remove(struct map *map, uint32_t key)
{
	struct map_node **link = &map->root, *node;
	struct way way = {.length = 0};

	while (*link && (*link)->key != key)
		link = descend(&way, link, key > (*link)->key);
	node = *link;
	if (!node)
		return false;
	if (node->child[0] && node->child[1])
		node = replace(&way, link);
	else
		*link = node->child[!node->child[0]];
	rebalance(&way);
	node->child[0] = map->free;
	map->free = node;
	return true;
}

/* ---- Invariants ---- */

struct found {
	uint64_t entries;
	const char *wrong;
};

/* Checks the tree of @node, whose keys must be from @least to @most. */
static void walk(const struct map_node *node, uint64_t least, uint64_t most, int32_t depth,
		 struct found *found)
{
	int32_t left, right;

	if (!node || found->wrong)
		return;
	left = height(node->child[0]);
	right = height(node->child[1]);
	found->entries++;
	if (depth > MAP_HEIGHT)
		found->wrong = "the tree is too deep";
	else if (node->key < least || node->key > most)
		found->wrong = "a key is on the wrong side";
	else if (left - right > 1 || right - left > 1)
		found->wrong = "the tree is out of balance";
	else if (node->height != 1 + (left > right ? left : right))
		found->wrong = "a node has a wrong height";
	/* A key of 0 has no smaller ones: the range below it is empty. */
	else if (node->key == 0 && node->child[0])
		found->wrong = "a key is on the wrong side";
	if (found->wrong)
		return;
	walk(node->child[0], least, (uint64_t)node->key - 1, depth + 1, found);
	walk(node->child[1], (uint64_t)node->key + 1, most, depth + 1, found);
}

const char *map_check(const struct map *map, uint32_t keys, uint64_t entries)
{
	struct found found = {.entries = 0};
	uint64_t free = 0;

	walk(map->root, 0, (uint64_t)keys - 1, 1, &found);
	if (found.wrong)
		return found.wrong;
	for (const struct map_node *node = map->free; node && free <= keys; node = node->child[0])
		free++;
	if (found.entries + free != keys)
		return "nodes were lost";
	return found.entries == entries
		       ? NULL
		       : "the number of entries is not what the operations make it";
}
