package endpoint

const (
	// What parts of incomplete transactions count for: what they take, with room for
	// what tables and the allocator add.
	openSize = 160 // a transaction
	gapSize  = 32  // a gap between its messages, see mostRuns

	// reserve is what each learned peer may hold whatever the others do: what its flows
	// may be amid, see mostAmid, and a few more, enough to get on, if slowly. Arbitrary.
	reserve = 8 << 10
)

// holding is what is kept for a peer because of what it began and did not end. It
// belongs to who has the turn to receive.
type holding struct {
	bytes  int
	pool   *pool
	shares bool // with all other learned peers
}

// pool is what the holdings of an endpoint have in common. It belongs to who has
// the turn to receive.
type pool struct {
	learned int // bytes held for all learned peers
	entries []*incoming
	runs    []*runs
	pages   []*closedPage
}

// mostSpare is how many parts of a kind are kept for the next use, so that nothing
// is allocated while transactions come and go.
const mostSpare = 64

func (h *holding) take(n int) {
	h.bytes += n
	if h.shares {
		h.pool.learned += n
	}
}

// alone makes a learned peer, which shares, one with a bound of its own.
func (h *holding) alone() {
	h.pool.learned -= h.bytes
	h.shares = false
}

// affords reports whether the peer may hold that much more.
func (h *holding) affords(need, most int) bool {
	if h.shares {
		return h.bytes+need <= reserve || h.pool.learned+need <= most
	}
	return h.bytes+need <= most
}

// spare takes one of the parts that are kept, or makes one.
func spare[T any](list *[]*T) *T {
	n := len(*list)
	if n == 0 {
		return new(T)
	}
	x := (*list)[n-1]
	(*list)[n-1] = nil
	*list = (*list)[:n-1]
	return x
}

func keep[T any](list *[]*T, x *T) {
	if len(*list) < mostSpare {
		*list = append(*list, x)
	}
}

func (h *holding) newEntry() *incoming {
	h.take(openSize)
	return spare(&h.pool.entries)
}

func (h *holding) freeEntry(in *incoming) {
	in.indexes.free(h)
	*in = incoming{}
	h.take(-openSize)
	keep(&h.pool.entries, in)
}

// newRuns returns runs of which none is taken for yet.
func (h *holding) newRuns() *runs { return spare(&h.pool.runs) }

func (h *holding) freeRuns(r *runs) {
	h.take(-r.paid * gapSize)
	if r.bits != nil || cap(r.list) > fewRuns {
		return
	}
	r.list, r.paid = r.list[:0], 0
	keep(&h.pool.runs, r)
}

func (h *holding) newPage() *closedPage {
	h.take(pageSize)
	return spare(&h.pool.pages)
}

func (h *holding) freePage(p *closedPage) {
	clear(p[:])
	h.take(-pageSize)
	keep(&h.pool.pages, p)
}
