package seal

// windowSize is how far behind the newest datagram one may come. More than the most frames that an endpoint has in
// flight to a peer, so that a full window may come in any order; a power of two.
const windowSize = 1 << 15

// window notes which counters came (RFC 6479).
type window struct {
	newest uint64
	some   bool
	bits   *[windowSize / 64]uint64 // nil until one came: many keys never serve
}

// may reports whether that one has not come yet, as far as is known.
func (w *window) may(n uint64) bool {
	switch {
	case !w.some || n > w.newest:
		return true
	case w.newest-n >= windowSize-64:
		return false
	}
	return w.bits[n/64%uint64(len(w.bits))]&(1<<(n%64)) == 0
}

// mark notes that it came.
func (w *window) mark(n uint64) {
	words := uint64(len(w.bits))
	if w.bits == nil {
		w.bits = new([windowSize / 64]uint64)
	}
	if !w.some || n > w.newest {
		from, to := w.newest/64, n/64
		if !w.some {
			from = to
		}
		for i := range min(to-from, words) {
			w.bits[(to-i)%words] = 0
		}
		w.newest, w.some = n, true
	}
	w.bits[n/64%words] |= 1 << (n % 64)
}
