package dgrdma

// connEpoch is the number of a life of a connection, which ends whenever everything posted
// is given up. None is 0.
type connEpoch uint32

func (s connEpoch) after() connEpoch { return max(s+1, 1) }

// addressee is the peer that something is posted for.
type addressee struct {
	epoch connEpoch
	only  bool // otherwise any that answers
}

// anyEpoch is the peer in any epoch of its connection.
var anyEpoch = addressee{}

// in is the peer in that life of its connection alone.
func in(life uint32) addressee { return addressee{connEpoch(life), true} }

func (a addressee) is(s connEpoch) bool { return !a.only || a.epoch == s }
