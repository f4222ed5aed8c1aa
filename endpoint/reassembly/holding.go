package reassembly

const (
	// Size is what a transaction is charged: the bytes that it takes, with room for what
	// tables and the allocator add.
	Size = 160

	// Reserve is what each learned peer may hold whatever the others do: for a transaction of each
	// of its flows that is partly sent, and a few more, enough to go on, if slowly. Arbitrary.
	Reserve = 8 << 10
)

// Holding is what is kept for a peer because of transactions that it began and did not end.
type Holding struct {
	bytes  int
	pool   *Pool
	shares bool // with all other learned peers
}

// Pool is what the holdings of an endpoint have in common.
type Pool struct {
	learned int // bytes kept for all learned peers
	spare   []*Transaction
}

// mostSpare is how many are kept for the next use, so that nothing
// is allocated while transactions come and go.
const mostSpare = 64

// Init makes h the holding of a peer.
func (h *Holding) Init(p *Pool) { *h = Holding{pool: p} }

// Share has the peer, which is a learned one, share the bound with all others of those.
func (h *Holding) Share() { h.shares = true }

// Bytes returns how many are kept.
func (h *Holding) Bytes() int { return h.bytes }

// Learned returns how many bytes are kept for all learned peers.
func (p *Pool) Learned() int { return p.learned }

func (h *Holding) take(n int) {
	h.bytes += n
	if h.shares {
		h.pool.learned += n
	}
}

// Part gives a learned peer, which shares, a bound of its own.
func (h *Holding) Part() {
	h.pool.learned -= h.bytes
	h.shares = false
}

// Affords reports whether the peer may hold that much more.
func (h *Holding) Affords(need, most int) bool {
	if h.shares {
		return h.bytes+need <= Reserve || h.pool.learned+need <= most
	}
	return h.bytes+need <= most
}

func (h *Holding) newTransaction() *Transaction {
	h.take(Size)
	list := &h.pool.spare
	n := len(*list)
	if n == 0 {
		return new(Transaction)
	}
	in := (*list)[n-1]
	(*list)[n-1] = nil
	*list = (*list)[:n-1]
	return in
}

func (h *Holding) free(in *Transaction) {
	*in = Transaction{}
	h.take(-Size)
	if len(h.pool.spare) < mostSpare {
		h.pool.spare = append(h.pool.spare, in)
	}
}
