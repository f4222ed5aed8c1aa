package rpc

import "sync"

// budget is memory that connections share: what peers have sent, or lent to be fetched, and calls hold until they are answered. Those that
// find too little wait, and are served in the order in which they came.
type budget struct {
	mu      sync.Mutex
	left    int
	waiting []budgetWaiter
}

type budgetWaiter struct {
	n     int
	grant func()
}

// take has grant called when there are n octets: at once, or by the goroutine that gives some back. At most what the budget had at its
// beginning may be asked for.
func (b *budget) take(n int, grant func()) {
	b.mu.Lock()
	if len(b.waiting) > 0 || n > b.left {
		b.waiting = append(b.waiting, budgetWaiter{n, grant})
		b.mu.Unlock()
		return
	}
	b.left -= n
	b.mu.Unlock()
	grant()
}

// put gives n octets back.
func (b *budget) put(n int) {
	b.mu.Lock()
	b.left += n
	var served []budgetWaiter
	for len(b.waiting) > 0 && b.waiting[0].n <= b.left {
		b.left -= b.waiting[0].n
		served = append(served, b.waiting[0])
		b.waiting = b.waiting[1:]
	}
	b.mu.Unlock()
	for _, w := range served {
		w.grant()
	}
}
