package iwarp

import (
	"net/netip"
	"slices"

	"github.com/dgrdma/dgrdma/capture/tcp"
)

// Attempt is a connection of TCP that somebody asked for and that did not come about.
type Attempt struct {
	From, To netip.AddrPort
	Named    bool    // To is of a port of Options
	First    tcp.Ref // the first SYN
	SYNs     int
	Refused  tcp.Ref // the RST that answered; the record is 0: nothing did
}

// failed tells of a connection if it did not come about. Of one that gave way to others nobody knows whether it would have been answered.
func (d *Decoder) failed(c *Connection, why tcp.Why) {
	t := c.TCP
	syns := t.Halves[0].SYNs
	unanswered := syns == t.Segments && why != tcp.Evicted
	if d.options.Failed == nil || c.Number > 0 || !t.Begun || t.Refused.Record == 0 && !unanswered {
		return
	}
	d.options.Failed(Attempt{
		From: t.Ends[0], To: t.Ends[1], Named: slices.Contains(d.options.Ports, t.Ends[1].Port()), First: t.First, SYNs: syns, Refused: t.Refused,
	})
}
