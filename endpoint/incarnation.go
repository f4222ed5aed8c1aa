package endpoint

// incarnation is a life of an endpoint, as it is named to its peers: the id of the life's
// first transaction, a random number.
type incarnation uint32

// unknown is no life: of a peer that has not introduced itself, or that a hello names
// because it is for whoever is there.
const unknown incarnation = 0

// incarnation draws the name of a life, once: the numbers of an application's Entropy may
// all be the same.
func (c *Config) incarnation(but incarnation) incarnation {
	life := incarnation(c.Entropy())
	for life == unknown || life == but {
		life++
	}
	return life
}

// stint is the number of a life of a connection, which ends whenever everything posted
// is given up. None is 0.
type stint uint32

func (s stint) after() stint { return max(s+1, 1) }

// addressee is whom something is posted for.
type addressee struct {
	stint stint
	only  bool // whoever answers otherwise
}

// whoever is the peer in any life of its connection.
var whoever = addressee{}

// in is the peer in that life of its connection alone.
func in(life uint32) addressee { return addressee{stint(life), true} }

func (a addressee) is(s stint) bool { return !a.only || a.stint == s }
