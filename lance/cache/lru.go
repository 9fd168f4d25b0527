package cache

import (
	"container/list"
	"sync"
)

// LRU keeps values by key up to a total cost, dropping those not used for longest.
// A value that costs more than all of that is not taken in. A value may outlive its
// place here: whoever got it keeps it.
type LRU[V any] struct {
	mu      sync.Mutex
	max     int64
	cost    int64
	evicted uint64     // values that made room for others
	order   *list.List // of *lruItem[V], most recent first
	items   map[string]*list.Element
	dropped func(V) // called without the lock, for each value that leaves
}

type lruItem[V any] struct {
	key   string
	value V
	cost  int64
}

// NewLRU returns an empty LRU of values that cost up to limit together. dropped, if not
// nil, is called for each value that leaves.
func NewLRU[V any](limit int64, dropped func(V)) *LRU[V] {
	return &LRU[V]{max: limit, order: list.New(), items: map[string]*list.Element{}, dropped: dropped}
}

// Get returns what is there. used, if not nil, is called with it before another
// goroutine can make it leave.
func (c *LRU[V]) Get(key string, used func(V)) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.items[key]
	if !ok {
		return v, false
	}
	c.order.MoveToFront(el)
	v = el.Value.(*lruItem[V]).value
	if used != nil {
		used(v)
	}
	return v, true
}

// GetOrAdd returns what is there, or v after it was added if it can be, and says
// whether it was. used is as for get.
func (c *LRU[V]) GetOrAdd(key string, v V, cost int64, used func(V)) (_ V, added bool) {
	c.mu.Lock()
	var out []V
	if el, there := c.items[key]; there {
		c.order.MoveToFront(el)
		v = el.Value.(*lruItem[V]).value
	} else if cost <= c.max {
		added = true
		c.items[key] = c.order.PushFront(&lruItem[V]{key: key, value: v, cost: cost})
		c.cost += cost
		for c.cost > c.max {
			out = append(out, c.remove(c.order.Back()))
			c.evicted++
		}
	}
	if used != nil {
		used(v)
	}
	c.mu.Unlock()
	c.drop(out)
	return v, added
}

func (c *LRU[V]) remove(el *list.Element) V {
	item := c.order.Remove(el).(*lruItem[V])
	delete(c.items, item.key)
	c.cost -= item.cost
	return item.value
}

// Close drops everything, and takes in nothing more.
func (c *LRU[V]) Close() {
	c.mu.Lock()
	c.max = -1
	var out []V
	for c.order.Len() > 0 {
		out = append(out, c.remove(c.order.Back()))
	}
	c.mu.Unlock()
	c.drop(out)
}

func (c *LRU[V]) drop(values []V) {
	if c.dropped == nil {
		return
	}
	for _, v := range values {
		c.dropped(v)
	}
}
