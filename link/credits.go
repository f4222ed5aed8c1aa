package link

import (
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// credits tells the producer of free buffers.
type credits struct {
	c *Consumer

	mu    sync.Mutex
	begun bool // it is known where the producer wants to hear of them
	how   returns
	addr  uint32 // the word, or the first of the words
	pitch uint32

	word dgrdma.Transaction // counted
	busy bool               // it is under way
	told atomic.Uint64      // what it says; changed with mu held

	bytes uint64 // of all messages given back

	slot  []creditSlot // each: of the buffers
	early []uint64     // messages given back before it was known where that is told
}

// creditSlot is the word of one buffer.
type creditSlot struct {
	t     dgrdma.Transaction
	busy  bool
	again bool // given back once more before the last time was acknowledged
}

// begin is called when the producer has said where it wants to hear of free
// buffers. Messages may have come before.
func (r *credits) begin(how returns, addr, pitch uint32) {
	r.mu.Lock()
	r.begun, r.how, r.addr, r.pitch = true, how, addr, pitch
	if how == returnsEach {
		r.slot = make([]creditSlot, r.c.wire.buffers)
	}
	early := r.early
	r.early = nil
	r.mu.Unlock()
	r.received()
	if how == returnsEach {
		for _, k := range early {
			r.back(k, 0, false)
		}
	}
}

// known reports whether begin was called.
func (r *credits) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// arrived is called when a message came.
func (r *credits) arrived() {
	if n := r.c.freed.Load(); n != r.told.Load() && r.short(n) {
		r.received()
	}
}

// short reports whether the producer, which was not told of all of n free buffers,
// cannot acquire three quarters of all although so many are free.
func (r *credits) short(n uint64) bool {
	quarter, came := r.c.wire.buffers/4, r.c.came.Load()
	return came-r.told.Load() > quarter && came-n <= quarter
}

// received is called when a message was handed out: the producer may run short.
func (r *credits) received() {
	r.mu.Lock()
	post := r.countDue()
	r.mu.Unlock()
	if post {
		r.post(&r.word)
	}
}

// back is called when the buffer of message k, of n bytes, was given back. The
// producer needs that of the last one no more.
func (r *credits) back(k, n uint64, last bool) {
	r.mu.Lock()
	r.bytes += n
	if last {
		r.mu.Unlock()
		return
	}
	post := r.countDue()
	var s *creditSlot
	if !r.begun {
		r.early = append(r.early, k) // no more than there are buffers
	} else if r.how == returnsEach {
		if s = &r.slot[k%r.c.wire.buffers]; s.busy {
			s.again, s = true, nil
		} else {
			s.busy = true
		}
	}
	r.mu.Unlock()
	if post {
		r.post(&r.word)
	}
	if s != nil {
		r.postEach(s, k)
	}
}

// countDue prepares the word if it is time for it: a quarter of all buffers came
// back, or fewer if the producer may have as few left, or cannot acquire as many as it
// was promised. Guarded by mu.
func (r *credits) countDue() bool {
	n, told := r.c.freed.Load(), r.told.Load()
	quarter := r.c.wire.buffers / 4
	if !r.begun || r.c.link.silent() || r.how != returnsCounted || r.busy || n == told ||
		n-told < quarter && r.c.next.Load()-told < r.c.wire.buffers-quarter && !r.short(n) {
		return false
	}
	r.busy = true
	r.told.Store(n)
	r.word.Completion = dgrdma.Word(r.addr, uint32(n))
	r.word.Urgent, r.word.Done, r.word.Cookie = true, counted, r
	return true
}

func (r *credits) post(t *dgrdma.Transaction) {
	if err := r.c.link.post(t); err != nil {
		t.Done(t, err)
	}
}

// counted is called when the word is there.
func counted(t *dgrdma.Transaction, err error) {
	r := t.Cookie.(*credits)
	l := r.c.link
	if err != nil && !l.silent() { // else the peer does not want it
		l.fail(err)
	}
	r.mu.Lock()
	r.busy = false
	post := r.countDue()
	r.mu.Unlock()
	if post {
		r.post(&r.word)
	}
	l.settled()
}

func (r *credits) postEach(s *creditSlot, k uint64) {
	s.t.Completion = dgrdma.Word(r.addr+uint32(k%r.c.wire.buffers)*r.pitch, 1)
	s.t.Urgent = true
	s.t.Done = func(_ *dgrdma.Transaction, err error) { r.given(s, k, err) }
	r.post(&s.t)
}

// given is called when a buffer's word is there.
func (r *credits) given(s *creditSlot, k uint64, err error) {
	l := r.c.link
	if err != nil {
		l.fail(err)
	}
	r.mu.Lock()
	again := s.again
	s.busy, s.again = again, false
	r.mu.Unlock()
	if again {
		r.postEach(s, k)
	}
	l.settled()
}
