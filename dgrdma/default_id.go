package dgrdma

import (
	"hash/fnv"
	"io"
	"math/rand/v2"

	"github.com/dgrdma/dgrdma/url"
)

// firstUsualID leaves out the ids that OpenCPI's C++ drivers need for their own peers (D1-7 in
// docs/quirks.md): a program with such a peer gives ids by hand.
const firstUsualID = 10

// usualID returns the id of an endpoint that was given none: always the same for an address and
// port, so that a server's string is good after a restart; else random.
func (o *openConfig) usualID() EndpointID {
	first := firstUsualID
	if o.max <= first {
		first = 1
	}
	n := max(1, o.max-first) // below the number of ids, as C++ hosts need it
	if o.url.Scheme != url.UDP || o.url.Addr.Port() == 0 {
		return EndpointID(first + rand.IntN(n))
	}
	h := fnv.New32a()
	io.WriteString(h, o.url.Addr.String())
	return EndpointID(first + int(h.Sum32()%uint32(n)))
}
