package endpoint

import (
	"math/bits"

	"github.com/dgrdma/dgrdma/settings"
)

const (
	// closedTransactions is how many transactions back we know which are over. A
	// sender of our kind keeps at most half of it open (profile), so that what lies
	// behind is over for certain.
	closedTransactions = settings.MostOpen

	closedPages = 16
	pageIDs     = closedTransactions / closedPages
	pageSize    = pageIDs / 8
)

type closedPage [pageIDs / 64]uint64

// closedSet knows which transactions of the peer's present life are over.
// Together with the message's index this, and not the frame id, decides
// whether something was applied: frame ids repeat within milliseconds on a
// fast link, transaction ids do not.
//
// As long as transactions end in order, low alone says it. The pages are for those
// that are over above it, by id modulo their number; a bit is set only for an id from
// low to top, so that nothing needs to be cleared when top moves, however far.
type closedSet struct {
	pages    [closedPages]*closedPage // nil: none of these
	count    [closedPages]uint16      // bits set
	low, top uint32                   // all up to low are over; top is the highest that was seen
	held     *holding
}

// begin starts a life whose first transaction id is first, with nothing of another one.
func (s *closedSet) begin(first uint32) {
	s.low, s.top = first-1, first-1
}

func (s *closedSet) reset() {
	for p := range s.pages {
		s.free(uint32(p))
	}
}

func pageOf(txn uint32) uint32 { return txn / pageIDs % closedPages }

func (s *closedSet) has(txn uint32) bool {
	page := s.pages[pageOf(txn)]
	return page != nil && page[txn%pageIDs/64]&(1<<(txn%64)) != 0
}

type age uint8

const (
	ageOpen age = iota
	ageClosed
	ageForeign // neither recent nor near enough ahead for this life
)

func (s *closedSet) age(txn uint32) age {
	d := int32(txn - s.top)
	switch {
	case d > closedTransactions/2 || d < -(1<<30):
		return ageForeign
	case d > 0:
		return ageOpen
	case int32(txn-s.low) <= 0 || s.has(txn):
		return ageClosed
	}
	return ageOpen
}

// see notes that a transaction began. What lies too far behind it is over.
func (s *closedSet) see(txn uint32) {
	if int32(txn-s.top) > 0 {
		if s.top = txn; s.top-s.low > closedTransactions {
			s.drop()
		}
	}
}

// drop moves low up to where everything is over.
func (s *closedSet) drop() {
	for left := s.top - closedTransactions - s.low; left > 0; {
		n := min(left, pageIDs-(s.low+1)%pageIDs)
		s.raise(n)
		left -= n
	}
	s.rise()
}

// close notes that a transaction is over, which began and was not over.
func (s *closedSet) close(txn uint32) {
	if txn == s.low+1 {
		if s.low = txn; txn != s.top {
			s.rise()
		}
		return // mostly
	}
	p := pageOf(txn)
	if s.pages[p] == nil {
		s.pages[p] = s.held.newPage()
	}
	s.pages[p][txn%pageIDs/64] |= 1 << (txn % 64)
	s.count[p]++
}

// rise moves low up to the first transaction that is not over.
func (s *closedSet) rise() {
	for s.low != s.top {
		next := s.low + 1
		page := s.pages[pageOf(next)]
		if page == nil {
			return
		}
		over := bits.TrailingZeros64(^(page[next%pageIDs/64] >> (next % 64)))
		if over == 0 {
			return
		}
		s.raise(uint32(over))
	}
}

// raise moves low up by n ids, all of them on one page.
func (s *closedSet) raise(n uint32) {
	first := s.low + 1
	p := pageOf(first)
	s.low += n
	page := s.pages[p]
	if page == nil {
		return
	}
	for n > 0 {
		w := &page[first%pageIDs/64]
		in := min(n, 64-first%64)
		mask := ^uint64(0) >> (64 - in) << (first % 64)
		s.count[p] -= uint16(bits.OnesCount64(*w & mask))
		*w &^= mask
		first += in
		n -= in
	}
	if s.count[p] == 0 {
		s.free(p)
	}
}

func (s *closedSet) free(p uint32) {
	if s.pages[p] != nil {
		s.held.freePage(s.pages[p])
		s.pages[p], s.count[p] = nil, 0
	}
}
