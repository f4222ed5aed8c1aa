package rpc

import (
	"errors"

	"github.com/dgrdma/dgrdma/verbs"
)

var errFault = errors.New("ServerOptions.Fault ends the connection")

// misbehave has those messages go that [ServerOptions.Fault] gives in place of one. Without any, a Write of nothing goes, which no peer
// notices: so works complete in the order in which the machine has made them.
func (c *rdmaConn) misbehave(w verbs.Work) {
	instead, goesOn := c.fault(w.Data)
	if !goesOn {
		c.close(errFault)
	}
	if len(instead) == 0 || !goesOn {
		c.works = append(c.works, verbs.Work{ID: w.ID, Silent: w.Silent, Op: verbs.OpWrite})
		return
	}
	if c.qp.Room()-len(c.works) < len(instead) {
		instead = instead[:1]
	}
	for i, b := range instead {
		one := w
		one.Data, one.Silent = b, w.Silent || i < len(instead)-1
		if i > 0 {
			one.Invalidating, one.Invalidate = false, 0 // the first one has done it
		}
		c.works = append(c.works, one)
	}
}
