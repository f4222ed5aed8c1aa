package link

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// progress is how far a consumer is.
type progress struct {
	arrived  atomic.Uint64 // messages that are or were in buffers
	received atomic.Uint64 // messages received; changed with the token, or by the goroutine that calls the handler
	freed    atomic.Uint64 // messages given back
}

// credits tells the producer of free buffers.
type credits struct {
	link     *Link
	progress *progress
	buffers  atomic.Uint64 // of the consumer, as far as the producer knows

	mu         sync.Mutex
	hasAddress bool // the producer has said where it wants to hear of them
	how        returns
	addr       uint32 // the word, or the first of the words
	pitch      uint32

	words     [mostWords]creditWord // of returnsCounted
	announced atomic.Uint64         // the count in the latest of them; changed with mu held

	bytes uint64 // of all messages given back

	slot  []creditSlot // of returnsEach: one for each buffer
	early []uint64     // messages given back before hasAddress
}

// mostWords is how many words may be under way: more than one for each quarter of the buffers, so that
// on a far path none waits until the one before is acknowledged.
const mostWords = 6

// creditWord is a word that says how many buffers were given back in all. So one that was overtaken by
// another says nothing new.
type creditWord struct {
	t      dgrdma.Transaction
	r      *credits
	posted bool      // and not done
	at     time.Time // when; for [growth]
	had    uint64    // how many messages had arrived then
}

// creditSlot is the word of one buffer.
type creditSlot struct {
	t      dgrdma.Transaction
	posted bool
	again  bool // given back once more before the last word was acknowledged
}

// setAddress is called when the producer has said where it wants to hear of free buffers. Messages may
// have come before.
func (r *credits) setAddress(how returns, addr, pitch uint32) {
	r.mu.Lock()
	r.hasAddress, r.how, r.addr, r.pitch = true, how, addr, pitch
	if how == returnsEach {
		r.slot = make([]creditSlot, r.buffers.Load())
	}
	early := r.early
	r.early = nil
	r.mu.Unlock()
	r.messageReceived()
	if how == returnsEach {
		for _, k := range early {
			r.released(k, 0, false)
		}
	}
}

// isConnected reports whether setAddress was called.
func (r *credits) isConnected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasAddress
}

// messageArrived is called when a message came.
func (r *credits) messageArrived() {
	if n := r.progress.freed.Load(); n != r.announced.Load() && r.isShort(n) {
		r.messageReceived()
	}
}

// isShort reports whether the producer, which was not told of all of n free buffers, cannot acquire
// three quarters of all although so many are free.
func (r *credits) isShort(n uint64) bool {
	quarter, came := r.buffers.Load()/4, r.progress.arrived.Load()
	return came-r.announced.Load() > quarter && came-n <= quarter
}

// messageReceived is called when a message was handed out: the producer may run short.
func (r *credits) messageReceived() {
	r.mu.Lock()
	w := r.prepareWord()
	r.mu.Unlock()
	r.postWord(w)
}

// released is called when the buffer of message k, of n bytes, was given back. The producer does not
// need the buffer of the last message any more.
func (r *credits) released(k, n uint64, last bool) {
	r.mu.Lock()
	r.bytes += n
	if last {
		r.mu.Unlock()
		return
	}
	w := r.prepareWord()
	var s *creditSlot
	if !r.hasAddress {
		r.early = append(r.early, k) // no more than there are buffers
	} else if r.how == returnsEach {
		if s = &r.slot[k%uint64(len(r.slot))]; s.posted {
			s.again, s = true, nil
		} else {
			s.posted = true
		}
	}
	r.mu.Unlock()
	r.postWord(w)
	if s != nil {
		r.postEach(s, k)
	}
}

// prepareWord prepares a word if one must be sent: a quarter of all buffers came back. Fewer are
// enough if the producer may have as few left, or cannot acquire as many as it was promised. nil: none
// must be, or none is free. Guarded by mu.
func (r *credits) prepareWord() *creditWord {
	n, told := r.progress.freed.Load(), r.announced.Load()
	buffers := r.buffers.Load()
	quarter := buffers / 4
	if !r.hasAddress || r.link.mustNotPost() || r.how != returnsCounted || n == told ||
		n-told < quarter && r.progress.received.Load()-told < buffers-quarter && !r.isShort(n) {
		return nil
	}
	for i := range r.words {
		if w := &r.words[i]; !w.posted {
			r.announced.Store(n)
			w.r, w.posted = r, true
			if g := &r.link.In.growth; g.allowed {
				w.at, w.had = time.Now(), r.progress.arrived.Load()
			}
			w.t.Completion = dgrdma.Word(r.addr, uint32(n))
			w.t.Urgent, w.t.Done, w.t.Cookie = true, wordDone, w
			return w
		}
	}
	return nil
}

func (r *credits) postWord(w *creditWord) {
	if w != nil {
		r.post(&w.t)
	}
}

func (r *credits) post(t *dgrdma.Transaction) {
	if err := r.link.post(t); err != nil {
		t.Done(t, err)
	}
}

// wordDone is called when a word has arrived, or can never arrive.
func wordDone(t *dgrdma.Transaction, err error) {
	w := t.Cookie.(*creditWord)
	r := w.r
	l := r.link
	if err != nil && !l.mustNotPost() { // otherwise the peer does not want it
		l.fail(err)
	}
	if g := &l.In.growth; err == nil && g.allowed {
		l.In.considerGrowth(time.Since(w.at), r.progress.arrived.Load()-w.had)
	}
	r.mu.Lock()
	w.posted = false
	w = r.prepareWord()
	r.mu.Unlock()
	r.postWord(w)
	l.completed()
}

func (r *credits) postEach(s *creditSlot, k uint64) {
	s.t.Completion = dgrdma.Word(r.addr+uint32(k%uint64(len(r.slot)))*r.pitch, 1)
	s.t.Urgent = true
	s.t.Done = func(_ *dgrdma.Transaction, err error) { r.slotDone(s, k, err) }
	r.post(&s.t)
}

// slotDone is called when a buffer's word has arrived, or can never arrive.
func (r *credits) slotDone(s *creditSlot, k uint64, err error) {
	l := r.link
	if err != nil {
		l.fail(err)
	}
	r.mu.Lock()
	again := s.again
	s.posted, s.again = again, false
	r.mu.Unlock()
	if again {
		r.postEach(s, k)
	}
	l.completed()
}
