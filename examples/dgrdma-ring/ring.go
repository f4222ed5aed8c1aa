package main

import "github.com/dgrdma/dgrdma/dgrdma"

// ring is a transaction for each slot, which is used again when it is done.
type ring struct {
	t    [slots]dgrdma.Transaction
	done [slots]chan error // how it ended, if it is not under way
}

func newRing() *ring {
	r := &ring{}
	for i := range r.done {
		r.done[i] = make(chan error, 1)
		r.done[i] <- nil
		r.t[i].Done = func(_ *dgrdma.Transaction, err error) { r.done[i] <- err }
	}
	return r
}

// next returns the transaction for piece k, when that of the piece before in its slot is
// done, which takes no longer than until a peer is given up.
func (r *ring) next(k uint32) (*dgrdma.Transaction, error) {
	return &r.t[k%slots], <-r.done[k%slots]
}

// post posts that transaction.
func (r *ring) post(to *dgrdma.Conn, k uint32) error { return to.Post(&r.t[k%slots]) }

// wait waits until all are done, and returns why one failed.
func (r *ring) wait() error {
	var failed error
	for _, done := range r.done {
		if err := <-done; err != nil {
			failed = err
		}
	}
	return failed
}
